"""Models of Keras on the backend of this environment: what XLA gives for the artifact is what Keras gives.

Names and orders that stand here stand for every backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from support.exported_models import check_model, check_writing_options, results_of

import vhlo_tools as vt
from vhlo_tools.integrations.keras import export

#: What Keras itself does to read tensors of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

Array = np.ndarray[Any, Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def value_of(variable: Any) -> Array:
    value: Array = keras.ops.convert_to_numpy(keras.ops.copy(variable.value))
    return value


def expected_of(model: Any, *arguments: Any) -> list[Array]:
    """Return what Keras itself gives, its outputs in order."""
    arguments = keras.tree.map_structure(keras.ops.convert_to_tensor, list(arguments))
    return [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(model(*arguments, training=False))]


@pytest.fixture(autouse=True)
def seeded() -> None:
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)


def mlp() -> tuple[Any, Array]:
    model = keras.Sequential(
        [
            layers.Input((4,), name="features"),
            layers.Dense(8, activation="gelu"),
            layers.Dropout(0.5),
            layers.BatchNormalization(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return model, normal(2, 4)


def convolutional() -> tuple[Any, Array]:
    image = layers.Input((8, 8, 3), name="image")
    x = layers.Conv2D(4, 3, activation="relu", padding="same")(image)
    x = layers.MaxPooling2D()(x)
    x = layers.DepthwiseConv2D(3)(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, layers.Dense(2)(x)), normal(2, 8, 8, 3)


def attention() -> tuple[Any, Array]:
    tokens = layers.Input((6,), dtype="int32", name="tokens")
    x = layers.Embedding(10, 8)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(tokens, layers.Dense(3)(x)), np.array([[1, 2, 3, 4, 5, 6], [9, 8, 7, 0, 0, 1]], np.int32)


def recurrent() -> tuple[Any, Array]:
    model = keras.Sequential(
        [layers.Input((5, 3), name="series"), layers.LSTM(4, return_sequences=True), layers.GRU(2)]
    )
    return model, normal(2, 5, 3)


def upsampling() -> tuple[Any, Array]:
    model = keras.Sequential(
        [
            layers.Input((4, 4, 2), name="image"),
            layers.UpSampling2D(2),
            layers.Conv2DTranspose(3, 2),
            layers.ZeroPadding2D(),
        ]
    )
    return model, normal(2, 4, 4, 2)


@pytest.mark.parametrize("make", [mlp, convolutional, attention, recurrent, upsampling])
@pytest.mark.parametrize("weights", ["arguments", "constants"])
def test_a_model_gives_what_keras_gives(make: Callable[[], tuple[Any, Array]], weights: Any) -> None:
    model, x = make()
    exported = check_model(
        lambda target: export(model, target=target, weights=weights, batch_size=2), [x], expected_of(model, x), 1e-4
    )
    assert exported.inputs == (model.inputs[0].name,)
    assert exported.outputs == ("output0",)
    if weights == "constants":
        assert not exported.weights
        return
    assert list(exported.weights) == [each.path for each in model.weights]
    for each in model.weights:
        assert np.array_equal(exported.weights[each.path], value_of(each))


def test_weights_are_named_and_ordered_alike_on_every_backend() -> None:
    model, _ = mlp()
    assert list(export(model, weights="arguments", batch_size=1).weights) == [
        "sequential/dense/kernel",
        "sequential/dense/bias",
        "sequential/batch_normalization/gamma",
        "sequential/batch_normalization/beta",
        "sequential/batch_normalization/moving_mean",
        "sequential/batch_normalization/moving_variance",
        "sequential/dense_1/kernel",
        "sequential/dense_1/bias",
    ]


def test_inputs_and_outputs_are_in_the_order_of_trees_and_named_by_their_keys() -> None:
    b, a = layers.Input((4,), name="b"), layers.Input((3,), name="a")
    model = keras.Model({"b": b, "a": a}, {"y": layers.Dense(2)(b), "x": layers.Dense(2)(a)})
    first, second = normal(5, 4), normal(5, 3, seed=1)
    exported = check_model(
        lambda target: export(model, target=target, batch_size=5),
        [second, first],
        expected_of(model, {"b": first, "a": second}),
        1e-5,
    )
    assert exported.inputs == ("a", "b")
    assert exported.outputs == ("x", "y")


def test_a_list_of_outputs_is_numbered() -> None:
    x = layers.Input((4,), name="x")
    model = keras.Model([x], [layers.Dense(2)(x), x * 2])
    value = normal(1, 4)
    exported = check_model(
        lambda target: export(model, target=target, batch_size=1), [value], expected_of(model, [value]), 1e-5
    )
    assert exported.outputs == ("output0", "output1")


class Custom(keras.Model):
    """A model that does not say what its inputs are, with weights of its own, one of which nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = self.add_weight(shape=(7,), name="unused")
        self.scale = self.add_weight(shape=(), initializer="ones", trainable=False, name="scale")
        self.dense = layers.Dense(2)

    def call(self, pair: dict[str, Any], offset: Any) -> tuple[Any, Any]:
        return self.dense(pair["left"]) * self.scale + offset, pair["right"]


