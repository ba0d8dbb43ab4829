from __future__ import annotations

import pytest
from fuzz.bits import SUBJECTS, bits_of, flip, subject
from support.needs import STABLEHLO

pytestmark = pytest.mark.every_python


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("program", "version"),
    [pytest.param(p, v, id=f"{p}@{v}", marks=pytest.mark.needs(STABLEHLO + v)) for p, v in SUBJECTS],
)
def test_flipped_bits_are_decoded_or_refused_with_a_place(program: str, version: str) -> None:
    data = subject(program, version)
    outcome = flip(data, bits_of(data, 0.2, seed=0))
    assert outcome.refused > 0
    assert (outcome.nowhere, outcome.slow) == ([], [])
