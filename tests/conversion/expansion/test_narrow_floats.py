"""Floats of at most eight bits, held in wider floats."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.both_engines import function
from support.element_types import EVERY_TYPE
from support.expansions import ENGINES, check_same, check_same_on_devices, expanded
from support.narrow_programs import CONTROL_FLOW, STEP, narrow_program, region

import vhlo_tools as vt
from vhlo_tools.spec import known_features

_KINDS = ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ")
_SCALES = "f8E8M0FNU"
_EVERY = pytest.mark.parametrize("element", _KINDS)
_XLA_LACKS = {"f6E2M3FN", "f6E3M2FN"}


@cache
def _feature(element: str) -> str:
    return next(feature.id for feature in known_features() if f"{element}_v1" in feature.names)


def _engines(element: str) -> Any:
    return ("reference",) if element in _XLA_LACKS else ENGINES


def _all(element: str) -> np.ndarray[Any, Any]:
    """Return all values of a type, as f32 or f64."""
    kind, wide = EVERY_TYPE[element], np.float64 if element == _SCALES else np.float32
    bits = {"f4": 4, "f6": 6, "f8": 8}[element[:2]]
    values: np.ndarray[Any, Any] = np.arange(1 << bits, dtype=np.uint8).view(kind).astype(wide)
    return values


def _program(element: str, *parts: Any) -> str:
    return narrow_program(element, "f64" if element == _SCALES else "f32", *parts)


def _check(
    element: str, program: str, inputs: Sequence[Any], engines: Any = None, *, relaxed: bool = False, **bounds: Any
) -> vt.Artifact:
    artifact, _ = expanded(program, _feature(element), "0.9.0", relaxed=relaxed)
    check_same(program, artifact, [inputs], engines=engines or _engines(element), **bounds)
    return artifact


def _near(element: str) -> np.ndarray[Any, Any]:
    """Return numbers of f64 near the values of a type, and near the middles between two of them."""
    finite = np.unique(_all(element)[np.isfinite(_all(element))].astype(np.float64))
    beyond = np.array([2 * finite[-1] - finite[-2], 3 * finite[-1]])
    places = np.unique(np.concatenate([finite, beyond, -beyond]))
    places = np.sort(np.concatenate([places, (places[1:] + places[:-1]) / 2]))
    return np.concatenate([places, np.nextafter(places, np.inf), np.nextafter(places, -np.inf), [np.inf, np.nan]])


@pytest.mark.sample(3)
@_EVERY
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64", "i32", "i1"])
def test_conversions(element: str, source: str) -> None:
    numbers: np.ndarray[Any, Any]
    if source == "f64":
        numbers = _near(element)
    elif source == "f32":
        places = _near(element).astype(np.float32)
        numbers = np.concatenate([places, np.nextafter(places, np.float32(9)), np.nextafter(places, np.float32(-9))])
    elif source in ("f16", "bf16"):
        numbers = np.arange(1 << 16, dtype=np.uint16).view(EVERY_TYPE[source])
    elif source == "i32":
        numbers = np.concatenate([np.arange(-600, 600), 2 ** np.arange(31) - 1, 2 ** np.arange(30) * 3 // 2])
        numbers = numbers.astype(np.int32)
    else:
        numbers = np.array([True, False])
    size = numbers.size
    body = f"""%0 = stablehlo.convert %a : (tensor<{size}x{source}>) -> tensor<{size}x{element}>
      %1 = stablehlo.convert %0 : (tensor<{size}x{element}>) -> tensor<{size}xf32>
      %2 = stablehlo.convert %0 : (tensor<{size}x{element}>) -> tensor<{size}xf16>"""
    program = function(
        f"%a: tensor<{size}x{source}>", body, ["%1", "%2"], [f"tensor<{size}xf32>", f"tensor<{size}xf16>"]
    )
    if numbers.size < 1 << 16:
        _check(element, program, [numbers])
        return
    if "xla" in _engines(element):
        _check(element, program, [numbers], ["xla"])
    some = np.random.default_rng(1).permutation(numbers)[:2000]
    program = program.replace(f"<{size}x", f"<{some.size}x")
    _check(element, program, [some], ["reference"])


_BINARY = ("add", "divide", "maximum", "minimum", "multiply", "remainder", "subtract")
_UNARY = ("abs", "negate", "sign", "sqrt")
_INTEGRAL = ("ceil", "floor", "round_nearest_afz", "round_nearest_even")


def _pairs(element: str, engine: str) -> list[np.ndarray[Any, Any]]:
    """Return every pair of values; a part of them for the reference interpreter, which takes long."""
    values = [np.ascontiguousarray(each.ravel()) for each in np.meshgrid(_all(element), _all(element))]
    if engine == "xla":
        return values
    chosen = np.random.default_rng(0).permutation(values[0].size)[:3000]
    return [each[chosen] for each in values]


@pytest.mark.sample(2)
@_EVERY
def test_every_pair_of_values(element: str) -> None:
    for engine in _engines(element):
        values = _pairs(element, engine)
        size = f"{values[0].size}x"
        body = "\n".join(f"%{name} = stablehlo.{name} %a, %b : tensor<{size}E>" for name in _BINARY)
        names = [f"%{name}" for name in _BINARY]
        _check(element, _program(element, body, names, [size] * 2, [size] * len(names)), values, [engine])


@pytest.mark.sample(2)
@_EVERY
def test_every_value(element: str) -> None:
    values = _all(element)
    size = f"{values.size}x"
    for name in (*_UNARY, *_INTEGRAL):
        program = _program(element, f"%0 = stablehlo.{name} %a : tensor<{size}E>", ["%0"], [size], [size])
        engines = _engines(element)
        if element == "f8E3M4" and name in _INTEGRAL:
            # The reference interpreter returns NaN.
            engines = ("xla",)
        elif element == "f8E3M4" and name == "sqrt":
            # XLA rounds in f16 before.
            engines = ("reference",)
        _check(element, program, [values], engines)


@pytest.mark.sample(2)
@_EVERY
def test_comparisons(element: str) -> None:
    values = _pairs(element, "reference")
    size = f"{values[0].size}x"
    body = f"""%p = stablehlo.compare LT, %a, %b : (tensor<{size}E>, tensor<{size}E>) -> tensor<{size}i1>
      %q = stablehlo.compare NE, %a, %b, FLOAT : (tensor<{size}E>, tensor<{size}E>) -> tensor<{size}i1>
      %f = stablehlo.is_finite %a : (tensor<{size}E>) -> tensor<{size}i1>
      %1 = stablehlo.select %p, %a, %b : tensor<{size}i1>, tensor<{size}E>
      %2 = stablehlo.select %q, %a, %1 : tensor<{size}i1>, tensor<{size}E>
      %3 = stablehlo.select %f, %2, %1 : tensor<{size}i1>, tensor<{size}E>
      %4 = stablehlo.clamp %a, %b, %3 : tensor<{size}E>"""
    program = _program(element, body, ["%1", "%2", "%3", "%4"], [size] * 2, [size] * 4)
    # Of types with infinities, and of 4 bits, XLA takes ten seconds to compile the program before.
    engines = ENGINES if element.endswith("FNUZ") else ("reference",)
    artifact = _check(element, program, values, engines)
    for one, other in zip(*(vt.run(artifact, values, engine=engine) for engine in ENGINES), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("element", [name for name in _KINDS if name.startswith("f8")])
def test_bits(element: str) -> None:
    body = f"""%0 = stablehlo.bitcast_convert %a : (tensor<256xui8>) -> tensor<256x{element}>
      %1 = stablehlo.bitcast_convert %0 : (tensor<256x{element}>) -> tensor<256xi8>
      %2 = stablehlo.convert %0 : (tensor<256x{element}>) -> tensor<256xf32>"""
    program = function("%a: tensor<256xui8>", body, ["%1", "%2"], ["tensor<256xi8>", "tensor<256xf32>"])
    artifact, _ = expanded(program, _feature(element))
    bits = np.arange(256, dtype=np.uint8)
    expected = bits.view(EVERY_TYPE[element])
    is_nan = np.isnan(expected.astype(np.float32))
    for engine in ENGINES:
        found, numbers = vt.run(artifact, [bits], engine=engine)
        np.testing.assert_array_equal(found.view(np.uint8)[~is_nan], bits[~is_nan])
        assert np.isnan(found.view(EVERY_TYPE[element]).astype(np.float32)[is_nan]).all()
        np.testing.assert_array_equal(numbers, expected.astype(np.float32))
        np.testing.assert_array_equal(np.signbit(numbers[~is_nan]), np.signbit(expected.astype(np.float32)[~is_nan]))


@pytest.mark.sample(2)
@_EVERY
@pytest.mark.parametrize("count", [3, 101])
def test_constants(element: str, count: int) -> None:
    values = np.resize(_all(element)[np.isfinite(_all(element))], count)
    for numbers in (values, np.repeat(values[1:2], count)):
        text = ", ".join(map(repr, numbers.tolist()))
        body = f"%0 = stablehlo.constant dense<[{text}]> : tensor<{count}xE>"
        body += f"\n%i = stablehlo.iota dim = 0 : tensor<{count}xE>"
        artifact = _check(element, _program(element, body, ["%0", "%i"], [], [f"{count}x"] * 2), [])
        found = vt.run(artifact, [])[0]
        assert np.asarray(found).tobytes() == numbers.tobytes()


def test_constants_that_are_not_finite() -> None:
    body = "%0 = stablehlo.constant dense<[1.0, 0x78, 0xF8, 0x7C, -0.0]> : tensor<5xE>"
    artifact = _check("f8E4M3", _program("f8E4M3", body, ["%0"], [], ["5x"]), [])
    np.testing.assert_array_equal(vt.run(artifact, [])[0], np.array([1, np.inf, -np.inf, np.nan, -0.0], np.float32))


def _drawn(element: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    values = _all(element)
    middle = values[np.isfinite(values) & (np.abs(values) < 3) & (np.abs(values) > 0.1)]
    return np.random.default_rng(seed).choice(middle, shape)


@pytest.mark.sample(2)
@_EVERY
@pytest.mark.parametrize("name", ["add", "maximum"])
def test_reductions(element: str, name: str) -> None:
    body = f"""%z = stablehlo.constant dense<1.0> : tensor<E>
      %0 = "stablehlo.reduce"(%a, %z) {region(name)} {{dimensions = array<i64: 1>}}
        : (tensor<5x7xE>, tensor<E>) -> tensor<5xE>
      %1 = "stablehlo.reduce_window"(%a, %z) {region(name)} {{window_dimensions = array<i64: 2, 3>}}
        : (tensor<5x7xE>, tensor<E>) -> tensor<4x5xE>"""
    program = _program(element, body, ["%0", "%1"], ["5x7x"], ["5x", "4x5x"])
    # XLA rounds the steps of sums and products before in another way.
    engines = _engines(element) if name == "maximum" else ("reference",)
    artifact = _check(element, program, [_drawn(element, (5, 7), 1)], engines)
    for one, other in zip(*(vt.run(artifact, [_drawn(element, (5, 7), 1)], engine=by) for by in ENGINES), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sample(3)
@_EVERY
def test_moving_control_flow_and_calls(element: str) -> None:
    body = f"""{CONTROL_FLOW.replace("COUNT", "3")}
      %z = stablehlo.constant dense<1.0> : tensor<E>
      %r = stablehlo.reshape %c : (tensor<6xE>) -> tensor<2x3xE>
      %o = stablehlo.pad %r, %z, low = [0, 1], high = [1, 0], interior = [0, 1]
        : (tensor<2x3xE>, tensor<E>) -> tensor<3x6xE>
      %s = "stablehlo.sort"(%o) ({{ ^bb0(%x: tensor<E>, %y: tensor<E>):
        %u = stablehlo.compare LT, %x, %y : (tensor<E>, tensor<E>) -> tensor<i1>
        stablehlo.return %u : tensor<i1> }}) {{dimension = 1 : i64}} : (tensor<3x6xE>) -> tensor<3x6xE>"""
    program = _program(element, body, ["%s"], ["6x"] * 2, ["3x6x"], STEP)
    # XLA leaves roundings between ops out before.
    inputs = [_drawn(element, (6,), 2), _drawn(element, (6,), 3)]
    artifact = _check(element, program, inputs, ["reference"])
    one, other = (vt.run(artifact, inputs, engine=engine)[0] for engine in ENGINES)
    np.testing.assert_array_equal(one, other)


@pytest.mark.sample(3)
@_EVERY
@pytest.mark.parametrize("result", ["f32", "f64"])
def test_products_of_a_wide_type(element: str, result: str) -> None:
    body = f"""%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x9xE>, tensor<9x3xE>) -> tensor<4x3x{result}>
      %1 = stablehlo.convert %0 : (tensor<4x3x{result}>) -> tensor<4x3xE>"""
    program = _program(element, body, ["%1"], ["4x9x", "9x3x"], ["4x3x"])
    # XLA does not multiply 4-bit floats.
    engines = ("reference",) if element == "f4E2M1FN" else _engines(element)
    _check(element, program, [_drawn(element, (4, 9), 4), _drawn(element, (9, 3), 5)], engines)


@_EVERY
def test_sizes_that_are_known_at_run_time_only(element: str) -> None:
    body = "%0 = stablehlo.add %a, %a : tensor<?xE>"
    program = _program(element, body, ["%0"], ["?x"], ["?x"])
    _check(element, program, [_all(element)], ["reference"])


def test_scales() -> None:
    """Powers of two except the least one, which is subnormal in f32: XLA rounds the numbers above it in another way."""
    exponents = np.arange(-126, 128, dtype=np.float64)
    near = np.concatenate([2**exponents * part for part in (1, 1.25, 1.4999, 1.5, 1.5001, 1.75)])
    numbers = np.concatenate([near, [np.nan, np.inf, -1.0, -np.inf]])
    for source in ("f64", "f32", "bf16"):
        given = numbers.astype(EVERY_TYPE[source])
        size = f"{given.size}x"
        body = f"""%0 = stablehlo.convert %a : (tensor<{size}{source}>) -> tensor<{size}{_SCALES}>
          %1 = stablehlo.convert %0 : (tensor<{size}{_SCALES}>) -> tensor<{size}f64>"""
        program = function(f"%a: tensor<{size}{source}>", body, ["%1"], [f"tensor<{size}f64>"])
        artifact, _ = expanded(program, "mx_floats", "0.9.0")
        # The reference interpreter converts a NaN of the type to an infinity.
        check_same(program, artifact, [[given]], engines=["xla"])
        np.testing.assert_array_equal(
            vt.run(artifact, [given], engine="reference")[0], vt.run(artifact, [given], engine="xla")[0]
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_bits_of_scales(engine: Any) -> None:
    body = f"""%0 = stablehlo.bitcast_convert %a : (tensor<256xui8>) -> tensor<256x{_SCALES}>
      %1 = stablehlo.bitcast_convert %0 : (tensor<256x{_SCALES}>) -> tensor<256xui8>
      %2 = stablehlo.convert %0 : (tensor<256x{_SCALES}>) -> tensor<256xf64>"""
    program = function("%a: tensor<256xui8>", body, ["%1", "%2"], ["tensor<256xui8>", "tensor<256xf64>"])
    artifact, _ = expanded(program, "mx_floats", "0.9.0")
    bits = np.arange(256, dtype=np.uint8)
    found, numbers = vt.run(artifact, [bits], engine=engine)
    np.testing.assert_array_equal(found, bits)
    np.testing.assert_array_equal(numbers, bits.view(EVERY_TYPE[_SCALES]).astype(np.float64))


def test_scaling_of_blocks() -> None:
    """What microscaling formats are for: elements of four bits times the power of two of their block."""
    body = f"""%e = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xf4E2M1FN>
      %s = stablehlo.convert %b : (tensor<4xf32>) -> tensor<4x{_SCALES}>
      %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4x{_SCALES}>) -> tensor<4x8x{_SCALES}>
      %f = stablehlo.convert %e : (tensor<4x8xf4E2M1FN>) -> tensor<4x8xbf16>
      %u = stablehlo.convert %t : (tensor<4x8x{_SCALES}>) -> tensor<4x8xbf16>
      %r = stablehlo.multiply %f, %u : tensor<4x8xbf16>"""
    program = function("%a: tensor<4x8xf32>, %b: tensor<4xf32>", body, ["%r"], ["tensor<4x8xbf16>"])
    rng = np.random.default_rng(6)
    inputs = [rng.standard_normal((4, 8)).astype(np.float32) * 3, np.array([0.5, 1.7, 96, 2**-9], np.float32)]
    for target in ("1.7.0", "0.9.0"):
        artifact, _ = expanded(program, "mx_floats", target)
        check_same(program, artifact, [inputs])


_RELAXED = (
    *("cbrt", "cosine", "exponential", "exponential_minus_one", "log_plus_one", "logistic", "rsqrt", "sine", "tanh"),
)


@pytest.mark.sample(2)
@_EVERY
def test_relaxed(element: str) -> None:
    """Results within two values of those before: one for the approximation, one for its rounding before."""
    values = np.unique(np.abs(_drawn(element, (40,), 7)))
    size = f"{values.size}x"
    body = "\n".join(f"%{name} = stablehlo.{name} %a : tensor<{size}E>" for name in _RELAXED)
    program = _program(element, body, [f"%{name}" for name in _RELAXED], [size], [size] * len(_RELAXED))
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, "0.9.0", expand=True)
    for name in _RELAXED[:5]:
        assert f"stablehlo.{name}: how its results are rounded is up to the implementation" in str(refused.value)
    artifact, notes = expanded(program, _feature(element), relaxed=True)
    assert "relaxed: gives up how elementary functions" in notes[0].message
    order = np.unique(_all(element)[np.isfinite(_all(element))])
    for engine in _engines(element):
        before, after = (vt.run(each, [values], engine=engine) for each in (program, artifact))
        for name, one, other in zip(_RELAXED, before, after, strict=True):
            places = [np.searchsorted(order, each) for each in (one, other)]
            # The reference interpreter computes each step of logistic in the narrow type.
            assert np.abs(places[0] - places[1]).max() <= (4 if name == "logistic" else 2)


@pytest.mark.sample(3)
@_EVERY
def test_relaxed_products(element: str) -> None:
    body = """%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x9xE>, tensor<9x3xE>) -> tensor<4x3xE>"""
    program = _program(element, body, ["%0"], ["4x9x", "9x3x"], ["4x3x"])
    with pytest.raises(vt.DowngradeError, match=f"stablehlo.dot_general: how sums of {element} are rounded is up to"):
        vt.serialize(program, "0.9.0", expand=True)
    artifact, _ = expanded(program, _feature(element), relaxed=True)
    inputs = [_drawn(element, (4, 9), 8), _drawn(element, (9, 3), 9)]
    exact = (inputs[0].astype(np.float64) @ inputs[1].astype(np.float64)).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = exact.astype(EVERY_TYPE[element]).astype(np.float32)
    for engine in ENGINES:
        np.testing.assert_array_equal(vt.run(artifact, inputs, engine=engine)[0], expected)


@pytest.mark.sample(2)
@pytest.mark.parametrize("element", ["f8E4M3", "f8E4M3FNUZ", "f8E5M2FNUZ"])
@pytest.mark.parametrize("name", ["maximum", "add"])
def test_between_devices(element: str, name: str) -> None:
    body = f"""%0 = "stablehlo.all_reduce"(%a) {region(name)} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<4xE>) -> tensor<4xE>
      %1 = "stablehlo.all_gather"(%0) {{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<4xE>) -> tensor<8xE>"""
    program = _program(element, body, ["%1"], ["4x"], ["8x"])
    # A sum of two numbers is rounded once.
    artifact, _ = expanded(program, _feature(element), relaxed=name == "add")
    inputs = [[_drawn(element, (4,), seed)] for seed in (10, 11)]
    check_same_on_devices(program, artifact, inputs, replicas=2, expected_by="reference")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "%0 = stablehlo.custom_call @f(%a) : (tensor<4xE>) -> tensor<4xE>",
            "stablehlo.custom_call: the target of the custom call expects f8E4M3FNUZ",
        ),
        (
            "%1 = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4xE>, tensor<4xE>) -> tensor<4xi1>"
            "%0 = stablehlo.select %1, %a, %a : tensor<4xi1>, tensor<4xE>",
            "stablehlo.compare: a total order tells NaNs apart by their bits, and only that they are NaN is held",
        ),
        (
            "%0 = stablehlo.reduce_precision %a, format = e3m1 : tensor<4xE>",
            "stablehlo.reduce_precision: no rule says how to compute it on wider values of f8E4M3FNUZ",
        ),
    ],
    ids=["custom call", "total order", "precision"],
)
def test_refusals(body: str, reason: str) -> None:
    program = _program("f8E4M3FNUZ", body, ["%0"], ["4x"], ["4x"])
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, "0.9.0", expand=True)
    assert f"it cannot be expanded: {reason}" in str(refused.value)


def test_arithmetic_on_scales_is_relaxed() -> None:
    program = _program(_SCALES, "%0 = stablehlo.multiply %a, %a : tensor<4xE>", ["%0"], ["4x"], ["4x"])
    with pytest.raises(vt.DowngradeError, match="f8E8M0FNU has neither zero nor negative numbers, and engines differ"):
        vt.serialize(program, "1.7.0", expand=True)
    artifact, _ = expanded(program, "mx_floats", relaxed=True)
    check_same(program, artifact, [[np.array([1.0, 0.25, 2.0**40, np.nan])]], engines=["xla"])


def test_what_is_of_other_types_remains() -> None:
    type_ = "tensor<4xf8E4M3FN>"
    program = function(f"%a: {type_}", f"%0 = stablehlo.add %a, %a : {type_}", ["%0"], [type_])
    assert vt.serialize(program, "0.9.0", expand=True, allow_relaxed="all") == vt.serialize(program, "0.9.0")
