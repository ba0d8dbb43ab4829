"""Scans of CHLO: numpy says what they give, on both engines, and the artifacts do not depend on the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.opt_programs import opt

import vhlo_tools as vt

pytestmark = [pytest.mark.needs("chlo.scan"), pytest.mark.every_python]

INTEGERS = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
COMPLEX = (INTEGERS + 1j * INTEGERS[::-1]).astype(np.complex64)


def segments(inputs: int) -> str:
    """Return the attributes that tell inputs, of which there are as many as given, from one initial value."""
    return f"operandSegmentSizes = array<i32: {inputs}, 1>, resultSegmentSizes = array<i32: 1, 1>"


def scan(kind: str, shape: list[int | str], dimension: int, *, reverse: bool) -> str:
    """Return a program that sums up along a dimension, from a value that is given."""
    whole = f"tensor<{'x'.join(map(str, [*shape, kind]))}>"
    part = f"tensor<{'x'.join(map(str, [*shape[:dimension], *shape[dimension + 1 :], kind]))}>"
    # Not in its own form, which some releases read without attributes only.
    attributes = f"dimension = {dimension} : i64, is_reverse = {str(reverse).lower()}, {segments(1)}"
    return f"""
func.func @main(%input: {whole}, %init: {part}) -> ({whole}, {part}) {{
  %0:2 = "chlo.scan"(%input, %init) <{{{attributes}}}> ({{
  ^bb0(%element: {part}, %sum: {part}):
    %1 = stablehlo.add %element, %sum : {part}
    stablehlo.return %1, %1 : {part}, {part}
  }}) : ({whole}, {part}) -> ({whole}, {part})
  return %0#0, %0#1 : {whole}, {part}
}}
"""


def sums(values: Any, init: Any, dimension: int, *, reverse: bool) -> tuple[Any, Any]:
    turned = np.flip(values, dimension) if reverse else values
    made = np.cumsum(turned, dimension, values.dtype) + np.expand_dims(init, dimension)
    return np.flip(made, dimension) if reverse else made, values.sum(dimension) + init


@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize(("kind", "values"), [("i32", INTEGERS), ("complex<f32>", COMPLEX)])
def test_a_scan_goes_where_it_should(kind: str, values: Any, dimension: int, reverse: bool, engine: Any) -> None:
    artifact = vt.serialize(scan(kind, [2, 3], dimension, reverse=reverse), target="1.10.0")
    init = values[tuple(0 if each == dimension else slice(None) for each in (0, 1))] * 10
    ran = vt.run(artifact, [values, init], engine=engine)
    for given, wanted in zip(ran, sums(values, init, dimension, reverse=reverse), strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_the_dimension_of_a_scan_may_be_known_at_run_time_only() -> None:
    artifact = vt.serialize(scan("i32", ["?", 3], 0, reverse=True), target="1.10.0")
    init = np.array([10, 20, 30], np.int32)
    ran = vt.run(artifact, [INTEGERS, init])
    for given, wanted in zip(ran, sums(INTEGERS, init, 0, reverse=True), strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_a_scan_of_parts_of_unknown_sizes_is_refused() -> None:
    program = scan("i32", ["?", "?"], 0, reverse=True)
    with pytest.raises(vt.UnsupportedFeatureError, match=r"chlo\.scan"):
        vt.serialize(program, target="1.10.0")
    ran = opt("--chlo-legalize-to-stablehlo", text=program.encode())
    assert ran.code == 1
    assert "error: " in ran.error


def test_a_scan_within_a_scan_becomes_a_loop_too() -> None:
    program = """
func.func @main(%input: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %zero = stablehlo.constant dense<0> : tensor<3xi32>
  %0:2 = chlo.scan(%input) inits(%zero) dimension=0 {
  ^bb0(%row: tensor<3xi32>, %sum: tensor<3xi32>):
    %zero_0 = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = "chlo.scan"(%row, %zero_0) <{dimension = 0 : i64, is_reverse = true, SEGMENTS}> ({
    ^bb0(%element: tensor<i32>, %inner: tensor<i32>):
      %3 = stablehlo.add %element, %inner : tensor<i32>
      stablehlo.return %3, %3 : tensor<i32>, tensor<i32>
    }) : (tensor<3xi32>, tensor<i32>) -> (tensor<3xi32>, tensor<i32>)
    %2 = stablehlo.add %1#0, %sum : tensor<3xi32>
    stablehlo.return %2, %2 : tensor<3xi32>, tensor<3xi32>
  } : (tensor<2x3xi32>, tensor<3xi32>) -> (tensor<2x3xi32>, tensor<3xi32>)
  return %0#0 : tensor<2x3xi32>
}
""".replace("SEGMENTS", segments(1))
    (given,) = vt.run(vt.serialize(program, target="1.10.0"), [INTEGERS])
    np.testing.assert_array_equal(given, np.cumsum(np.cumsum(INTEGERS[:, ::-1], 1)[:, ::-1], 0))


@pytest.mark.parametrize("size", ["", ", scan_dim_size = 4 : i64"])
def test_a_scan_may_have_no_inputs(size: str) -> None:
    program = f"""
func.func @main() -> tensor<4xi32> {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = "chlo.scan"(%one) <{{dimension = 0 : i64, is_reverse = false, {segments(0)}{size}}}> ({{
  ^bb0(%last: tensor<i32>):
    %1 = stablehlo.add %last, %last : tensor<i32>
    stablehlo.return %1, %1 : tensor<i32>, tensor<i32>
  }}) : (tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
  return %0#0 : tensor<4xi32>
}}
"""
    (given,) = vt.run(vt.serialize(program, target="1.10.0"), [])
    np.testing.assert_array_equal(given, [2, 4, 8, 16])
