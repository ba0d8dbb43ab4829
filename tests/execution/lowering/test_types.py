"""Narrow floats and quantized tensors are to the interpreter what they are to XLA, or by the specification."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

# Floats of four and six bits: every value in and out, and arithmetic where there is no infinity

ELEMENTS: dict[str, tuple[Any, int]] = {
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 16),
    "f6E2M3FN": (ml_dtypes.float6_e2m3fn, 64),
    "f6E3M2FN": (ml_dtypes.float6_e3m2fn, 64),
}
NUMBERS = np.array([np.nan, np.inf, -np.inf, 1e10, -1e10, 1.5, 2.5, -0.0, 0.0, -3.0, 0.3], np.float32)


def every(element: str) -> np.ndarray[Any, Any]:
    dtype, count = ELEMENTS[element]
    return np.arange(count, dtype=np.uint8).view(dtype)


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_value_goes_in_and_out(element: str) -> None:
    array = every(element)
    kind = f"tensor<{array.size}x{element}>"
    (result,) = vt.run(function(f"%a: {kind}", "", ["%a"], [kind]), [array])
    assert (result.dtype, result.tobytes()) == (array.dtype, array.tobytes())


@pytest.mark.parametrize("element", ELEMENTS)
def test_arithmetic_is_that_of_ml_dtypes(element: str) -> None:
    array = every(element)
    one, other = np.repeat(array, array.size), np.tile(array, array.size)
    kind = f"tensor<{one.size}x{element}>"
    ops: dict[str, Any] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
    body = " ".join(f"%{name} = stablehlo.{name} %a, %b : {kind}\n" for name in ops)
    text = function(f"%a: {kind}, %b: {kind}", body, [f"%{name}" for name in ops], [kind] * len(ops))
    for found, compute in zip(vt.run(text, [one, other]), ops.values(), strict=True):
        with np.errstate(all="ignore"):
            expected = compute(one.astype(np.float32), other.astype(np.float32))
            # Nothing over nothing is zero, of a sign that is left open.
            expected = np.where(np.isnan(expected), 0, expected).astype(one.dtype)
        assert np.array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("element", ELEMENTS)
def test_rounding(element: str) -> None:
    array = every(element)
    kind = f"tensor<{array.size}x{element}>"
    ops: dict[str, Any] = {"floor": np.floor, "ceil": np.ceil, "round_nearest_even": np.round}
    body = " ".join(f"%{name} = stablehlo.{name} %a : {kind}\n" for name in ops)
    text = function(f"%a: {kind}", body, [f"%{name}" for name in ops], [kind] * len(ops))
    for found, compute in zip(vt.run(text, [array]), ops.values(), strict=True):
        expected = compute(array.astype(np.float32)).astype(array.dtype)
        assert np.array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_conversions_are_those_of_xla() -> None:
    wide, narrow = "tensor<11xf32>", "tensor<11xf4E2M1FN>"
    body = f"""%0 = stablehlo.convert %a : ({wide}) -> {narrow}
    %1 = stablehlo.floor %0 : {narrow}
    %2 = stablehlo.convert %0 : ({narrow}) -> {wide}
    %3 = stablehlo.convert %1 : ({narrow}) -> {wide}"""
    found, expected = run_on_both(function(f"%a: {wide}", body, ["%2", "%3"], [wide, wide]), [NUMBERS])
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("element", ["f6E2M3FN", "f6E3M2FN"])
def test_what_is_too_great_becomes_the_greatest(element: str) -> None:
    wide, narrow = "tensor<11xf32>", f"tensor<11x{element}>"
    text = function(f"%a: {wide}", f"%0 = stablehlo.convert %a : ({wide}) -> {narrow}", ["%0"], [narrow])
    with np.errstate(invalid="ignore"):
        expected = NUMBERS.astype(ELEMENTS[element][0])
    assert vt.run(text, [NUMBERS])[0].tobytes() == expected.tobytes()


# Quantized programs against the formulas of the specification, in numpy

#: Storage, its least and greatest number.
STORAGES: dict[str, tuple[Any, int, int]] = {
    "i8": (np.int8, -128, 127),
    "u8": (np.uint8, 0, 255),
    "i8<-127:127>": (np.int8, -127, 127),
    "i16": (np.int16, -(2**15), 2**15 - 1),
    "u16": (np.uint16, 0, 2**16 - 1),
    "i32": (np.int32, -(2**31), 2**31 - 1),
}
SCALE, ZERO = np.float32(0.1), 3


def quantized(numbers: np.ndarray[Any, Any], storage: str) -> np.ndarray[Any, Any]:
    dtype, low, high = STORAGES[storage]
    steps = np.clip(numbers / SCALE + np.float32(ZERO), np.float32(low), np.float32(high))
    # The nearest float may be one more than the greatest integer.
    return np.minimum(np.round(steps).astype(np.int64), high).astype(dtype)


def dequantized(integers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray((integers.astype(np.int64) - ZERO).astype(np.float32) * SCALE)


@pytest.mark.parametrize("storage", STORAGES)
def test_to_storage_and_back(storage: str) -> None:
    numbers = np.array([20.0, 1.0, 1e12, -1e12, 0.25, 0.45, -0.3, 0.0], np.float32)
    kind = f"tensor<8x!quant.uniform<{storage}:f32, 0.1:{ZERO}>>"
    quantize = f"%0 = stablehlo.uniform_quantize %a : (tensor<8xf32>) -> {kind}"
    dequantize = f"%1 = stablehlo.uniform_dequantize %0 : ({kind}) -> tensor<8xf32>"
    text = function("%a: tensor<8xf32>", f"{quantize} {dequantize}", ["%0", "%1"], [kind, "tensor<8xf32>"])
    integers, floats = vt.run(text, [numbers])
    assert integers.dtype == STORAGES[storage][0]
    assert np.array_equal(integers, quantized(numbers, storage))
    assert np.array_equal(floats, dequantized(integers))


@pytest.mark.parametrize("storage", ["i8", "u8", "i8<-127:127>"])
def test_arithmetic_in_floats_on_arguments_that_are_integers(storage: str) -> None:
    dtype, low, high = STORAGES[storage]
    chance = np.random.default_rng(0)
    one, other = (chance.integers(low, high, 64, endpoint=True).astype(dtype) for _ in range(2))
    kind = f"tensor<64x!quant.uniform<{storage}:f32, 0.1:{ZERO}>>"
    ops = {
        "add": dequantized(one) + dequantized(other),
        "multiply": dequantized(one) * dequantized(other),
        "maximum": np.maximum(dequantized(one), dequantized(other)),
    }
    body = " ".join(f"%{name} = stablehlo.{name} %a, %b : {kind}\n" for name in ops)
    text = function(f"%a: {kind}, %b: {kind}", body, [f"%{name}" for name in ops], [kind] * 3)
    for found, expected in zip(vt.run(text, [one, other]), ops.values(), strict=True):
        assert np.array_equal(found, quantized(expected, storage))


def test_slices_with_scales_of_their_own() -> None:
    weights = np.array([[10, -20, 30], [40, 50, -60]], np.int8)
    scales, zeros = np.array([0.5, 0.25, 2.0], np.float32), np.array([0, 3, -1])
    kind = "tensor<2x3x!quant.uniform<i8:f32:1, {0.5:0, 0.25:3, 2.0:-1}>>"
    turned = "tensor<3x2x!quant.uniform<i8:f32:0, {0.5:0, 0.25:3, 2.0:-1}>>"
    body = f"""%0 = stablehlo.transpose %a, dims = [1, 0] : ({kind}) -> {turned}
    %1 = stablehlo.uniform_dequantize %0 : ({turned}) -> tensor<3x2xf32>"""
    (found,) = vt.run(function(f"%a: {kind}", body, ["%1"], ["tensor<3x2xf32>"]), [weights])
    assert np.array_equal(found, ((weights - zeros).astype(np.float32) * scales).T)


def test_floats_times_quantized_weights() -> None:
    weights, x = np.array([[10, -20, 30], [40, 50, -60]], np.int8), np.arange(8, dtype=np.float32).reshape(4, 2)
    kind, takes, gives = "tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25, 2.0}>>", "tensor<4x2xf32>", "tensor<4x3xf32>"
    body = f"%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({takes}, {kind}) -> {gives}"
    (found,) = vt.run(function(f"%x: {takes}, %w: {kind}", body, ["%0"], [gives]), [x, weights])
    np.testing.assert_allclose(found, x @ (weights * np.array([0.5, 0.25, 2.0], np.float32)), rtol=1e-6)


def test_a_product_is_requantized() -> None:
    a, b = (np.array(each, np.int8) for each in ([[1, 2], [-3, 4]], [[5, -6], [7, 8]]))
    kind, wide = "tensor<2x2x!quant.uniform<i8:f32, 0.5>>", "tensor<2x2x!quant.uniform<i32:f32, 0.25>>"
    body = f"""%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {wide}
    %1 = stablehlo.uniform_quantize %0 : ({wide}) -> {kind}"""
    product, narrow = vt.run(function(f"%a: {kind}, %b: {kind}", body, ["%0", "%1"], [wide, kind]), [a, b])
    assert np.array_equal(product, a.astype(np.int32) @ b.astype(np.int32))
    assert np.array_equal(narrow, np.round(product / 2).astype(np.int8))


def test_in_loops_reductions_and_functions() -> None:
    kind, scalar = ("".join(["tensor<", shape, "!quant.uniform<u8:f32, 0.5:3>>"]) for shape in ("3x", ""))
    text = f"""
    func.func private @twice(%a: {kind}) -> {kind} {{
      %0 = stablehlo.add %a, %a : {kind}
      return %0 : {kind}
    }}
    func.func @main(%a: {kind}, %p: tensor<i1>) -> ({scalar}, {kind}) {{
      %zero = "stablehlo.constant"() {{value = dense<3> : tensor<i8>}} : () -> {scalar}
      %0 = func.call @twice(%a) : ({kind}) -> {kind}
      %1 = "stablehlo.if"(%p) ({{ stablehlo.return %0 : {kind} }}, {{ stablehlo.return %a : {kind} }})
        : (tensor<i1>) -> {kind}
      %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0]
        : ({kind}, {scalar}) -> {scalar}
      %3 = stablehlo.reverse %1, dims = [0] : {kind}
      return %2, %3 : {scalar}, {kind}
    }}"""
    total, backwards = vt.run(text, [np.array([4, 5, 6], np.uint8), True])
    assert total == 3 + 2 * (1 + 2 + 3)
    assert backwards.tolist() == [3 + 2 * 3, 3 + 2 * 2, 3 + 2 * 1]


def test_four_bits() -> None:
    kind = "tensor<3x!quant.uniform<u4:f32, 0.5>>"
    text = function(f"%a: {kind}", f"%0 = stablehlo.add %a, %a : {kind}", ["%0"], [kind])
    (found,) = vt.run(text, [[1, 7, 8]])
    assert found.astype(int).tolist() == [2, 14, 15]


def test_scales_of_blocks_are_refused() -> None:
    kind = "tensor<2x2x!quant.uniform<i8:f32:{0:1, 1:1}, {{0.5, 0.25}, {0.5, 0.25}}>>"
    text = function("%a: tensor<f32>", f'%0 = "stablehlo.abs"(%b) : ({kind}) -> {kind}', ["%a"], ["tensor<f32>"])
    text = text.replace("%a: tensor<f32>", f"%a: tensor<f32>, %b: {kind}")
    with pytest.raises(vt.VhloToolsError, match="!quant.uniform"):
        vt.run(text, [1.0, np.zeros((2, 2), np.int8)])


def test_dynamic_shapes() -> None:
    kind = "tensor<?x2x!quant.uniform<u8:f32:1, {0.5:3, 0.25:0}>>"
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<?x2xf32>) -> {kind}
    %1 = stablehlo.uniform_dequantize %b : ({kind}) -> tensor<?x2xf32>"""
    text = function(f"%a: tensor<?x2xf32>, %b: {kind}", body, ["%0", "%1"], [kind, "tensor<?x2xf32>"])
    integers, floats = vt.run(text, [np.array([[1, 1], [100, 200]], np.float32), np.array([[4, 4]], np.uint8)])
    assert integers.tolist() == [[5, 4], [203, 255]]
    assert floats.tolist() == [[0.5, 1.0]]
