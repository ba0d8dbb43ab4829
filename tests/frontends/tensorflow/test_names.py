"""Variables keep their names in the artifact: whatever is aliased with them, at any version, is shown by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact
from vhlo_tools.cli.main import main
from vhlo_tools.integrations.tensorflow import export, export_saved_model

PAIR = tf.TensorSpec([2], tf.float32)


class Layer(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable([1.0, 2.0], name="kernel")
        self.offset = tf.Variable([3.0, 4.0])


class Scoped(tf.Module):
    def __init__(self) -> None:
        super().__init__(name="scoped")
        with self.name_scope:
            self.gain = tf.Variable([1.0, 1.0], name="gain")


class Network(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = tf.Variable(0, dtype=tf.int64, name="steps")
        self.layer = Layer()
        self.layers = [Layer(), Layer()]
        self.parts = {"scoped": Scoped()}
        self.table = tf.constant([5.0, 6.0])

    @tf.function(input_signature=[PAIR], jit_compile=True)
    def train(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        self.steps.assign_add(1)
        self.layer.kernel.assign_add(x)
        self.layers[1].kernel.assign_sub(x * self.layers[0].kernel)
        self.layers[0].offset.assign(x)
        self.parts["scoped"].gain.assign(x)
        return {"loss": tf.reduce_sum(x * self.layer.offset * self.table)}


WEIGHTS = [
    *("steps", "layer.kernel", "layers.0.kernel", "layers.1.kernel", "layers.0.offset", "scoped/gain"),
    *("layer.offset", "captured"),
]
UPDATED = ["steps", "layer.kernel", "layers.1.kernel", "layers.0.offset", "scoped/gain"]


def aliased(artifact: Artifact) -> list[tuple[str | None, str | None]]:
    """Return the names of the outputs and of the parameters that are aliased."""
    program = artifact.declared_aliases()
    return [
        (program.results[each.output_index[0]].name, program.parameters[each.parameter_number].name)
        for each in program.declared.aliases
    ]


@pytest.fixture(scope="module")
def network() -> Network:
    return Network()


def test_every_update_is_an_alias_by_the_name_of_its_variable(network: Network) -> None:
    model = export(network.train)
    assert list(model.weights) == WEIGHTS
    program = model.artifact.declared_aliases()
    assert [each.name for each in program.parameters] == ["x", *WEIGHTS]
    assert [each.name for each in program.results] == ["loss", *UPDATED]
    assert aliased(model.artifact) == [(each, each) for each in UPDATED]
    assert not model.artifact.alias_findings()
    assert str(program.declared.signature.parameters[1]) == "s64[]"


def test_names_survive_every_way(network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = export(network.train).artifact
    expected = aliased(artifact)
    oldest = vt.retarget(artifact, "0.9.0")
    again = vt.retarget(oldest, str(artifact.version))
    text = vt.deserialize(oldest).operation.get_asm(enable_debug_info=True)
    for each in (oldest, again, vt.serialize(text), export(network.train, target="0.9.0").artifact):
        assert aliased(each) == expected
    assert vt.diff(again, artifact, locations=True) == []
    artifact.save(tmp_path / "model.mlirbc")
    assert main(["alias", "show", str(tmp_path / "model.mlirbc")]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-1] for line in shown[1:]] == UPDATED
    stripped = vt.strip(artifact).declared_aliases()
    assert {each.name for each in stripped.parameters} == {None}
    assert stripped.declared == artifact.declared_aliases().declared


def test_a_saved_model_names_the_same(network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "saved")
    tf.saved_model.save(network, path, signatures={"serving_default": network.train})
    model = export_saved_model(path)
    assert list(model.weights) == WEIGHTS
    assert aliased(model.artifact) == [(each, each) for each in UPDATED]
    # Variables are arguments there, for constants are not written over.
    assert main(["alias", "show", path]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]] == UPDATED


def test_whose_variables_is_said_for_what_is_no_method(network: Network) -> None:
    traced = network.train.get_concrete_function()
    assert list(export(traced).weights)[1:4] == ["kernel", "kernel_1", "kernel_2"]
    assert list(export(traced, owner=network).weights) == WEIGHTS
    plain = export(lambda x: x + network.layer.kernel, PAIR)
    assert list(plain.weights) == ["kernel"]


def test_weights_as_constants_stand_by_their_names(network: Network) -> None:
    class Reader(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network.layer

        def apply(self, x: tf.Tensor) -> tf.Tensor:
            return x * self.inner.kernel

    artifact = export(Reader().apply, PAIR, weights="constants").artifact
    assert [each.name for each in artifact.declared_aliases().parameters] == ["x"]
    assert 'loc("inner.kernel")' in vt.deserialize(artifact).operation.get_asm(enable_debug_info=True)


def test_a_step_of_an_optimizer_of_keras() -> None:
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras makes variables of TensorFlow on TensorFlow only")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="dense")], name="model")
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    exported = export(step, np.ones((3, 4), np.float32), np.ones((3, 2), np.float32))
    read = {"adam/learning_rate"}
    assert {"model/dense/kernel", "model/dense/bias", "adam/iteration", *read} < set(exported.weights)
    assert sorted(aliased(exported.artifact)) == sorted((each, each) for each in set(exported.weights) - read)
