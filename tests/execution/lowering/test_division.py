"""Division of integers gives what XLA gives, also by zero, wherever it stands."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

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
