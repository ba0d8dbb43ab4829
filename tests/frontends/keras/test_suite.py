"""The smallest models of the suite, on the backend of this environment; `tests/conformance/keras_suite.py` runs all."""

from __future__ import annotations

import keras
import pytest
from keras_suite import SMALLEST, TOLERANCE, outcome_of

#: What Keras itself does to read tensors of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

#: On the other backends making a model takes ten times as long.
NAMES = SMALLEST if keras.backend.backend() == "tensorflow" else SMALLEST[:1]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_gives_what_keras_gives(name: str) -> None:
    outcome = outcome_of(name)
    assert outcome.distance <= TOLERANCE
    assert outcome.parameters > 100_000
