"""Steps of TensorFlow with their variables donated: they stay in place, and become what TensorFlow makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import vhlo_tools as vt
from vhlo_tools.integrations.tensorflow import export

STEPS = 50


class Model(tf.Module):
    """A layer and what its training keeps, in modules within modules."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = tf.Module()
        self.layer.kernel = tf.Variable(np.ones((4, 3), np.float32), name="kernel")
        self.layer.bias = tf.Variable(np.zeros(3, np.float32), name="bias")
        self.momentum = tf.Variable(np.zeros((4, 3), np.float32), name="momentum")
        self.rate = tf.Variable(0.125, name="rate", trainable=False)
        self.steps = tf.Variable(0, dtype=tf.int64, name="steps")

    @tf.function(
        input_signature=[tf.TensorSpec([2, 4], tf.float32), tf.TensorSpec([2, 3], tf.float32)], jit_compile=True
    )
    def step(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        error = x @ self.layer.kernel + self.layer.bias - y
        self.momentum.assign(self.momentum * 0.5 + tf.transpose(x) @ error)
        self.layer.kernel.assign_sub(self.momentum * self.rate)
        self.layer.bias.assign_sub(tf.reduce_sum(error, axis=0) * self.rate)
        self.steps.assign_add(1)
        return tf.reduce_mean(error * error)


def test_every_variable_that_is_updated_is_aliased_by_name() -> None:
    model = Model()
    exported = export(model.step)
    program = exported.artifact.declared_aliases()
    named = {
        program.parameters[each.parameter_number].name: program.results[each.output_index[0]].name
        for each in program.declared.aliases
    }
    assert named == {name: name for name in ("layer.kernel", "layer.bias", "momentum", "steps")}
    assert "rate" in {each.name for each in program.parameters}


@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("target", ["0.9.0", "current"])
def test_variables_that_are_given_away_stay_in_place(engine: Any, target: str) -> None:
    model, twin = Model(), Model()
    exported = export(model.step, target=target)
    executable = vt.load_executable(exported.artifact, engine=engine)
    chance = np.random.default_rng(0)
    batches = [(chance.normal(size=(2, 4)), chance.normal(size=(2, 3))) for _ in range(STEPS)]
    values = {name: np.array(each) for name, each in exported.weights.items()}
    state = {name: vt.Buffer.on_xla(each) if engine == "xla" else vt.Buffer(each) for name, each in values.items()}
    addresses = {name: each.address for name, each in state.items()}
    names = [each.name for each in exported.artifact.declared_aliases().parameters]
    aliases = executable.declared.aliases
    for x, y in batches:
        given = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
        inputs = [given.get(str(name), state.get(str(name))) for name in names]
        execution = executable.execute(inputs, donate=[each.parameter_number for each in aliases])
        assert execution.report.bytes_copied == 0
        for alias in aliases:
            state[str(names[alias.parameter_number])] = execution.buffers[alias.output_index[0]]
        twin.step(tf.constant(given["x"]), tf.constant(given["y"]))
    assert {name: each.address for name, each in state.items()} == addresses
    assert np.asarray(state["steps"]) == STEPS
    for name, variable in (
        ("layer.kernel", twin.layer.kernel),
        ("layer.bias", twin.layer.bias),
        ("momentum", twin.momentum),
    ):
        np.testing.assert_allclose(np.asarray(state[name]), variable.numpy(), rtol=1e-4, atol=1e-5)
