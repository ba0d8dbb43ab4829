"""Slices and scatters that are lowered for the interpreter give what XLA gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

# Slices between bounds that are values, and scatters, which leave their inputs as they are


def test_a_slice_begins_where_its_bounds_say() -> None:
    text = """
      func.func @main(%a: tensor<4x3xi32>, %start: tensor<2xi64>, %limit: tensor<2xi64>) -> tensor<2x1xi32> {
        %one = stablehlo.constant dense<1> : tensor<2xi64>
        %0 = stablehlo.real_dynamic_slice %a, %start, %limit, %one
          : (tensor<4x3xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x1xi32>
        return %0 : tensor<2x1xi32>
      }"""
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    (found,) = vt.run(text, [array, np.array([1, 2]), np.array([3, 3])], engine="reference")
    np.testing.assert_array_equal(found, array[1:3, 2:3])
    bounds = [np.array([0, 2]), np.array([4, 3])]
    (found,) = vt.run(text.replace("dense<1>", "dense<2>"), [array, *bounds], engine="reference")
    np.testing.assert_array_equal(found, array[0:4:2, 2:3:2])


@pytest.mark.parametrize("strides", [(1, 1), (3, 2), (2, 1)])
def test_strides_may_be_values_too(strides: tuple[int, int]) -> None:
    array = np.arange(35, dtype=np.float32).reshape(7, 5)
    wanted = array[1 : 7 : strides[0], 0 : 4 : strides[1]]
    result = f"tensor<{wanted.shape[0]}x{wanted.shape[1]}xf32>"
    text = f"""
      func.func @main(%a: tensor<7x5xf32>, %b: tensor<2xi32>, %c: tensor<2xi32>, %d: tensor<2xi32>) -> {result} {{
        %0 = stablehlo.real_dynamic_slice %a, %b, %c, %d
          : (tensor<7x5xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {result}
        return %0 : {result}
      }}"""
    (found,) = vt.run(text, [array, *np.array([(1, 0), (7, 4), strides], np.int32)], engine="reference")
    np.testing.assert_array_equal(found, wanted)


def test_a_scatter_leaves_its_inputs_as_they_are() -> None:
    text = """
      func.func @main() -> (tensor<3xi64>, tensor<3xi64>) {
        %input = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
        %index = stablehlo.constant dense<[[1]]> : tensor<1x1xi64>
        %update = stablehlo.constant dense<[10]> : tensor<1xi64>
        %result = "stablehlo.scatter"(%input, %index, %update) ({
          ^bb0(%x: tensor<i64>, %y: tensor<i64>):
            %0 = stablehlo.add %x, %y : tensor<i64>
            stablehlo.return %0 : tensor<i64>
        }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
          : (tensor<3xi64>, tensor<1x1xi64>, tensor<1xi64>) -> tensor<3xi64>
        return %input, %result : tensor<3xi64>, tensor<3xi64>
      }"""
    before, after = vt.run(text, [], engine="reference")
    assert (before.tolist(), after.tolist()) == ([1, 2, 3], [1, 12, 3])


# Scatters of every form, with windows inside, partly outside and outside of the operand

Array = np.ndarray[Any, Any]

#: The shapes of operand, indices and updates, and the dimension numbers.
FORMS: dict[str, tuple[Sequence[int], Sequence[int], Sequence[int], Mapping[str, Sequence[int]]]] = {
    "vectors": ((6,), (40, 1), (40, 2), {"update_window_dims": [1], "scatter_dims_to_operand_dims": [0], "v": [1]}),
    "one window": (
        (65538,),
        (1, 1),
        (1, 2),
        {"update_window_dims": [1], "scatter_dims_to_operand_dims": [0], "v": [1]},
    ),
    "scalars as indices": (
        (6,),
        (40,),
        (40, 3),
        {"update_window_dims": [1], "scatter_dims_to_operand_dims": [0], "v": [1]},
    ),
    "two indices": (
        (5, 7),
        (2, 60),
        (60, 2, 3),
        {"update_window_dims": [1, 2], "scatter_dims_to_operand_dims": [1, 0], "v": [0]},
    ),
    "one of two dimensions indexed": (
        (5, 7),
        (3, 1, 9),
        (3, 5, 9, 2),
        {"update_window_dims": [1, 3], "scatter_dims_to_operand_dims": [1], "v": [1]},
    ),
    "an inserted dimension": (
        (4, 3, 6),
        (50, 2),
        (3, 2, 50),
        {"update_window_dims": [0, 1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0, 2], "v": [1]},
    ),
    "batching dimensions": (
        (2, 8, 3),
        (3, 5, 2, 1),
        (3, 5, 2, 4),
        {
            "update_window_dims": [3],
            "input_batching_dims": [0, 2],
            "scatter_indices_batching_dims": [2, 0],
            "scatter_dims_to_operand_dims": [1],
            "v": [3],
        },
    ),
    "windows of the whole operand": (
        (3, 4),
        (9, 2),
        (9, 3, 4),
        {"update_window_dims": [1, 2], "scatter_dims_to_operand_dims": [0, 1], "v": [1]},
    ),
}


def scattered(operand: Array, indices: Array, updates: Array, numbers: Mapping[str, Sequence[int]]) -> Array:
    """Return the sums that XLA gives: a window counts if all of it is inside."""
    (vector,) = numbers["v"]
    indices = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
    batching, inserted = numbers.get("input_batching_dims", ()), numbers.get("inserted_window_dims", ())
    windows = np.moveaxis(updates, numbers["update_window_dims"], range(-len(numbers["update_window_dims"]), 0))
    result = operand.copy()
    for position in np.ndindex(indices.shape[:-1]):
        start = np.zeros(operand.ndim, int)
        start[list(numbers["scatter_dims_to_operand_dims"])] = indices[position]
        for dimension, of_indices in zip(batching, numbers.get("scatter_indices_batching_dims", ()), strict=True):
            start[dimension] = position[of_indices - (of_indices > vector)]
        window = np.expand_dims(windows[position], tuple(sorted([*batching, *inserted])))
        if all(0 <= first <= size - part for first, size, part in zip(start, operand.shape, window.shape, strict=True)):
            result[tuple(slice(first, first + part) for first, part in zip(start, window.shape, strict=True))] += window
    return result


@pytest.mark.sample(6)
@pytest.mark.parametrize("element", ["i32", "i64", "ui8", "i8"])
@pytest.mark.parametrize("form", FORMS)
def test_windows_that_are_not_inside_change_nothing(form: str, element: str) -> None:
    *shapes, numbers = FORMS[form]
    types = [
        f"tensor<{'x'.join(map(str, shape))}x{kind}>"
        for shape, kind in zip(shapes, ("i32", element, "i32"), strict=True)
    ]
    written = ", ".join(f"{name} = {list(each)}" for name, each in numbers.items() if name != "v")
    text = f"""func.func @main(%o: {types[0]}, %i: {types[1]}, %u: {types[2]}) -> {types[0]} {{
      %0 = "stablehlo.scatter"(%o, %i, %u) <{{
        scatter_dimension_numbers = #stablehlo.scatter<{written}, index_vector_dim = {numbers["v"][0]}>}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %s = stablehlo.add %a, %b : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }}) : ({", ".join(types)}) -> {types[0]}
      return %0 : {types[0]}
    }}"""
    rng = np.random.default_rng(0)
    indices = rng.integers(-3, 9, shapes[1]).astype({"i32": "i4", "i64": "i8", "ui8": "u1", "i8": "i1"}[element])
    extreme = np.iinfo(indices.dtype)
    indices.flat[:2] = (extreme.min, extreme.max) if indices.size > 1 else 3
    operand, updates = (rng.integers(1, 99, shape).astype(np.int32) for shape in (shapes[0], shapes[2]))
    right = scattered(operand, indices.astype(object), updates, numbers)
    assert form == "windows of the whole operand" or not np.array_equal(right, operand)
    for engine in ("reference", "xla"):
        np.testing.assert_array_equal(vt.run(text, [operand, indices, updates], engine=engine)[0], right, engine)
