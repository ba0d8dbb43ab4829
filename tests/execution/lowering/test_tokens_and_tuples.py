"""Tokens are ``None`` and tuples are tuples, in and out, and through functions and control flow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import run

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

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
