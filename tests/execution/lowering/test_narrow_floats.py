"""Floats of four and six bits: every value in and out, and arithmetic where there is no infinity."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

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
