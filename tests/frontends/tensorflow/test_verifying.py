"""Exports are compared with what TensorFlow computes, on arrays that are given or drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import vhlo_tools as vt
from vhlo_tools.integrations.proof import ProofError
from vhlo_tools.integrations.tensorflow import export, export_saved_model

X = np.array([1, 2, 3, 4], np.float32)
SPEC = tf.TensorSpec([4], tf.float32)


def doubled(x: tf.Tensor, count: tf.Tensor) -> dict[str, tf.Tensor]:
    """An array that may grow, which XLA does not do."""
    array = tf.TensorArray(tf.float32, size=2, dynamic_size=True, element_shape=[])
    loop = tf.while_loop(lambda i, _: i < count, lambda i, array: (i + 1, array.write(i, x[i] * 2)), (0, array))
    return {"first": x, "rest": tf.reduce_sum(loop[1].stack())}


def test_a_program_that_is_wrong_is_refused_by_default_where_arrays_are_given() -> None:
    with pytest.raises(ProofError, match=r"^the program of doubled does not compute what TensorFlow does: rest is "):
        export(doubled, X, np.int32(4))
    assert [each.feature for each in export(doubled, X, np.int32(2)).findings] == ["tensorflow_op"]
    assert export(doubled, X, np.int32(4), verify=False).outputs == ("first", "rest")
    assert export(doubled, SPEC, tf.TensorSpec([], tf.int32)).outputs == ("first", "rest")


def test_inputs_are_drawn_where_none_are_given(tmp_path: Path) -> None:
    def wrong(x: tf.Tensor) -> tf.Tensor:
        return doubled(x, tf.where(x[0] < 1e9, 4, 0))["rest"]

    export(wrong, SPEC)
    with pytest.raises(ProofError, match="output0 is"):
        export(wrong, SPEC, verify=True)
    tf.saved_model.save(tf.Module(), str(tmp_path / "saved"), signatures=tf.function(wrong, input_signature=[SPEC]))
    with pytest.raises(ProofError, match="output_0 is"):
        export_saved_model(tmp_path / "saved", verify=True)
    output = str(tmp_path / "saved.mlirbc")
    command = [
        sys.executable,
        "-m",
        "vhlo_tools.cli.main",
        "serialize",
        str(tmp_path / "saved"),
        "-o",
        output,
        "--force",
    ]
    assert subprocess.run(command, check=False).returncode == 0
    refused = subprocess.run([*command, "--verify"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "does not compute what TensorFlow does" in refused.stderr


class Counter(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = tf.Variable(tf.ones([4]), name="total")

    @tf.function
    def add(self, x: tf.Tensor) -> tf.Tensor:
        return self.total.assign_add(x) * 2


def test_variables_are_compared_and_keep_their_values() -> None:
    counter = Counter()
    model = export(counter.add, X, verify=True)
    assert model.outputs == ("output0", "total")
    assert counter.total.numpy().tolist() == model.weights["total"].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x + tf.random.normal([4]), "it draws random numbers"),
        (lambda x: x + tf.random.stateless_normal([4], [1, 2]), "StatelessRandom.* may draw by another algorithm"),
        (lambda x: tf.linalg.svd(tf.tensordot(x, x, 0)), "Svd has several correct results"),
        (lambda x: tf.debugging.check_numerics(x / 0, "x"), "TensorFlow raises InvalidArgumentError: .*Inf"),
    ],
)
def test_what_cannot_be_compared(function: Any, reason: str) -> None:
    finding = export(function, X).findings[-1]
    assert (finding.feature, finding.level) == ("unproven", "note")
    with pytest.raises(vt.InvalidProgramError, match=f"cannot be compared with what TensorFlow computes: {reason}"):
        export(function, X, verify=True)


def test_steps_in_narrow_floats_are_as_exact_as_these() -> None:
    def function(x: tf.Tensor) -> tf.Tensor:
        narrow = tf.cast(x, tf.bfloat16)
        return tf.cast(tf.reduce_sum(narrow * narrow / 3) * 1.1, tf.float32)

    assert export(function, X, verify=True).findings == ()
