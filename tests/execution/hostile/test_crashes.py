"""Whatever ends a process that hands it to the interpreter itself: here an answer, or an error that names it.

The program is evaluated in the process of the tests, or on its behalf; either way the next one is evaluated after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest

import vhlo_tools as vt

F32 = "tensor<4xf32>"
X = np.array([1, 2, 3, 4], np.float32)
ZERO, SEVEN = np.int32(0), np.int32(7)
REPLICAS = "replica_groups = dense<0> : tensor<1x1xi64>"
CHANNEL = "#stablehlo.channel_handle<handle = 1, type = {}>"


@dataclass(frozen=True)
class Way:
    """A program that the interpreter crashes on, and what becomes of it."""

    name: str  # what it crashes on
    program: str  # the functions
    inputs: Sequence[Any] = (X,)  # what ``main`` is given
    answer: Sequence[Any] = ()  # what it returns, or
    error: type[vt.VhloToolsError] | None = None  # the error that is raised, and
    message: str = field(default="")  # what that says


def main(body: str, result: str = "%0", kind: str = F32, arguments: str = f"%a: {F32}") -> str:
    return f"func.func @main({arguments}) -> {kind} {{\n {body}\n return {result} : {kind}\n}}"


def answered(name: str, answer: Any, body: str, inputs: Sequence[Any] = (X,), **options: str) -> Way:
    return Way(name, main(body, **options), inputs, [answer])


def refused(name: str, message: str, body: str, inputs: Sequence[Any] = (X,), **options: str) -> Way:
    return Way(name, main(body, **options), inputs, error=vt.EngineError, message=message)


def collective(name: str, body: str, answer: Any = X, **options: str) -> Way:
    """Return a way of a program of several devices, which one device runs too."""
    return answered(name, answer, body, **options)


def summed(name: str) -> str:
    scalar = "tensor<f32>"
    return f"""%0 = "stablehlo.{name}"(%a) ({{ ^bb0(%p: {scalar}, %q: {scalar}):
      %s = stablehlo.add %p, %q : {scalar}
      stablehlo.return %s : {scalar} }})"""


TOKEN = "!stablehlo.token"
PAIR = f"tuple<{F32}, {F32}>"
MATRIX = np.array([[4, 2], [2, 5]], np.float32)
TRIANGLE = np.tril(MATRIX)
BATCH = "tensor<1x2x2xf32>"
M, I8 = "tensor<2x2xf32>", "tensor<2x2xi8>"
OF_MATRIX = {"kind": M, "arguments": f"%a: {M}"}
INTEGERS = {"kind": "tensor<i32>", "arguments": "%a: tensor<i32>, %b: tensor<i32>"}
COMPLEX = "tensor<4xcomplex<f32>>"
VECTOR = "tensor<1xf32>"
NORMALIZED = (
    f"%s = stablehlo.constant dense<2.0> : {VECTOR} %o = stablehlo.constant dense<1.0> : {VECTOR}\n"
    f"%r = stablehlo.reshape %a : ({F32}) -> tensor<4x1xf32>"
)
FEATURES = "{epsilon = 0.0 : f32, feature_index = 1 : i64}"
CENTRED = (X - X.mean()) / X.std()

ANSWERED: Final = (
    answered("chlo", np.sinh(X), f"%0 = chlo.sinh %a : {F32} -> {F32}"),
    answered("arith constant", X + 1, f"%c = arith.constant dense<1.0> : {F32} %0 = stablehlo.add %a, %c : {F32}"),
    Way("a token argument", f"func.func @main(%a: {TOKEN}) -> {TOKEN} {{ return %a : {TOKEN} }}", [None], [None]),
    answered("create_token", None, f"%0 = stablehlo.create_token : {TOKEN}", kind=TOKEN),
    answered("a tuple result", (X, X), f"%0 = stablehlo.tuple %a, %a : {PAIR}", kind=PAIR),
    answered(
        "a tuple argument",
        2 * X,
        f"%0 = stablehlo.get_tuple_element %a[1] : ({PAIR}) -> {F32}",
        [(X, 2 * X)],
        arguments=f"%a: {PAIR}",
    ),
    answered(
        "rng_bit_generator",
        np.array([1, 2], np.uint64),
        "%0, %1 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) "
        "-> (tensor<2xui64>, tensor<0xui32>)",
        [np.array([1, 2], np.uint64)],
        kind="tensor<2xui64>",
        arguments="%a: tensor<2xui64>",
    ),
    answered(
        "cholesky", np.linalg.cholesky(MATRIX), f"%0 = stablehlo.cholesky %a, lower = true : {M}", [MATRIX], **OF_MATRIX
    ),
    answered(
        "triangular_solve in batches",
        np.linalg.solve(TRIANGLE, np.eye(2, dtype=np.float32))[None],
        '%0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : ({BATCH}, {BATCH}) -> {BATCH}",
        [TRIANGLE[None], np.eye(2, dtype=np.float32)[None]],
        kind=BATCH,
        arguments=f"%a: {BATCH}, %b: {BATCH}",
    ),
    answered(
        "convolution of integers to floats",
        np.array([[200, 250], [250, 325]], np.float32),
        f"%0 = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {{}} {{batch_group_count = "
        f"1 : i64, feature_group_count = 1 : i64}} : ({I8}, {I8}) -> {M}",
        [np.array([[10, 10], [10, 15]], np.int8)],
        kind=M,
        arguments=f"%a: {I8}",
    ),
    answered(
        "batch_norm_inference",
        ((X - 1) * 2 + 1)[:, None],
        f'{NORMALIZED} %0 = "stablehlo.batch_norm_inference"(%r, %s, %o, %o, %o) {FEATURES} : '
        f"(tensor<4x1xf32>, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}) -> tensor<4x1xf32>",
        kind="tensor<4x1xf32>",
    ),
    answered(
        "batch_norm_training",
        (CENTRED * 2 + 1)[:, None],
        f'{NORMALIZED} %0, %m, %v = "stablehlo.batch_norm_training"(%r, %s, %o) {FEATURES} : '
        f"(tensor<4x1xf32>, {VECTOR}, {VECTOR}) -> (tensor<4x1xf32>, {VECTOR}, {VECTOR})",
        kind="tensor<4x1xf32>",
    ),
    answered(
        "batch_norm_grad",
        np.array([10], np.float32),
        f'{NORMALIZED} %0, %g, %b = "stablehlo.batch_norm_grad"(%r, %s, %o, %o, %r) {FEATURES} : (tensor<4x1xf32>, '
        f"{VECTOR}, {VECTOR}, {VECTOR}, tensor<4x1xf32>) -> (tensor<4x1xf32>, {VECTOR}, {VECTOR})",
        result="%b",
        kind=VECTOR,
    ),
    answered(
        "fft of real numbers",
        np.fft.rfft(X).astype(np.complex64),
        f"%0 = stablehlo.fft %a, type = RFFT, length = [4] : ({F32}) -> tensor<3xcomplex<f32>>",
        kind="tensor<3xcomplex<f32>>",
    ),
    answered("complex results", X + 1j * X, f"%0 = stablehlo.complex %a, %a : {COMPLEX}", kind=COMPLEX),
    answered(
        "bounded dimensions",
        X[:3] * 2,
        "%0 = stablehlo.add %a, %a : tensor<?xf32, #stablehlo.bounds<4>>",
        [X[:3]],
        kind="tensor<?xf32, #stablehlo.bounds<4>>",
        arguments="%a: tensor<?xf32, #stablehlo.bounds<4>>",
    ),
    answered("division by zero", np.int32(-1), "%0 = stablehlo.divide %a, %b : tensor<i32>", [SEVEN, ZERO], **INTEGERS),
    answered("remainder by zero", SEVEN, "%0 = stablehlo.remainder %a, %b : tensor<i32>", [SEVEN, ZERO], **INTEGERS),
    answered(
        "the quotient that overflows",
        np.int32(-(2**31)),
        "%0 = stablehlo.divide %a, %b : tensor<i32>",
        [np.int32(-(2**31)), np.int32(-1)],
        **INTEGERS,
    ),
    answered(
        "a tuple within the program",
        X,
        f"%t = stablehlo.tuple %a, %a : {PAIR} %u = stablehlo.optimization_barrier %a : {F32} "
        f"%0 = stablehlo.get_tuple_element %t[0] : ({PAIR}) -> {F32}",
    ),
)

REFUSED: Final = (
    refused("custom_call", "cannot run stablehlo.custom_call", f"%0 = stablehlo.custom_call @f(%a) : ({F32}) -> {F32}"),
    refused(
        "arith",
        "cannot run arith.maxnumf: it does not support ops of the dialect",
        f"%0 = arith.maxnumf %a, %a : {F32}",
    ),
    refused(
        "infeed",
        "cannot run stablehlo.infeed",
        f"%t = stablehlo.after_all : {TOKEN} "
        f'%0, %1 = "stablehlo.infeed"(%t) {{infeed_config = ""}} : ({TOKEN}) -> ({F32}, {TOKEN})',
    ),
    refused(
        "outfeed",
        "cannot run stablehlo.outfeed",
        f"%t = stablehlo.after_all : {TOKEN} "
        f'%0 = "stablehlo.outfeed"(%a, %t) {{outfeed_config = ""}} : ({F32}, {TOKEN}) -> {TOKEN}',
        kind=TOKEN,
    ),
    refused(
        "send",
        "cannot run stablehlo.send",
        f"%t = stablehlo.after_all : {TOKEN} "
        f'%0 = "stablehlo.send"(%a, %t) {{channel_handle = {CHANNEL.format(2)}, is_host_transfer = true}} : '
        f"({F32}, {TOKEN}) -> {TOKEN}",
        kind=TOKEN,
    ),
    refused(
        "recv",
        "cannot run stablehlo.recv",
        f"%t = stablehlo.after_all : {TOKEN} "
        f'%0, %1 = "stablehlo.recv"(%t) {{channel_handle = {CHANNEL.format(3)}, is_host_transfer = true}} : '
        f"({TOKEN}) -> ({F32}, {TOKEN})",
    ),
    refused(
        "rng",
        "cannot run stablehlo.rng: its results are implementation-defined",
        "%s = stablehlo.constant dense<4> : tensor<1xi64> %l = stablehlo.constant dense<0.0> : tensor<f32> "
        "%h = stablehlo.constant dense<1.0> : tensor<f32> %0 = stablehlo.rng %l, %h, %s, distribution = UNIFORM : "
        f"(tensor<f32>, tensor<f32>, tensor<1xi64>) -> {F32}",
    ),
    refused(
        "an external function",
        "func.func: the function is declared, but not defined",
        f"%0 = func.call @g(%a) : ({F32}) -> {F32}\n return %0 : {F32} }}\n"
        f"func.func private @g({F32}) -> {F32}\n func.func @h(%a: {F32}) -> {F32} {{",
        result="%a",
    ),
    refused(
        "a shape that nothing resolves",
        "do not resolve the shape of its result tensor<\\?xf32>|does not match these inputs",
        "%0 = stablehlo.dynamic_iota %a, dim = 0 : (tensor<1xi64>) -> tensor<?xf32> %s = func.call @f(%0) : "
        "(tensor<?xf32>) -> tensor<?xf32> return %s : tensor<?xf32> }\n"
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { %0 = func.call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>",
        [np.array([3])],
        kind="tensor<?xf32>",
        arguments="%a: tensor<1xi64>",
    ),
    collective("partition_id", "%0 = stablehlo.partition_id : tensor<ui32>", np.uint32(0), kind="tensor<ui32>"),
    collective("replica_id", "%0 = stablehlo.replica_id : tensor<ui32>", np.uint32(0), kind="tensor<ui32>"),
    collective("all_reduce", f"{summed('all_reduce')} {{{REPLICAS}}} : ({F32}) -> {F32}"),
    collective(
        "reduce_scatter", f"{summed('reduce_scatter')} {{{REPLICAS}, scatter_dimension = 0 : i64}} : ({F32}) -> {F32}"
    ),
    collective(
        "all_gather", f'%0 = "stablehlo.all_gather"(%a) {{all_gather_dim = 0 : i64, {REPLICAS}}} : ({F32}) -> {F32}'
    ),
    collective(
        "all_to_all",
        '%0 = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 '
        f": i64, {REPLICAS}}} : ({F32}) -> {F32}",
    ),
    collective("collective_broadcast", f'%0 = "stablehlo.collective_broadcast"(%a) {{{REPLICAS}}} : ({F32}) -> {F32}'),
    collective(
        "collective_permute",
        '%0 = "stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>} : '
        f"({F32}) -> {F32}",
    ),
    refused(
        "dense_resource",
        "does not contain the bytes of its dense_resource",
        f"%0 = stablehlo.constant dense_resource<weights> : {F32}",
    ),
    refused(
        "an index result", "numpy cannot represent values of type index", "%0 = arith.constant 4 : index", kind="index"
    ),
    refused(
        "a tensor of indices",
        "numpy cannot represent values of type tensor<4xindex>",
        "%0 = arith.constant dense<4> : tensor<4xindex>",
        kind="tensor<4xindex>",
    ),
)

MALFORMED: Final = (
    Way("too few inputs", main("", "%a"), [], error=vt.InvalidInputError, message="requires 1 inputs, got 0"),
    Way("too many inputs", main("", "%a"), [X, X], error=vt.InvalidInputError, message="requires 1 inputs, got 2"),
    Way("another type", main("", "%a"), [X.astype(int)], error=vt.InvalidInputError, message=r"int64\[4\].*float32"),
    Way("another shape", main("", "%a"), [X[:3]], error=vt.InvalidInputError, message=r"float32\[3\].*float32\[4\]"),
    Way("no main", main("", "%a").replace("main", "f"), error=vt.InvalidProgramError, message="no function @main"),
    Way(
        "invalid", main("%0 = stablehlo.add %a : 3"), error=vt.InvalidProgramError, message="custom op|expected|is not"
    ),
)


def assert_equal(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
    elif isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    else:
        assert (found.dtype, found.shape) == (np.asarray(expected).dtype, np.asarray(expected).shape)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


#: What the interpreter has, and with it crashes, since some release only.
NEEDS = {"triangular_solve in batches": "stablehlo.triangular_solve", "fft of real numbers": "stablehlo.fft"}


@pytest.mark.sample(16)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=way.name, marks=pytest.mark.needs(NEEDS[way.name]) if way.name in NEEDS else ())
        for way in (*ANSWERED, *REFUSED, *MALFORMED)
    ],
)
def test_it_ends_in_an_answer_or_in_an_error_and_the_next_run_is_right(way: Way) -> None:
    if way.error is None:
        results = vt.run(way.program, way.inputs, engine="reference")
        for found, expected in zip(results, way.answer, strict=True):
            assert_equal(found, expected)
    else:
        with pytest.raises(way.error, match=way.message):
            vt.run(way.program, way.inputs, engine="reference")
    assert_equal(vt.run(main(f"%0 = stablehlo.add %a, %a : {F32}"), [X], engine="reference")[0], X + X)
