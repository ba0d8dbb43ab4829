"""Arithmetic that is lowered for the interpreter gives what XLA gives."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

# Division of integers gives what XLA gives, also by zero, wherever it stands

INTEGERS: dict[str, Any] = {
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
    **{f"{sign}i{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("op", ["divide", "remainder"])
@pytest.mark.parametrize("element", INTEGERS)
def test_extremes_and_zeros(element: str, op: str) -> None:
    bits, signed = int(element.lstrip("ui")), element.startswith("i")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    numbers = [0, 1, low, high, -1 if signed else 2]
    pairs = list(itertools.product(numbers, numbers))
    dividends, divisors = (
        np.array([pair[each] for pair in pairs], np.uint64 if element == "ui64" else np.int64).astype(INTEGERS[element])
        for each in (0, 1)
    )
    kind = tensor(dividends, element)
    text = function(f"%a: {kind}, %b: {kind}", f"%0 = stablehlo.{op} %a, %b : {kind}", ["%0"], [kind])
    (found,), (expected,) = run_on_both(text, [dividends, divisors])
    assert found.tobytes() == expected.tobytes()
    for (dividend, divisor), value in zip(pairs, found, strict=True):
        if divisor == 0:
            assert int(value) == (dividend if op == "remainder" else -1 if signed else high)


def test_in_the_body_of_a_reduction() -> None:
    text = function(
        "%a: tensor<4xi32>",
        """%c = stablehlo.constant dense<100> : tensor<i32>
        %0 = "stablehlo.reduce"(%a, %c) ({
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %q = stablehlo.divide %x, %y : tensor<i32>
          stablehlo.return %q : tensor<i32>
        }) {dimensions = array<i64: 0>} : (tensor<4xi32>, tensor<i32>) -> tensor<i32>""",
        ["%0"],
        ["tensor<i32>"],
    )
    assert vt.run(text, [[5, 0, 2, 3]])[0] == 0  # 100 / 5 / 0 / 2 / 3 = -1 / 2 / 3
    assert vt.run(text, [[1, 2, 5, 0]])[0] == -1


def test_in_a_loop_and_in_a_function() -> None:
    text = """
    func.func private @f(%a: tensor<i8>, %b: tensor<i8>) -> tensor<i8> {
      %0 = stablehlo.remainder %a, %b : tensor<i8>
      return %0 : tensor<i8>
    }
    func.func @main(%a: tensor<i8>) -> tensor<i8> {
      %one = stablehlo.constant dense<1> : tensor<i8>
      %0:2 = stablehlo.while(%n = %a, %r = %a) : tensor<i8>, tensor<i8> cond {
        %zero = stablehlo.constant dense<0> : tensor<i8>
        %c = stablehlo.compare GE, %n, %zero : (tensor<i8>, tensor<i8>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %m = stablehlo.subtract %n, %one : tensor<i8>
        %q = func.call @f(%a, %n) : (tensor<i8>, tensor<i8>) -> tensor<i8>
        stablehlo.return %m, %q : tensor<i8>, tensor<i8>
      }
      return %0#1 : tensor<i8>
    }"""
    assert vt.run(text, [7])[0] == 7


@pytest.mark.parametrize("divisor", ["dense<3>", "dense<[3, 0]>", "dense<0>"])
def test_by_constants(divisor: str) -> None:
    kind = "tensor<2xi32>"
    body = f"%c = stablehlo.constant {divisor} : {kind} %0 = stablehlo.divide %a, %c : {kind}"
    (found,), (expected,) = run_on_both(function(f"%a: {kind}", body, ["%0"], [kind]), [np.array([7, -7], np.int32)])
    assert np.array_equal(found, expected)


# Comparisons by total order, against XLA: what is no number has its place, and so has each zero

FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def special(dtype: Any) -> np.ndarray[Any, Any]:
    """Return one of each kind of float, with both signs."""
    positive = np.array([0, float(np.spacing(np.zeros((), dtype))), 1, 2, np.inf, np.nan]).astype(dtype)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("element", FLOATS)
def test_every_pair_is_ordered_as_by_xla(element: str) -> None:
    one, other = np.meshgrid(*[special(FLOATS[element])] * 2)
    kind, truth = (f"tensor<12x12x{each}>" for each in (element, "i1"))
    ops = [
        f"%{number} = stablehlo.compare {direction}, %a, %b, TOTALORDER : ({kind}, {kind}) -> {truth}"
        for number, direction in enumerate(DIRECTIONS)
    ]
    results = [f"%{number}" for number in range(len(ops))]
    text = function(f"%a: {kind}, %b: {kind}", "\n".join(ops) + "\n", results, [truth] * len(ops))
    found, expected = run_on_both(text, [one, other])
    assert len(found) == len(DIRECTIONS)
    for each, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, wanted)


def test_sorting_puts_nan_behind_infinity() -> None:
    kind, scalar = "tensor<7xf32>", "tensor<f32>"
    compare = f"stablehlo.compare LT, %p, %q, TOTALORDER : ({scalar}, {scalar}) -> tensor<i1>"
    sort = (
        f'"stablehlo.sort"(%a) <{{dimension = 0 : i64}}> ({{ ^bb0(%p: {scalar}, %q: {scalar}): %c = {compare} '
        f"stablehlo.return %c : tensor<i1> }}) : ({kind}) -> {kind}"
    )
    values = np.array([np.nan, 1, np.inf, 0.0, -np.inf, -0.0, -2], np.float32)
    (found,), (expected,) = run_on_both(function(f"%a: {kind}", f"%0 = {sort}", ["%0"], [kind]), [values])
    assert found.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(found, [-np.inf, -2, -0.0, 0.0, 1, np.inf, np.nan])


def test_comparisons_of_numbers_know_one_zero_and_no_order_of_nan() -> None:
    kind, truth = "tensor<2xf32>", "tensor<2xi1>"
    op = f"stablehlo.compare EQ, %a, %b, FLOAT : ({kind}, {kind}) -> {truth}"
    text = function(f"%a: {kind}, %b: {kind}", f"%0 = {op}", ["%0"], [truth])
    values = np.array([0, np.nan], np.float32)
    (found,), _ = run_on_both(text, [values, -values])
    np.testing.assert_array_equal(found, [True, False])


# Convolutions to another type than that of their operands, against XLA

TYPES: dict[str, Any] = {
    "i8": np.int8,
    "i32": np.int32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("element", "result"),
    [("i8", "i32"), ("i8", "bf16"), ("i8", "f32"), ("i32", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f32")],
)
def test_products_are_of_the_type_of_the_result(element: str, result: str) -> None:
    one = np.arange(-60, 60, 3).reshape(2, 4, 5).astype(TYPES[element])
    other = np.arange(24).reshape(3, 4, 2).astype(TYPES[element])
    kinds = f"tensor<2x4x5x{element}>", f"tensor<3x4x2x{element}>"
    made = f"tensor<2x3x4x{result}>"
    op = (
        "stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({', '.join(kinds)}) -> {made}"
    )
    text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", f"%0 = {op}", ["%0"], [made])
    (found,), (expected,) = run_on_both(text, [one, other])
    assert found.dtype == expected.dtype == TYPES[result]
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=2e-2 if result == "bf16" else 1e-6)
    assert abs(expected.astype(float)).max() > 127


def test_results_of_fewer_numbers_are_rounded_once() -> None:
    kind, narrow = "tensor<1x3xf32>", "tensor<1x1xf16>"
    op = (
        "stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[o, i]->[b, f], window = {} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({kind}, {kind}) -> {narrow}"
    )
    values = np.array([[60000, 60000, -60000]], np.float32)
    (found,), _ = run_on_both(
        function(f"%a: {kind}, %b: {kind}", f"%0 = {op}", ["%0"], [narrow]), [values, np.ones_like(values)]
    )
    np.testing.assert_array_equal(found, np.array([[60000]], np.float16))


@pytest.mark.long
@pytest.mark.parametrize(("element", "result"), [("f32", "f32"), ("i8", "i32")])
def test_results_in_every_order_of_dimensions(element: str, result: str) -> None:
    one = np.arange(2 * 3 * 5 * 6).reshape(2, 3, 5, 6).astype(TYPES[element])
    other = np.arange(4 * 3 * 2 * 3).reshape(4, 3, 2, 3).astype(TYPES[element])
    kinds = f"tensor<2x3x5x6x{element}>", f"tensor<4x3x2x3x{element}>"
    sizes = {"b": 2, "f": 4, "0": 4, "1": 4}
    for order in itertools.permutations(sizes):
        made = f"tensor<{'x'.join(str(sizes[each]) for each in order)}x{result}>"
        op = (
            f"stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[{', '.join(order)}], "
            "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
            f": ({', '.join(kinds)}) -> {made}"
        )
        text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", f"%0 = {op}", ["%0"], [made])
        (found,), (expected,) = run_on_both(text, [one, other])
        np.testing.assert_array_equal(found, expected, str(order))


# Short forms of products, sums and selections, against numpy, and against XLA where it takes them


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize(("one", "other"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))])
def test_dot(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    a, b = draw(*one), draw(*other)
    expected = np.asarray(a @ b)
    kinds = [tensor(each, "f32") for each in (a, b, expected)]
    op = f"%0 = stablehlo.dot %a, %b, precision = [HIGHEST, DEFAULT] : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"
    text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]])
    for (found,) in run_on_both(text, [a, b]):
        assert np.array_equal(found, expected)


def test_broadcast() -> None:
    a = draw(3)
    op = "%0 = stablehlo.broadcast %a, sizes = [2, 1] : (tensor<3xf32>) -> tensor<2x1x3xf32>"
    text = function("%a: tensor<3xf32>", op, ["%0"], ["tensor<2x1x3xf32>"])
    for (found,) in run_on_both(text, [a]):
        assert np.array_equal(found, np.broadcast_to(a, (2, 1, 3)))


@pytest.mark.parametrize(
    ("config", "one", "other"),
    [
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,jk->ki", (2, 3), (3, 4)),
        ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
        ("ij,kj->", (2, 3), (4, 3)),
        ("i,j->ij", (2,), (3,)),
        ("ijk,j->i", (2, 3, 4), (3,)),
        ("...ij,...jk->...ik", (5, 6, 2, 3), (5, 6, 3, 4)),
        ("i...,i->...", (2, 3, 4), (2,)),
        (",ij->ji", (), (2, 3)),
    ],
)
def test_einsum(config: str, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    a, b = draw(*one), draw(*other)
    expected = np.asarray(np.einsum(config, a, b))
    kinds = [tensor(each, "f32") for each in (a, b, expected)]
    op = f'%0 = stablehlo.einsum %a, %b, config = "{config}" : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]]), [a, b])
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("config", "shape"), [("ijk->ki", (2, 3, 4)), ("ij->", (2, 3)), ("i...->...i", (2, 3, 4))])
def test_unary_einsum(config: str, shape: tuple[int, ...]) -> None:
    a = draw(*shape)
    expected = np.asarray(np.einsum(config, a))
    kinds = [tensor(each, "f32") for each in (a, expected)]
    op = f'%0 = "stablehlo.unary_einsum"(%a) {{einsum_config = "{config}"}} : ({kinds[0]}) -> {kinds[1]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}", op, ["%0"], [kinds[1]]), [a])
    assert np.array_equal(found, expected)


def test_a_diagonal_is_refused_by_name() -> None:
    op = '%0 = "stablehlo.unary_einsum"(%a) {einsum_config = "ii->i"} : (tensor<2x2xf32>) -> tensor<2xf32>'
    with pytest.raises(vt.EngineError, match=r"unary_einsum.*the form 'ii' of a tensor with 2 dimensions"):
        vt.run(function("%a: tensor<2x2xf32>", op, ["%0"], ["tensor<2xf32>"]), [draw(2, 2)])


@pytest.mark.parametrize(
    ("shape", "indices", "dim", "batch"),
    [
        ((5, 3), [4, 0, 9, 1], 0, 0),
        ((3, 5), [4, -1], 1, 0),
        ((5, 3), [[1, 2], [3, 0]], 0, 0),
        ((2, 5, 3), [[1, 2, 4], [3, 0, 0]], 1, 1),
        ((2, 3, 5), [[1, 2], [3, 0]], 2, 1),
        ((5,), 3, 0, 0),
    ],
)
def test_torch_index_select(shape: tuple[int, ...], indices: Any, dim: int, batch: int) -> None:
    a, chosen = draw(*shape), np.array(indices, np.int32)
    # Indices out of range are those nearest to them.
    clipped = np.clip(chosen, 0, shape[dim] - 1)
    if batch:
        expected = np.stack([np.take(each, index, dim - 1) for each, index in zip(a, clipped, strict=True)])
    else:
        expected = np.asarray(np.take(a, clipped, dim))
    kinds = tensor(a, "f32"), tensor(chosen, "i32"), tensor(expected, "f32")
    attributes = f"{{dim = {dim} : i64, batch_dims = {batch} : i64}}"
    op = f'%0 = "stablehlo.torch_index_select"(%a, %b) {attributes} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]]), [a, chosen])
    assert np.array_equal(found, expected)


# Batch normalization, against XLA

TOLERANCES = {"f16": 2e-3, "f32": 2e-6, "f64": 1e-14}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("element", "shape", "feature"),
    [(element, (2, 3, 4, 3), 1) for element in TOLERANCES] + [("f32", (5, 4), 1), ("f32", (6,), 0), ("f32", (0, 4), 1)],
    ids=str,
)
@pytest.mark.parametrize("name", ["inference", "training", "grad"])
def test_batch_norm(name: str, shape: tuple[int, ...], feature: int, element: str) -> None:
    chance = np.random.default_rng(0)
    dtype = np.dtype(f"float{element[1:]}")
    operand, gradient = (chance.normal(size=shape).astype(dtype) for _ in range(2))
    scale, offset, mean, variance = (abs(chance.normal(size=shape[feature])).astype(dtype) for _ in range(4))
    inputs, results = {
        "inference": ([operand, scale, offset, mean, variance], [operand]),
        "training": ([operand, scale, offset], [operand, mean, variance]),
        "grad": ([operand, scale, mean, variance, gradient], [operand, scale, offset]),
    }[name]
    takes, gives = ([tensor(each, element) for each in arrays] for arrays in (inputs, results))
    names = [f"%a{index}" for index in range(len(takes))]
    held = f"epsilon = 0.001 : f32, feature_index = {feature} : i64"
    op = f'"stablehlo.batch_norm_{name}"({", ".join(names)}) {{{held}}} : ({", ".join(takes)}) -> ({", ".join(gives)})'
    text = function(
        ", ".join(f"{name}: {kind}" for name, kind in zip(names, takes, strict=True)),
        f"%0:{len(gives)} = {op}",
        [f"%0#{index}" for index in range(len(gives))],
        gives,
    )
    found, expected = run_on_both(text, inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCES[element], atol=10 * TOLERANCES[element])
