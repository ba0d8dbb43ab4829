"""The example of Keras computes what its model computes, whichever backend made it and whichever compares."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from support.corpus import EXAMPLES
from support.exported_models import check_model, close
from support.xla_cpu import run_on_xla

import vhlo_tools as vt
from vhlo_tools.integrations.keras import export

SCRIPT = EXAMPLES / "make_keras_mlp.py"
ARTIFACT = EXAMPLES / "keras_mlp.mlirbc"
X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)

#: What Keras itself does to read tensors of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    import make_keras_mlp

    return make_keras_mlp.make_model()


def test_it_computes_what_keras_computes(model: Any, tmp_path: Path) -> None:
    expected = [keras.ops.convert_to_numpy(model(keras.ops.convert_to_tensor(X), training=False))]
    subprocess.run([sys.executable, SCRIPT, "--out", str(tmp_path)], check=True)
    for path in (ARTIFACT, tmp_path / ARTIFACT.name):
        artifact = vt.open_artifact(path)
        assert artifact.version == vt.Version("1.0.0")
        for target in (artifact.requirements().downgradable_to, artifact.version, vt.resolve_target("current").version):
            close(run_on_xla(bytes(vt.retarget(artifact, target)), [X]), expected, 1e-5)
    check_model(lambda target: export(model, target=target, batch_size=2, weights="arguments"), [X], expected, 1e-5)
