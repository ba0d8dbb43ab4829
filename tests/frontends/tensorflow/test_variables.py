"""Variables of TensorFlow: arguments in the order in which they are captured, and their new values results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from support.exported_models import check_model, close, results_of

import vhlo_tools as vt
from vhlo_tools.aliasing.config import Alias
from vhlo_tools.integrations.tensorflow import export, export_saved_model

VECTOR = tf.TensorSpec([4], tf.float32)
X = np.array([1, 2, 3, 4], np.float32)


class Statistics(tf.Module):
    """Running statistics: what reads and assigns variables, in functions within functions."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = tf.Variable(np.arange(4, dtype=np.float32), name="mean")
        self.scale = tf.Variable(2.0, name="scale")
        self.steps = tf.Variable(3, name="steps")
        self.table = tf.constant([10.0, 20.0, 30.0, 40.0])

    @tf.function
    def _count(self) -> None:
        self.steps.assign_add(1)

    @tf.function(input_signature=[VECTOR])
    def update(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        scaled = x * self.scale + self.table
        self._count()
        self.mean.assign(self.mean * 0.9 + scaled * 0.1)
        return {"scaled": scaled, "mean_before": self.mean - scaled * 0.1}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def apply(self, x: tf.Tensor) -> tf.Tensor:
        return (x - self.mean) * self.scale + self.table


def expected_of(module: Statistics) -> list[Any]:
    outputs = module.update(X)
    return [outputs["mean_before"], outputs["scaled"], module.steps.numpy(), module.mean.numpy()]


def test_updated_variables_are_results_and_aliases_of_their_arguments() -> None:
    # As many variables as were updated: TensorFlow's own are others by the time that they are compared.
    module, twin = Statistics(), Statistics()
    model = check_model(lambda target: export(module.update, target=target), [X], expected_of(twin), 1e-6)
    assert model.inputs == ("x",)
    assert list(model.weights) == ["scale", "captured", "steps", "mean"]
    assert model.outputs == ("mean_before", "scaled", "steps", "mean")
    assert model.artifact.inventory().aliases == (Alias((2,), 3, (), "may-alias"), Alias((3,), 4, (), "may-alias"))
    assert model.weights["mean"].tolist() == [0, 1, 2, 3]
    assert module.steps.numpy() == 3, "exporting updates nothing"


def test_weights_go_on_from_results() -> None:
    module, twin = Statistics(), Statistics()
    model = export(module.update)
    weights = dict(model.weights)
    for _ in range(3):
        results = results_of(type(model)(model.artifact, model.inputs, model.outputs, weights), [X])
        close(results, expected_of(twin), 1e-5)
        named = dict(zip(model.outputs, results, strict=True))
        weights = {name: named.get(name, value) for name, value in weights.items()}
    assert weights["steps"] == 6


def test_variables_are_arguments_in_the_order_in_which_they_are_captured() -> None:
    variables = [tf.Variable(np.full(size, size, np.float32), name=f"v{size}") for size in (5, 6, 7)]
    same = [tf.Variable(1.0, name="same"), tf.Variable(2.0, name="same")]
    tensor = tf.constant([1.0] * 8)

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        variables[2].assign_add(variables[2])
        return x + variables[0][0] + tf.reduce_sum(tensor)

    def function(x: tf.Tensor) -> tf.Tensor:
        x = x + same[1]
        x = inner(x)
        variables[1].assign(tf.ones(6))
        return x + same[0]

    model = export(function, VECTOR)
    assert [(name, value.shape) for name, value in model.weights.items()] == [
        ("same", ()),
        ("v7", (7,)),
        ("v5", (5,)),
        ("captured", (8,)),
        ("v6", (6,)),
        ("same_1", ()),
    ]
    assert model.weights["same"] == 2
    assert model.outputs == ("output0", "v7", "v6")
    close(results_of(model, [X]), [X + 16, np.full(7, 14, np.float32), np.ones(6, np.float32)], 0)


def test_a_function_without_outputs_has_the_new_value_alone() -> None:
    variable = tf.Variable(X, name="total")

    def function(x: tf.Tensor) -> None:
        variable.assign_add(x)

    model = check_model(lambda target: export(function, VECTOR, target=target), [X], [X + X], 0)
    assert model.outputs == ("total",)
    # The path of a program's only result is empty.
    assert model.artifact.inventory().aliases == (Alias((), 1, (), "may-alias"),)


def test_weights_become_constants() -> None:
    module = Statistics()
    x = np.stack([X, -X])
    model = check_model(
        lambda target: export(module.apply, target=target, weights="constants", batch_size=2),
        [x],
        [module.apply(x).numpy()],
        1e-6,
    )
    assert not model.weights
    assert model.artifact.inventory().functions[-1].arguments == ("tensor<2x4xf32>",)


@pytest.mark.parametrize(
    "value",
    [
        np.array([True, False, True]),
        np.array([True, True, True]),
        np.array(False),
        np.arange(20) % 3 == 0,
        np.array([1 + 2j, 3 - 4j], np.complex64),
        np.array([1.5, 2.5], tf.bfloat16.as_numpy_dtype),
        np.array([1, 250], np.uint8),
        np.array([-5, 1 << 50], np.int64),
        np.zeros((0, 3), np.float32),
        np.ones((2, 2), np.float16),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_values_of_every_type_become_constants(value: np.ndarray[Any, Any]) -> None:
    variable = tf.Variable(value, name="value")
    check_model(
        lambda target: export(lambda: tf.identity(variable), target=target, weights="constants"), [], [value], 0
    )


def test_variables_that_are_updated_do_not() -> None:
    module = Statistics()
    with pytest.raises(
        vt.InvalidInputError,
        match=r"assigns to steps, mean \(by AssignAddVariableOp at .*test_variables.py:\d+\), which cannot be c",
    ):
        export(module.update, weights="constants")


def test_a_saved_model_is_the_function_that_was_saved(tmp_path: Path) -> None:
    module, twin = Statistics(), Statistics()
    signatures = {"serving_default": module.apply, "update": module.update}
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=signatures)
    model = check_model(
        lambda target: export_saved_model(tmp_path / "saved", "update", target=target), [X], expected_of(twin), 1e-6
    )
    assert model.inputs == ("x",)
    assert list(model.weights) == ["scale", "captured", "steps", "mean"]
    assert model.outputs == ("mean_before", "scaled", "steps", "mean")
    x = np.stack([X, -X, X])
    check_model(
        lambda target: export_saved_model(tmp_path / "saved", target=target, batch_size=3, weights="constants"),
        [x],
        [module.apply(x).numpy()],
        1e-6,
    )


class ByHandle(tf.Module):
    """An optimizer of TensorFlow, whose ops take handles, of which the function does not know the variables."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.moments = tf.Variable(X), [tf.Variable(X * 0) for _ in range(2)]

    @tf.function(input_signature=[VECTOR])
    def step(self, gradient: tf.Tensor) -> tf.Tensor:
        handles = dict(zip(("var", "m", "v"), (each.handle for each in (self.weight, *self.moments)), strict=True))
        rates = dict.fromkeys(("lr", "beta1", "beta2", "epsilon", "beta1_power", "beta2_power"), 0.1)
        tf.raw_ops.ResourceApplyAdam(**handles, **rates, grad=gradient)
        return tf.reduce_sum(gradient)


def test_variables_that_a_function_has_by_their_handles_alone() -> None:
    module = ByHandle()
    model = export(module.step)
    assert [*model.outputs] == ["output0", "weight", "moments.0", "moments.1"]
    found = results_of(model, [X])
    total = module.step(X)
    close(found, [each.numpy() for each in (total, module.weight, *module.moments)], 1e-5)
