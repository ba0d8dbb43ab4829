"""The example of TensorFlow is what its script makes, and computes what TensorFlow computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from support.corpus import EXAMPLES
from support.exported_models import check_model, close
from support.xla_cpu import run_on_xla

import vhlo_tools as vt
from vhlo_tools.integrations.tensorflow import export, export_saved_model

SCRIPT = EXAMPLES / "make_tensorflow_counter.py"
PROGRAM = EXAMPLES / "tensorflow_counter.mlir"
BATCHES = np.random.default_rng(0).normal(3, 2, (3, 8, 4)).astype(np.float32)


def make(*arguments: str) -> None:
    # In a process of its own, for the names in the text count what was traced before.
    subprocess.run([sys.executable, SCRIPT, *arguments], check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    import make_tensorflow_counter

    return make_tensorflow_counter.Counter()


def test_it_is_what_its_script_makes(tmp_path: Path) -> None:
    make("--out", str(tmp_path))
    assert (tmp_path / PROGRAM.name).read_text() == PROGRAM.read_text()


def test_it_computes_what_tensorflow_computes(counter: Any) -> None:
    state = [each.numpy() for each in (counter.rows, counter.mean, counter.squares)]
    current = vt.serialize(PROGRAM)
    oldest = vt.serialize(PROGRAM, current.requirements().downgradable_to)
    assert oldest.version == vt.Version("0.9.0")
    for batch in BATCHES:
        results = run_on_xla(bytes(current), [batch, *state])
        close(run_on_xla(bytes(oldest), [batch, *state]), results, 0)
        expected = counter.update(batch).numpy()
        state = [each.numpy() for each in (counter.rows, counter.mean, counter.squares)]
        close(results, [expected, *state], 1e-5)


def test_it_is_exported_from_the_module_and_from_a_saved_model(counter: Any, tmp_path: Path) -> None:
    make("--saved-model", str(tmp_path / "saved"))
    inputs = [BATCHES[0]]
    expected = [
        counter.update(BATCHES[0]).numpy(),
        *(each.numpy() for each in (counter.rows, counter.mean, counter.squares)),
    ]
    for variable in (counter.rows, counter.mean, counter.squares):
        variable.assign(tf.zeros_like(variable))
    for model in (
        check_model(lambda target: export(counter.update, target=target), inputs, expected, 1e-5),
        check_model(lambda target: export_saved_model(tmp_path / "saved", target=target), inputs, expected, 1e-5),
    ):
        assert list(model.weights) == ["rows", "mean", "squares"]
        assert model.inputs == ("batch",)
        assert model.outputs[1:] == ("rows", "mean", "squares")
