"""HLO as TensorFlow's XLA prints it: read, and run with the results of the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import vhlo_tools as vt


class Model(tf.Module):
    """Ten variables, past the sixth parameter, from which on XLA counts in comments."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [tf.Variable(np.full((3,), at, np.float32)) for at in range(10)]

    @tf.function(jit_compile=True)
    def __call__(self, x: Any) -> Any:
        return tf.add_n([tf.tanh(x * each) for each in self.weights])

    @tf.function(jit_compile=True)
    def update(self, x: Any) -> Any:
        for each in self.weights:
            each.assign_add(x)
        return tf.reduce_sum(x)


@pytest.mark.parametrize("stage", ["hlo", "optimized_hlo"])
def test_a_function_of_ten_variables(stage: str) -> None:
    model, x = Model(), np.array([0.1, 0.2, 0.3], np.float32)
    text = model.__call__.experimental_get_compiler_ir(tf.constant(x))(stage=stage)
    artifact = vt.serialize(text, "1.0.0")
    assert len(artifact.aliases().signature.parameters) == 11
    (found,) = vt.run(artifact, [x, *(each.numpy() for each in model.weights)])
    np.testing.assert_allclose(found, model(tf.constant(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("stage", ["hlo", "optimized_hlo"])
def test_variables_that_a_function_updates(stage: str) -> None:
    model, x = Model(), np.array([0.1, 0.2, 0.3], np.float32)
    text = model.update.experimental_get_compiler_ir(tf.constant(x))(stage=stage)
    artifact = vt.serialize(text, "1.0.0")
    results = vt.run(artifact, [x, *(each.numpy() for each in model.weights)])
    assert len(results) == 11
    np.testing.assert_allclose(results[0], x.sum(), rtol=1e-5)
    for found, each in zip(results[1:], model.weights, strict=True):
        np.testing.assert_allclose(found, each.numpy() + x, rtol=1e-6)
