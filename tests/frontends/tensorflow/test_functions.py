"""Functions of TensorFlow: what XLA gives for the artifact is what TensorFlow gives, at any version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from support.exported_models import check_model, check_writing_options

from vhlo_tools.integrations.exported_model import ExportedModel
from vhlo_tools.integrations.tensorflow import export

Array = np.ndarray[Any, Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def uniform(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32)


def positive_definite(size: int) -> Array:
    root = normal(size, size)
    return (root @ root.T + size * np.eye(size)).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A function, and what it is called with."""

    function: Callable[..., Any]  # the function
    inputs: tuple[Any, ...]  # its inputs
    tolerance: float = 1e-5  # of the comparison
    #: whether TensorFlow compiles it for the comparison too, for its own kernels give something else: random numbers of
    #: another generator, singular vectors of another sign
    compiled: bool = False
    oldest: str = "0.9.0"  # the oldest version that it reaches


def doubled_five_times(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y * 2.0), (tf.constant(0), x))[1]


def two_branches(choice: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.cond(choice, lambda: x * 2, lambda: x - 1)


def three_branches(choice: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.switch_case(choice, [lambda: x, lambda: x * 2, lambda: -x])


def autograph(x: tf.Tensor) -> tf.Tensor:
    if tf.reduce_sum(x) > 0:
        for _ in tf.range(3):
            x = x + 1
    return x


def gradient(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.gelu(x) ** 2)
    return tape.gradient(y, x)


CASES = {
    "erf": Case(tf.math.erf, (normal(8),)),
    "erfc": Case(tf.math.erfc, (normal(8),)),
    "lgamma": Case(tf.math.lgamma, (uniform(8),)),
    "digamma": Case(tf.math.digamma, (uniform(8),)),
    "gelu": Case(tf.nn.gelu, (normal(8),)),
    "tan": Case(tf.tan, (uniform(8),), oldest="1.4.0"),
    "asin": Case(tf.asin, (uniform(8),)),
    "sinh": Case(tf.sinh, (normal(8),)),
    "acosh": Case(lambda x: tf.acosh(x + 1), (uniform(8),)),
    "convolution": Case(lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), (normal(1, 8, 8, 3), normal(3, 3, 3, 4)), 1e-4),
    "matmul": Case(lambda a, b: tf.matmul(a, b, transpose_b=True), (normal(3, 4), normal(5, 4))),
    "einsum": Case(lambda a, b: tf.einsum("bij,bjk->bik", a, b), (normal(2, 3, 4), normal(2, 4, 5))),
    "softmax": Case(tf.nn.softmax, (normal(3, 4),)),
    "top_k": Case(lambda x: tuple(tf.math.top_k(x, 2)), (normal(3, 8),)),
    "sort": Case(tf.sort, (normal(8),)),
    "argsort": Case(tf.argsort, (normal(8),)),
    "argmax": Case(tf.argmax, (normal(8),)),
    "cumsum": Case(tf.cumsum, (normal(8),)),
    "while_loop": Case(doubled_five_times, (normal(4),)),
    "cond": Case(two_branches, (np.array(True), normal(4))),
    "switch": Case(three_branches, (np.array(2, np.int32), normal(4))),
    "autograph": Case(autograph, (uniform(4),)),
    "gradient": Case(gradient, (normal(4),)),
    "gather": Case(tf.gather, (normal(8, 3), np.array([1, 5, 5, 0], np.int32))),
    "gather_nd": Case(tf.gather_nd, (normal(8, 3), np.array([[1, 2], [0, 0]], np.int32))),
    "scatter": Case(lambda i, x: tf.scatter_nd(i, x, [8]), (np.array([[1], [5], [1]], np.int32), normal(3))),
    "segment_sum": Case(
        lambda x, i: tf.math.unsorted_segment_sum(x, i, 3), (normal(5), np.array([0, 1, 0, 2, 1], np.int32))
    ),
    "stateless_normal": Case(
        lambda seed: tf.random.stateless_normal([4], seed), (np.array([1, 2], np.int32),), compiled=True
    ),
    "stateless_uniform": Case(
        lambda seed: tf.random.stateless_uniform([4], seed), (np.array([1, 2], np.int32),), compiled=True
    ),
    "complex": Case(lambda a, b: tf.abs(tf.complex(a, b) * tf.complex(b, a)), (normal(4), normal(4, seed=1))),
    "complex_result": Case(tf.complex, (normal(4), normal(4, seed=1))),
    "rfft": Case(tf.signal.rfft, (normal(8),)),
    "batch_norm": Case(
        lambda x, mean, variance: tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3),
        (normal(2, 4), normal(4), uniform(4)),
    ),
    "fused_batch_norm": Case(
        lambda x, scale, offset: tuple(tf.compat.v1.nn.fused_batch_norm(x, scale, offset)[:1]),
        (normal(1, 2, 2, 4), normal(4), normal(4)),
        1e-4,
    ),
    "resize": Case(lambda x: tf.image.resize(x, [8, 8]), (normal(1, 4, 4, 3),)),
    "resize_nearest": Case(lambda x: tf.image.resize(x, [8, 8], method="nearest"), (normal(1, 4, 4, 3),)),
    "max_pool": Case(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), (normal(1, 4, 4, 3),)),
    "cholesky": Case(tf.linalg.cholesky, (positive_definite(3),)),
    "triangular_solve": Case(tf.linalg.triangular_solve, (np.tril(positive_definite(3)), normal(3, 1))),
    "qr": Case(lambda x: tuple(tf.linalg.qr(x)), (positive_definite(3),), 1e-4),
    "svd": Case(lambda x: tuple(tf.linalg.svd(x)), (normal(3, 3),), 1e-4, compiled=True),
    # Of bounded size: as many as there are in the input at most.
    "unique": Case(lambda x: tf.unique(x)[0], (np.array([3, 1, 3, 3], np.float32),)),
    "where": Case(lambda x: tf.where(x > 0), (normal(6),)),
    "bfloat16": Case(lambda x: tf.cast(x, tf.bfloat16) * 2, (normal(4),)),
    "float64": Case(tf.sqrt, (uniform(4).astype(np.float64),), 1e-12),
    "int64": Case(lambda x: x // 3, (np.array([-7, 5, 1 << 40], np.int64),), 0),
    "uint8": Case(tf.bitwise.bitwise_xor, (np.array([1, 255], np.uint8), np.array([3, 3], np.uint8)), 0),
    "fake_quantization": Case(tf.quantization.fake_quant_with_min_max_args, (normal(8),)),
    "assertion": Case(lambda x: (tf.debugging.assert_positive(x), x * 2)[1], (uniform(4),)),
    "unused_input": Case(lambda x, y: x + 1, (normal(4), normal(3))),
    "identity": Case(lambda x: x, (normal(4),)),
    "no_inputs": Case(lambda: tf.constant(1.0), ()),
    "large_constant": Case(lambda x: x + normal(64, 64), (normal(64, 64, seed=1),)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_what_tensorflow_gives(name: str) -> None:
    case = CASES[name]
    expected = tf.nest.flatten(tf.function(case.function, jit_compile=case.compiled)(*map(tf.constant, case.inputs)))
    model = check_model(
        lambda target: export(case.function, *case.inputs, target=target, name=name),
        case.inputs,
        [each.numpy() for each in expected],
        case.tolerance,
    )
    assert str(model.artifact.requirements().downgradable_to) == case.oldest
    assert not model.weights


def test_inputs_and_outputs_are_in_the_order_of_nests_and_named_by_their_paths() -> None:
    def function(batch: dict[str, Any], pair: tuple[Any, Any], flag: bool = False) -> dict[str, Any]:
        assert flag
        return {"sum": batch["x"] + batch["a"][1], "more": [pair[0] * 2, (pair[1], None)]}

    spec = tf.TensorSpec([2], tf.float32)
    arguments = ({"x": spec, "a": (spec, spec)}, (spec, spec), True)
    a, b, c, d, e = (normal(2, seed=seed) for seed in range(5))
    model = check_model(
        lambda target: export(function, *arguments, target=target), (a, b, c, d, e), (d * 2, e, c + b), 0
    )
    assert model.inputs == ("batch.a.0", "batch.a.1", "batch.x", "pair.0", "pair.1")
    assert model.outputs == ("more.0", "more.1.0", "sum")


def test_outputs_without_names_have_numbers() -> None:
    spec = tf.TensorSpec([2], tf.float32)
    assert export(lambda x: x * 2, spec).outputs == ("output0",)
    assert export(lambda x: (x, x * 2), spec).outputs == ("output0", "output1")
    assert export(lambda *x: x[0] + x[1], spec, spec).inputs == ("x_0", "x_1")


def exported(function: Any, *arguments: Any, **options: Any) -> ExportedModel:
    """Export a function, of which the last argument is the target."""
    *arguments_of_function, target = arguments
    return export(function, *arguments_of_function, target=target, **options)


def test_every_kind_of_function_is_taken() -> None:
    x, spec = normal(4), tf.TensorSpec([4], tf.float32)

    class Module(tf.Module):
        @tf.function(input_signature=[spec])
        def method(self, x: tf.Tensor) -> tf.Tensor:
            return x * 2

    module, staged = Module(), tf.function(lambda x: x * 2)
    for function, arguments in (
        (lambda x: x * 2, (spec,)),
        (lambda x: x * 2, (x,)),
        (lambda x: x * 2, (tf.constant(x),)),
        (staged, (spec,)),
        (staged.get_concrete_function(spec), ()),
        (module.method, ()),
        (module.method, (spec,)),
        (module.method.get_concrete_function(), ()),
    ):
        model = check_model(partial(exported, function, *arguments), [x], [x * 2], 0)
        assert model.inputs == ("x",)


def test_shapes_that_are_open_take_sizes() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None], tf.float32)])
    def function(matrix: tf.Tensor, vector: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matvec(matrix, vector)

    matrix, vector = normal(2, 3), normal(3)
    for options in ({"shapes": {"matrix": (2, 3), "vector": (3,)}}, {"shapes": {"matrix": (2, 3)}, "batch_size": 3}):
        check_model(partial(exported, function, **options), [matrix, vector], [matrix @ vector], 1e-5)
    # The shapes of arguments are more than those of the signature.
    check_model(partial(exported, function, matrix, vector), [matrix, vector], [matrix @ vector], 1e-5)


def test_options_of_writing(tmp_path: Path) -> None:
    check_writing_options(partial(export, tf.tan, np.ones(3, np.float32)), tmp_path)
