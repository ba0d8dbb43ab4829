"""Scatters of every form, with windows inside, partly outside and outside of the operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

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
