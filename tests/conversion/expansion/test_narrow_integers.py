"""2-bit integers, held in 8-bit ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.both_engines import function
from support.element_types import TYPES
from support.expansions import ENGINES, check_same, check_same_on_devices, expanded
from support.narrow_programs import CONTROL_FLOW, STEP, narrow_program, region

import vhlo_tools as vt

FEATURE = "i2"
_VALUES = {"i2": (-2, -1, 0, 1), "ui2": (0, 1, 2, 3)}
_BOTH = pytest.mark.parametrize("element", ["i2", "ui2"])


def _computed(element: str, *parts: Any) -> str:
    """Return a program whose arguments and results are of 8 bits, and whose body is of 2 bits."""
    return narrow_program(element, element.replace("2", "8"), *parts)


def _pairs(element: str) -> list[np.ndarray[Any, Any]]:
    kind = TYPES[element.replace("2", "8")]
    return [each.ravel() for each in np.meshgrid(*[np.array(_VALUES[element], kind)] * 2)]


def _drawn(element: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).choice(_VALUES[element], shape).astype(TYPES[element.replace("2", "8")])


def _check(program: str, inputs: Sequence[Any], *, xla_can: bool = True, **options: Any) -> vt.Artifact:
    """Check that a program has the same results before and after, on both engines.

    If XLA cannot run the program before, the results of the reference interpreter are expected.
    """
    artifact, _ = expanded(program, FEATURE)
    assert expanded(program, FEATURE, "0.9.0")[0].version == vt.Version("0.9.0")
    if xla_can:
        check_same(program, artifact, [inputs], **options)
        return artifact
    expected = vt.run(program, inputs, engine="reference")
    for engine in ENGINES:
        for one, other in zip(expected, vt.run(artifact, inputs, engine=engine), strict=True):
            np.testing.assert_array_equal(one, other)
    return artifact


_BINARY: tuple[str, ...] = (
    *("add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left"),
    *("shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)


@_BOTH
def test_every_pair_of_values(element: str) -> None:
    type_ = f"tensor<16x{element}>"
    body = "\n".join(f"%{name} = stablehlo.{name} %a, %b : {type_}" for name in _BINARY)
    _check(
        _computed(element, body, [f"%{name}" for name in _BINARY], ["16x"] * 2, ["16x"] * len(_BINARY)), _pairs(element)
    )


@_BOTH
def test_every_value(element: str) -> None:
    unary = ["count_leading_zeros", "negate", "not", "popcnt", *(["abs", "sign"] if element == "i2" else [])]
    type_ = f"tensor<16x{element}>"
    body = "\n".join(f"%{name} = stablehlo.{name} %a : {type_}" for name in unary)
    other = "ui2" if element == "i2" else "i2"
    body += f"""
      %0 = stablehlo.bitcast_convert %a : ({type_}) -> tensor<16x{other}>
      %1 = stablehlo.convert %b : ({type_}) -> tensor<16x{other}>
      %2 = stablehlo.add %0, %1 : tensor<16x{other}>
      %bits = stablehlo.bitcast_convert %2 : (tensor<16x{other}>) -> {type_}
      %p = stablehlo.compare LT, %a, %b : ({type_}, {type_}) -> tensor<16xi1>
      %chosen = stablehlo.select %p, %a, %b : tensor<16xi1>, {type_}
      %clamped = stablehlo.clamp %chosen, %a, %b : {type_}"""
    names = [*unary, "bits", "chosen", "clamped"]
    _check(_computed(element, body, [f"%{name}" for name in names], ["16x"] * 2, ["16x"] * len(names)), _pairs(element))


_SOURCES = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "f16", "bf16", "f32", "f64")


def _source(element: str) -> np.ndarray[Any, Any]:
    if element == "i1":
        return np.array([True, False] * 8)
    if "i" in element:
        info = np.iinfo(TYPES[element])
        return np.array([*range(8), *range(120, 124), info.max, info.min, info.max // 2, info.min // 3], TYPES[element])
    numbers = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 2.5, 3.9, 4, -2.9, 300, -1e4, 6e4]
    return np.array(numbers).astype(TYPES[element])


@pytest.mark.sample(4)
@_BOTH
@pytest.mark.parametrize("other", _SOURCES)
def test_conversions(element: str, other: str) -> None:
    there, back = f"(tensor<16x{other}>) -> tensor<16x{element}>", f"(tensor<16x{element}>) -> tensor<16x{other}>"
    body = f"%0 = stablehlo.convert %a : {there}\n%1 = stablehlo.convert %0 : {back}"
    program = function(f"%a: tensor<16x{other}>", body, ["%1"], [f"tensor<16x{other}>"])
    _check(program, [_source(other)])


@_BOTH
def test_conversions_of_complex_numbers(element: str) -> None:
    body = f"%0 = stablehlo.convert %a : (tensor<4xcomplex<f32>>) -> tensor<4x{element}>"
    body += f"\n%1 = stablehlo.convert %0 : (tensor<4x{element}>) -> tensor<4xcomplex<f32>>"
    program = function("%a: tensor<4xcomplex<f32>>", body, ["%1"], ["tensor<4xcomplex<f32>>"])
    _check(program, [np.array([1.5 + 2j, -3, 2.9, 0.4j], np.complex64)])


@pytest.mark.sample(2)
@_BOTH
@pytest.mark.parametrize("count", [1, 3, 100, 101, 500])
def test_constants(element: str, count: int) -> None:
    values = _drawn(element, (count,), count)
    for numbers in (values, np.repeat(values[:1], count)):
        text = ", ".join(map(str, numbers))
        body = f"%0 = stablehlo.constant dense<[{text}]> : tensor<{count}x{element}>"
        body += f"\n%i = stablehlo.iota dim = 0 : tensor<{count}x{element}>"
        artifact = _check(_computed(element, body, ["%0", "%i"], [], [f"{count}x"] * 2), [])
        np.testing.assert_array_equal(vt.run(artifact, [])[0], numbers)


@_BOTH
def test_moving(element: str) -> None:
    body = """
      %z = stablehlo.constant dense<1> : tensor<E>
      %s = stablehlo.constant dense<1> : tensor<i32>
      %i = stablehlo.constant dense<[[0], [2]]> : tensor<2x1xi32>
      %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4xE>) -> tensor<4x3xE>
      %1 = stablehlo.reshape %0 : (tensor<4x3xE>) -> tensor<2x6xE>
      %2 = stablehlo.pad %1, %z, low = [0, 1], high = [1, 0], interior = [0, 0]
        : (tensor<2x6xE>, tensor<E>) -> tensor<3x7xE>
      %3 = stablehlo.slice %2 [0:3, 0:4] : (tensor<3x7xE>) -> tensor<3x4xE>
      %4 = stablehlo.concatenate %3, %a, dim = 0 : (tensor<3x4xE>, tensor<3x4xE>) -> tensor<6x4xE>
      %5 = stablehlo.reverse %4, dims = [0] : tensor<6x4xE>
      %6 = stablehlo.dynamic_slice %5, %s, %s, sizes = [3, 3]
        : (tensor<6x4xE>, tensor<i32>, tensor<i32>) -> tensor<3x3xE>
      %7 = stablehlo.dynamic_update_slice %a, %6, %s, %s
        : (tensor<3x4xE>, tensor<3x3xE>, tensor<i32>, tensor<i32>) -> tensor<3x4xE>
      %8 = "stablehlo.gather"(%7, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}
        : (tensor<3x4xE>, tensor<2x1xi32>) -> tensor<2x4xE>
      %9 = stablehlo.broadcast_in_dim %8, dims = [0, 2] : (tensor<2x4xE>) -> tensor<2x3x4xE>"""
    _check(_computed(element, body, ["%7", "%9"], ["3x4x"], ["3x4x", "2x3x4x"]), [_drawn(element, (3, 4), 1)])


@pytest.mark.sample(2)
@_BOTH
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "and"])
def test_reductions(element: str, name: str) -> None:
    body = f"""%z = stablehlo.constant dense<1> : tensor<E>
      %i = stablehlo.constant dense<[[2], [0], [2]]> : tensor<3x1xi32>
      %u = stablehlo.slice %a [0:3, 0:7] : (tensor<5x7xE>) -> tensor<3x7xE>
      %0 = "stablehlo.reduce"(%a, %z) {region(name)} {{dimensions = array<i64: 1>}}
        : (tensor<5x7xE>, tensor<E>) -> tensor<5xE>
      %1 = "stablehlo.reduce_window"(%a, %z) {region(name)} {{window_dimensions = array<i64: 2, 3>}}
        : (tensor<5x7xE>, tensor<E>) -> tensor<4x5xE>
      %2 = "stablehlo.scatter"(%a, %i, %u) {region(name)} {{scatter_dimension_numbers =
        #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>}}
        : (tensor<5x7xE>, tensor<3x1xi32>, tensor<3x7xE>) -> tensor<5x7xE>"""
    _check(_computed(element, body, ["%0", "%1", "%2"], ["5x7x"], ["5x", "4x5x", "5x7x"]), [_drawn(element, (5, 7), 2)])


@_BOTH
def test_sort(element: str) -> None:
    body = """%0 = "stablehlo.sort"(%a) ({ ^bb0(%x: tensor<E>, %y: tensor<E>):
        %p = stablehlo.compare GT, %x, %y : (tensor<E>, tensor<E>) -> tensor<i1>
        stablehlo.return %p : tensor<i1> }) {dimension = 1 : i64} : (tensor<5x7xE>) -> tensor<5x7xE>"""
    _check(_computed(element, body, ["%0"], ["5x7x"], ["5x7x"]), [_drawn(element, (5, 7), 3)], xla_can=False)


@pytest.mark.sample(2)
@_BOTH
@pytest.mark.parametrize("result", ["E", "i32"])
def test_products(element: str, result: str) -> None:
    body = """%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x9xE>, tensor<9x3xE>) -> tensor<4x3xR>
      %1 = stablehlo.convert %0 : (tensor<4x3xR>) -> tensor<4x3xE>
      %2 = stablehlo.reshape %a : (tensor<4x9xE>) -> tensor<1x12x3xE>
      %3 = stablehlo.reshape %b : (tensor<9x3xE>) -> tensor<3x3x3xE>
      %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x12x3xE>, tensor<3x3x3xE>) -> tensor<1x10x3xR>
      %5 = stablehlo.convert %4 : (tensor<1x10x3xR>) -> tensor<1x10x3xE>"""
    body = body.replace("xR>", f"x{result}>")
    _check(
        _computed(element, body, ["%1", "%5"], ["4x9x", "9x3x"], ["4x3x", "1x10x3x"]),
        [_drawn(element, (4, 9), 4), _drawn(element, (9, 3), 5)],
        xla_can=False,
    )


@_BOTH
def test_control_flow_calls_and_tuples(element: str) -> None:
    body = CONTROL_FLOW.replace("COUNT", "5") + "%o = stablehlo.optimization_barrier %c : tensor<6xE>"
    _check(
        _computed(element, body, ["%o"], ["6x"] * 2, ["6x"], STEP), [_drawn(element, (6,), 6), _drawn(element, (6,), 7)]
    )


@_BOTH
def test_sizes_that_are_known_at_run_time_only(element: str) -> None:
    wide = element.replace("2", "8")
    body = f"""%0 = stablehlo.convert %a : (tensor<?x{wide}>) -> tensor<?x{element}>
      %1 = stablehlo.add %0, %0 : tensor<?x{element}>
      %2 = stablehlo.convert %1 : (tensor<?x{element}>) -> tensor<?x{wide}>"""
    program = function(f"%a: tensor<?x{wide}>", body, ["%2"], [f"tensor<?x{wide}>"])
    _check(program, [_drawn(element, (9,), 8)], engines=["reference"])


@pytest.mark.sample(3)
@_BOTH
@pytest.mark.parametrize("name", ["add", "multiply", "minimum", "maximum"])
def test_between_devices(element: str, name: str) -> None:
    body = f"""%0 = "stablehlo.all_reduce"(%a) {region(name)} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<4xE>) -> tensor<4xE>
      %1 = "stablehlo.all_gather"(%0) {{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<4xE>) -> tensor<8xE>
      %2 = "stablehlo.collective_permute"(%1) {{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}}
        : (tensor<8xE>) -> tensor<8xE>"""
    program = _computed(element, body, ["%2"], ["4x"], ["8x"])
    artifact, _ = expanded(program, FEATURE)
    inputs = [[_drawn(element, (4,), seed)] for seed in (9, 10)]
    # The reference interpreter's results are those of the specification; XLA has collectives of few types.
    check_same_on_devices(program, artifact, inputs, replicas=2, expected_by="reference")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "%0 = stablehlo.custom_call @f(%a) : (tensor<4xi2>) -> tensor<4xi2>",
            "stablehlo.custom_call: the target of the custom call expects i2",
        ),
        (
            "%1 = stablehlo.reshape %a : (tensor<4xi2>) -> tensor<2x2xi2>"
            "%2 = stablehlo.bitcast_convert %1 : (tensor<2x2xi2>) -> tensor<2xi4>"
            "%3 = stablehlo.bitcast_convert %2 : (tensor<2xi4>) -> tensor<2x2xi2>"
            "%0 = stablehlo.reshape %3 : (tensor<2x2xi2>) -> tensor<4xi2>",
            "stablehlo.bitcast_convert: elements of another number of bits share the bits of several",
        ),
        (
            "%s = stablehlo.constant dense<4> : tensor<1xi64> %l = stablehlo.constant dense<0> : tensor<i2>"
            "%0 = stablehlo.rng %l, %l, %s, distribution = UNIFORM"
            " : (tensor<i2>, tensor<i2>, tensor<1xi64>) -> tensor<4xi2>",
            "stablehlo.rng: no rule says how to compute it on wider values of i2",
        ),
    ],
    ids=["custom call", "bits", "random"],
)
def test_refusals(body: str, reason: str) -> None:
    program = _computed("i2", body, ["%0"], ["4x"], ["4x"])
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, "1.1.0", expand=True)
    assert f"it cannot be expanded: {reason}" in str(refused.value)


def test_what_is_of_other_types_remains() -> None:
    program = function("%a: tensor<4xi4>", "%0 = stablehlo.add %a, %a : tensor<4xi4>", ["%0"], ["tensor<4xi4>"])
    assert vt.serialize(program, "1.1.0", expand=True) == vt.serialize(program, "1.1.0")