def test_a_model_that_was_not_called_is_built_of_example_inputs() -> None:
    model = Custom()
    pair = {"right": normal(2, 5), "left": normal(2, 3)}
    exported = export(model, pair, normal(2), weights="arguments")
    assert model.built
    arguments = [keras.tree.map_structure(keras.ops.convert_to_tensor, each) for each in (pair, normal(2))]
    expected = [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(model(*arguments))]
    checked = check_model(
        lambda target: export(model, pair, normal(2), target=target, weights="arguments"),
        [pair["left"], pair["right"], normal(2)],
        expected,
        1e-5,
    )
    assert checked.inputs == exported.inputs == ("pair.left", "pair.right", "offset")
    assert set(checked.weights) == {"custom/unused", "custom/scale", "custom/dense/kernel", "custom/dense/bias"}
    assert list(checked.weights) == [each.path for each in model.weights]


def test_exporting_changes_no_weights_and_later_training_no_export() -> None:
    model, _ = mlp()
    before = [value_of(each) for each in model.weights]
    exported = export(model, weights="arguments", batch_size=2)
    for each in model.weights:
        each.assign(keras.ops.ones_like(each.value))
    assert all(np.array_equal(one, other) for one, other in zip(before, exported.weights.values(), strict=True))


class Sampling(layers.Layer):
    """What a variational autoencoder does, in inference as well."""

    def __init__(self, seed: int | None = 1) -> None:
        super().__init__(name="sampling")
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, x: Any) -> Any:
        return x + keras.random.normal(keras.ops.shape(x), seed=self.seed_generator)


@pytest.mark.parametrize("weights", ["arguments", "constants"])
def test_random_numbers_in_inference_are_a_finding(weights: Any) -> None:
    x = layers.Input((4,), name="x")
    model = keras.Model(x, Sampling()(layers.Dense(4)(x)))
    if keras.backend.backend() == "torch":
        # Keras hides the generator from torch.export.
        with pytest.raises(vt.InvalidProgramError, match="torch.export cannot export functional"):
            export(model, batch_size=2, weights=weights)
        return
    exported = export(model, batch_size=2, weights=weights)
    (finding,) = (each for each in exported.findings if each.feature == "random_state")
    assert (finding.level, finding.op) == ("warning", "keras.random.normal")
    assert "draws from the state of" in finding.message
    assert finding.location is not None
    assert finding.location.file == __file__
    first, second = (results_of(exported, [normal(2, 4)])[0] for _ in range(2))
    assert np.array_equal(first, second)
    with pytest.raises(vt.InvalidProgramError, match=r"draws random numbers \(keras\.random\.normal at .*test_models"):
        export(model, batch_size=2, weights=weights, verify=True)


