"""What can be serialized can be run: other dialects, resources, CHLO, shardings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.both_engines import function

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

F32 = "tensor<2xf32>"
C64 = "tensor<2xcomplex<f32>>"


BODIES: list[tuple[str, list[float]]] = [
    (f"%0 = arith.addf %a, %a : {F32}", [1.0, 3.0]),
    (f"%0 = math.exp %a : {F32}", [math.exp(0.5), math.exp(1.5)]),
    (f"%0 = mhlo.copy %a : {F32}", [0.5, 1.5]),
    (f"%0 = mhlo.tan %a : {F32}", [math.tan(0.5), math.tan(1.5)]),
    (
        """%1 = tensor.expand_shape %a [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
        %0 = tensor.collapse_shape %1 [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>""",
        [0.5, 1.5],
    ),
    (f"%0 = chlo.erf_inv %a : {F32} -> {F32}", [0.4769363, math.nan]),
    ("%0, %1 = chlo.top_k(%a, k = 2) : tensor<2xf32> -> (tensor<2xf32>, tensor<2xi32>)", [1.5, 0.5]),
    (f"%0 = stablehlo.custom_call @Sharding(%a) : ({F32}) -> {F32}", [0.5, 1.5]),
    (f'%0 = sdy.sharding_constraint %a <@mesh, [{{"x"}}]> : {F32}', [0.5, 1.5]),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_other_dialects(body: str, expected: list[float]) -> None:
    text = 'sdy.mesh @mesh = <["x"=2]>\n' + function(f"%a: {F32}", body, ["%0"], [F32])
    np.testing.assert_allclose(vt.run(text, [[0.5, 1.5]])[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cosh", "sinh", "square", "tan"]
)
def test_chlo_of_complex_numbers(name: str) -> None:
    by_numpy = {
        **{f"a{each}{h}": f"arc{each}{h}" for each in ("cos", "sin", "tan") for h in ("", "h")},
        "conj": "conjugate",
    }
    numbers = np.array([0.3 + 0.1j, 0.6 - 0.2j], np.complex64)
    text = function(f"%a: {C64}", f"%0 = chlo.{name} %a : {C64} -> {C64}", ["%0"], [C64])
    expected = getattr(np, by_numpy.get(name, name))(numbers)
    np.testing.assert_allclose(vt.run(text, [numbers])[0], expected, rtol=1e-5)


def test_ragged_dot() -> None:
    dimensions = (
        "#chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
        "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
    )
    takes = "tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<2xi64>"
    precision = "[#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]"
    op = (
        f'"chlo.ragged_dot"(%l, %r, %g) {{ragged_dot_dimension_numbers = {dimensions}, precision_config = {precision}}}'
    )
    text = function(
        "%l: tensor<4x3xf32>, %r: tensor<2x3x5xf32>, %g: tensor<2xi64>",
        f"%0 = {op} : ({takes}) -> tensor<4x5xf32>",
        ["%0"],
        ["tensor<4x5xf32>"],
    )
    chance = np.random.default_rng(0)
    left, right = chance.normal(size=(4, 3)).astype(np.float32), chance.normal(size=(2, 3, 5)).astype(np.float32)
    expected = np.concatenate([left[:3] @ right[0], left[3:] @ right[1]])
    np.testing.assert_allclose(vt.run(text, [left, right, [3, 1]])[0], expected, rtol=1e-5, atol=1e-6)


def test_constants_in_resources() -> None:
    text = """func.func @main() -> tensor<4xf32> {
      %0 = stablehlo.constant dense_resource<r> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    {-# dialect_resources: { builtin: { r: "0x40000000000000000000803f0000004000004040" } } #-}"""
    assert vt.run(text, [])[0].tolist() == [0, 1, 2, 3]


def test_a_composite_is_its_decomposition() -> None:
    text = f"""
    func.func private @impl(%a: {F32}) -> {F32} {{
      %0 = stablehlo.add %a, %a : {F32}
      return %0 : {F32}
    }}
    func.func @main(%a: {F32}) -> {F32} {{
      %0 = stablehlo.composite "my.twice" %a {{decomposition = @impl}} : ({F32}) -> {F32}
      return %0 : {F32}
    }}"""
    assert vt.run(text, [[1.0, 2.0]])[0].tolist() == [2, 4]


A = "tensor<4xcomplex<f32>>"
Z = "tensor<complex<f32>>"
#: Each gives the operand again.
OF_COMPLEX = {
    "pad": f"%0 = stablehlo.pad %a, %z, low = [0], high = [0], interior = [0] : ({A}, {Z}) -> {A}",
    "reduce": f"""
      %1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : ({A}, {Z}) -> {Z}
      %2 = stablehlo.broadcast_in_dim %1, dims = [] : ({Z}) -> {A}
      %3 = stablehlo.subtract %a, %2 : {A}
      %0 = stablehlo.add %3, %2 : {A}""",
    "if": f"""
      %0 = "stablehlo.if"(%p) ({{
        stablehlo.return %a : {A}
      }}, {{
        %1 = stablehlo.constant dense<(1.0, 0.0)> : {A}
        stablehlo.return %1 : {A}
      }}) : (tensor<i1>) -> {A}""",
    "while": f"""
      %1:2 = stablehlo.while(%n = %p, %x = %a) : tensor<i1>, {A} cond {{
        stablehlo.return %n : tensor<i1>
      }} do {{
        %2 = stablehlo.constant dense<(0.0, 1.0)> : {A}
        %3 = stablehlo.multiply %x, %2 : {A}
        %4 = stablehlo.divide %3, %2 : {A}
        %5 = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %5, %4 : tensor<i1>, {A}
      }}
      %0 = stablehlo.optimization_barrier %1#1 : {A}""",
    "dot_general": f"""
      %1 = stablehlo.constant dense<(1.0, 0.0)> : {Z}
      %0 = stablehlo.dot_general %a, %1, contracting_dims = [] x [] : ({A}, {Z}) -> {A}""",
    "sort": f"""
      %0 = "stablehlo.sort"(%a) ({{
      ^bb0(%x: {Z}, %y: {Z}):
        %1 = stablehlo.real %x : ({Z}) -> tensor<f32>
        %2 = stablehlo.real %y : ({Z}) -> tensor<f32>
        %3 = stablehlo.compare LT, %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      }}) {{dimension = 0 : i64}} : ({A}) -> {A}""",
    "fft": f"""
      %1 = stablehlo.fft %a, type = FFT, length = [4] : ({A}) -> {A}
      %0 = stablehlo.fft %1, type = IFFT, length = [4] : ({A}) -> {A}""",
}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_numbers_everywhere(name: str) -> None:
    constants = f"%z = stablehlo.constant dense<(0.0, 0.0)> : {Z} %p = stablehlo.constant dense<true> : tensor<i1> "
    numbers: np.ndarray[Any, Any] = np.array([1 - 1j, 2 - 2j, 3 + 3j, 4 - 4j], np.complex64)
    (found,) = vt.run(function(f"%a: {A}", constants + OF_COMPLEX[name], ["%0"], [A]), [numbers])
    np.testing.assert_allclose(found, numbers, rtol=1e-6, atol=1e-6)
