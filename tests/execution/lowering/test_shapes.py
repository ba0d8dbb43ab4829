"""Programs of dynamic shapes, and those that exchange tokens and tuples, run on the interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import run

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

# Bounded dimensions, and sizes among the inputs

BOUNDED = "tensor<?xf32, #stablehlo.bounds<4>>"
ROWS = "tensor<?x2xf32, #stablehlo.bounds<4, ?>>"


def test_a_bounded_dimension_has_the_size_of_the_input() -> None:
    text = f"""func.func @main(%a: {BOUNDED}) -> ({BOUNDED}, tensor<i32>) {{
      %0 = stablehlo.add %a, %a : {BOUNDED}
      %1 = stablehlo.get_dimension_size %0, dim = 0 : ({BOUNDED}) -> tensor<i32>
      return %0, %1 : {BOUNDED}, tensor<i32>
    }}"""
    array, size = run(text, [np.array([1, 2, 3], np.float32)])
    assert (array.tolist(), size) == ([2, 4, 6], 3)
    with pytest.raises(vt.EngineError, match=r"input 0 is float32\[5\], but the program requires float32\[at most 4\]"):
        run(text, [np.zeros(5, np.float32)])


def test_bounded_dimensions_in_a_tuple() -> None:
    kind = f"tuple<{BOUNDED}, tensor<i32>>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}"
    ((array, number),) = run(text, [(np.array([1, 2], np.float32), 3)])
    assert (array.tolist(), number) == ([1, 2], 3)


def test_sizes_that_follow_from_bounded_ones() -> None:
    flat, cubes = "tensor<?xf32, #stablehlo.bounds<8>>", "tensor<?x2x3xf32, #stablehlo.bounds<4, ?, ?>>"
    text = f"""func.func @main(%a: {ROWS}) -> ({flat}, {cubes}, tensor<2xf32>) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reshape %a : ({ROWS}) -> {flat}
      %1 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : ({ROWS}) -> {cubes}
      %2 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
        : ({ROWS}, tensor<f32>) -> tensor<2xf32>
      return %0, %1, %2 : {flat}, {cubes}, tensor<2xf32>
    }}"""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    flattened, cube, sums = run(text, [rows])
    assert np.array_equal(flattened, rows.ravel())
    assert np.array_equal(cube, np.broadcast_to(rows[:, :, None], (3, 2, 3)))
    assert np.array_equal(sums, rows.sum(0))


@pytest.mark.parametrize(("size", "expected"), [(0, []), (2, [1, 2]), (4, [1, 2, 3, 4])])
def test_set_dimension_size(size: int, expected: list[float]) -> None:
    text = f"""func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> {BOUNDED} {{
      %0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
      %1 = stablehlo.abs %0 : {BOUNDED}
      return %1 : {BOUNDED}
    }}"""
    assert run(text, [np.array([-1, 2, -3, 4], np.float32), size])[0].tolist() == expected


def test_a_size_that_is_computed_from_data_is_evaluated_first() -> None:
    text = f"""func.func @main(%a: tensor<4xf32>) -> {BOUNDED} {{
      %0 = stablehlo.slice %a [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
      %2 = stablehlo.convert %1 : (tensor<f32>) -> tensor<i32>
      %3 = stablehlo.set_dimension_size %a, %2, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
      return %3 : {BOUNDED}
    }}"""
    assert run(text, [np.array([2, 5, 6, 7], np.float32)])[0].tolist() == [2, 5]
    assert run(text, [np.array([0, 5, 6, 7], np.float32)])[0].tolist() == []


def test_a_size_that_a_region_computes_is_refused() -> None:
    text = f"""func.func @main(%a: tensor<4xf32>, %n: tensor<i32>, %p: tensor<i1>) -> {BOUNDED} {{
      %0 = "stablehlo.if"(%p) ({{
        %1 = stablehlo.add %n, %n : tensor<i32>
        %2 = stablehlo.set_dimension_size %a, %1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
        stablehlo.return %2 : {BOUNDED}
      }}, {{
        %2 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
        stablehlo.return %2 : {BOUNDED}
      }}) : (tensor<i1>) -> {BOUNDED}
      return %0 : {BOUNDED}
    }}"""
    with pytest.raises(vt.EngineError, match="p.mlir does not match these inputs: .*mismatched return types"):
        run(text, [np.ones(4, np.float32), np.int32(1), np.array(True)], name="p.mlir")


def test_a_bounded_size_that_follows_from_nothing_is_refused() -> None:
    text = f"""func.func @main(%a: tensor<2xf32>) -> {ROWS} {{
      %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<2xf32>) -> {ROWS}
      return %0 : {ROWS}
    }}"""
    with pytest.raises(vt.EngineError, match="broadcast_in_dim: a size that does not depend on the sizes"):
        run(text, [np.ones(2, np.float32)])


def test_inputs_that_are_sizes() -> None:
    text = """func.func @main(%n: tensor<i32>, %shape: tensor<2xi64>, %a: tensor<6xf32>) -> (tensor<?xf32>, tensor<?x?xf32>) {
      %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %2 = stablehlo.dynamic_reshape %a, %shape : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      return %1, %2 : tensor<?xf32>, tensor<?x?xf32>
    }"""  # noqa: E501
    count, table = run(text, [3, [3, 2], np.arange(6, dtype=np.float32)])
    assert count.tolist() == [0, 1, 2]
    assert table.tolist() == [[0, 1], [2, 3], [4, 5]]


# Tokens are ``None`` and tuples are tuples, in and out, and through functions and control flow

TOKEN = "!stablehlo.token"


def test_tokens_go_through_functions_and_loops() -> None:
    text = f"""
    func.func private @twice(%t: {TOKEN}, %a: tensor<i32>) -> ({TOKEN}, tensor<i32>) {{
      %0 = stablehlo.add %a, %a : tensor<i32>
      %1 = stablehlo.create_token : {TOKEN}
      %2 = stablehlo.after_all %t, %1 : {TOKEN}
      return %2, %0 : {TOKEN}, tensor<i32>
    }}
    func.func private @four_times(%t: {TOKEN}, %a: tensor<i32>) -> ({TOKEN}, tensor<i32>) {{
      %0:2 = func.call @twice(%t, %a) : ({TOKEN}, tensor<i32>) -> ({TOKEN}, tensor<i32>)
      %1:2 = func.call @twice(%0#0, %0#1) : ({TOKEN}, tensor<i32>) -> ({TOKEN}, tensor<i32>)
      return %1#0, %1#1 : {TOKEN}, tensor<i32>
    }}
    func.func @main(%t: {TOKEN}, %a: tensor<i32>) -> (tensor<i32>, {TOKEN}) {{
      %0:2 = stablehlo.while(%n = %a, %u = %t) : tensor<i32>, {TOKEN} cond {{
        %most = stablehlo.constant dense<50> : tensor<i32>
        %c = stablehlo.compare LT, %n, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %3:2 = func.call @four_times(%u, %n) : ({TOKEN}, tensor<i32>) -> ({TOKEN}, tensor<i32>)
        stablehlo.return %3#1, %3#0 : tensor<i32>, {TOKEN}
      }}
      %1:2 = stablehlo.optimization_barrier %0#0, %0#1 : tensor<i32>, {TOKEN}
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %2 = "stablehlo.case"(%zero) ({{ stablehlo.return %1#1 : {TOKEN} }}) : (tensor<i32>) -> {TOKEN}
      return %1#0, %2 : tensor<i32>, {TOKEN}
    }}"""
    number, token = run(text, [None, 1])
    assert (number, token) == (64, None)


def test_tokens_and_shapes_that_the_inputs_resolve() -> None:
    text = f"""func.func @main(%t: {TOKEN}, %a: tensor<?xf32>) -> ({TOKEN}, tensor<?xf32>) {{
      %0 = stablehlo.abs %a : tensor<?xf32>
      return %t, %0 : {TOKEN}, tensor<?xf32>
    }}"""
    token, array = run(text, [None, np.array([-1, 2], np.float32)])
    assert token is None
    assert np.array_equal(array, [1, 2])


NESTED = f"tuple<tensor<2xcomplex<f32>>, tuple<tensor<bf16>, {TOKEN}>, tuple<>>"


def test_tuples_of_anything() -> None:
    numbers = np.array([1j, 2], np.complex64)
    text = f"func.func @main(%a: {NESTED}) -> ({NESTED}, {NESTED}) {{ return %a, %a : {NESTED}, {NESTED} }}"
    for array, (number, token), nothing in run(text, [(numbers, [1.5, None], ())]):
        assert np.array_equal(array, numbers)
        assert (number.dtype, float(number)) == (np.dtype(ml_dtypes.bfloat16), 1.5)
        assert (token, nothing) == (None, ())


def test_tuples_through_functions() -> None:
    pair = "tuple<tensor<f32>, tensor<?xf32>>"
    text = f"""
    func.func private @swap(%a: {pair}) -> tuple<tensor<?xf32>, tensor<f32>> {{
      %0 = stablehlo.get_tuple_element %a[0] : ({pair}) -> tensor<f32>
      %1 = stablehlo.get_tuple_element %a[1] : ({pair}) -> tensor<?xf32>
      %2 = stablehlo.tuple %1, %0 : tuple<tensor<?xf32>, tensor<f32>>
      return %2 : tuple<tensor<?xf32>, tensor<f32>>
    }}
    func.func @main(%a: {pair}) -> tensor<?xf32> {{
      %0 = func.call @swap(%a) : ({pair}) -> tuple<tensor<?xf32>, tensor<f32>>
      %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<?xf32>, tensor<f32>>) -> tensor<?xf32>
      return %1 : tensor<?xf32>
    }}"""
    assert np.array_equal(run(text, [(1.0, np.array([2, 3], np.float32))])[0], [2, 3])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, r"input 0 is a int, but the program requires a tuple"),
        (([1j, 2], (1.5, None)), r"input 0 has 2 elements, but the program requires 3"),
        (([1j, 2], (1.5, 0), ()), r"input 0 at \{1,1\} has the type int, but a token must be None"),
        (([1j], (1.5, None), ()), r"input 0 at \{0\} is complex64\[1\], but the program requires complex64\[2\]"),
    ],
)
def test_values_that_do_not_fit(value: Any, message: str) -> None:
    with pytest.raises(vt.EngineError, match=message):
        run(f"func.func @main(%a: {NESTED}) {{ return }}", [value])


def test_a_function_that_passes_tokens_to_itself_is_named() -> None:
    text = f"""
    func.func private @f(%t: {TOKEN}) -> {TOKEN} {{
      %0 = func.call @f(%t) : ({TOKEN}) -> {TOKEN}
      return %0 : {TOKEN}
    }}
    func.func @main(%t: {TOKEN}) -> {TOKEN} {{
      %0 = func.call @f(%t) : ({TOKEN}) -> {TOKEN}
      return %0 : {TOKEN}
    }}"""
    with pytest.raises(vt.EngineError, match=r"cannot run func.call: .*a recursive function, but"):
        run(text, [None], engine="reference")