@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_results_are_compared_with_those_of_keras(weights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = mlp()
    for exported in (export(model, x, weights=weights), export(model, batch_size=2, weights=weights, verify=True)):
        # With JAX, what CHLO says in one op is rewritten.
        assert {each.feature for each in exported.findings} <= {"rewritten"}
    # A model that computes something else than what was traced.
    call, calls = type(model).__call__, []

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return call(self, *args, **kwargs) + 1

    monkeypatch.setattr(type(model), "__call__", wrong)
    export(model, batch_size=2, weights=weights)
    export(model, x, weights=weights, verify=False)
    assert not calls
    options: list[tuple[tuple[Any, ...], Any]] = [((x,), {}), ((), {"batch_size": 2, "verify": True})]
    for inputs, given in options:
        with pytest.raises(vt.VhloToolsError, match=r"does not compute what Keras does: output0\[0, 0\] is") as caught:
            export(model, *inputs, weights=weights, **given)
        assert type(caught.value).__name__ == "ProofError"


def test_strings_are_refused_with_the_layer_that_takes_them() -> None:
    text = layers.Input([2], dtype="string", name="text")
    model = keras.Model(text, layers.Lambda(lambda each: each, name="hashed")(text), name="model")
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(model, batch_size=2)
    (finding,) = caught.value.findings
    assert finding.op == "Lambda"
    assert finding.message == (
        "the input text of model is a tensor of strings, which StableHLO does not support: hashed (Lambda) takes it"
    )


class Counted(layers.Layer):
    def call(self, x: Any) -> Any:
        return keras.ops.histogram(x, 3, (0, 1))[0]


def test_what_a_layer_of_keras_says_is_said() -> None:
    x = layers.Input((4,), name="x")
    model = keras.Model(x, keras.ops.histogram(x, 3, (0, 1))[0])
    with pytest.raises(vt.InvalidProgramError, match=r"Input tensor must be 1-dimensional \(in Histogram\.call\(\)\)"):
        export(model, batch_size=2)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="an op that torch has, and no importer")
def test_a_refused_op_of_a_layer_has_no_line_of_this_package() -> None:
    with pytest.raises(vt.InvalidProgramError, match=r"aten\.histogram\.bin_ct") as caught:
        export(Counted(), normal(4))
    assert "integrations" not in str(caught.value)


def test_random_numbers_of_training_alone_are_no_finding() -> None:
    x = layers.Input((4,), name="x")
    model = keras.Model(x, layers.GaussianNoise(0.5)(layers.Dropout(0.5)(x)))
    assert not [each for each in export(model, batch_size=2).findings if each.feature == "random_state"]


@dataclass(frozen=True)
class Refusal:
    """How an export is asked for, and what is said."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    message: str


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal((), {}, r"the input features has the shape \(\?, 4\), .*: specify batch_size"),
        Refusal((), {"shapes": {"x": (1, 4)}}, "sequential has no input x: its inputs are features"),
        Refusal((), {"shapes": {"features": (1, 5)}}, r"which \(1, 5\) does not match"),
        Refusal(("four",), {}, "an example input of sequential is a str: expected an array"),
    ],
)
def test_inputs_that_are_refused(refusal: Refusal) -> None:
    model, _ = mlp()
    with pytest.raises(vt.InvalidInputError, match=refusal.message):
        export(model, *refusal.arguments, **refusal.options)


def test_a_model_that_does_not_say_what_its_inputs_are() -> None:
    with pytest.raises(vt.InvalidProgramError, match="custom does not specify its inputs: give an example of each"):
        export(Custom())


def test_a_model_that_cannot_be_built() -> None:
    with pytest.raises(vt.InvalidProgramError, match="Keras cannot build custom: "):
        export(Custom(), {"wrong": normal(2)}, normal(2))


def test_targets_that_are_too_old() -> None:
    x = layers.Input((4,), name="x")
    model = keras.Model(x, keras.ops.tan(x))
    with pytest.raises(vt.DowngradeError, match=r"functional cannot be written for 1\.3\.0"):
        export(model, target="1.3.0", batch_size=1)


def test_options_of_writing(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Activation(keras.ops.tan)])
    check_writing_options(partial(export, model, batch_size=1), tmp_path)
