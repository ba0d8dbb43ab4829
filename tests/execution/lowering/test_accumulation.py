"""Convolutions to another type than that of their operands, against XLA."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both

pytestmark = pytest.mark.every_python

TYPES: dict[str, Any] = {
    "i8": np.int8,
    "i32": np.int32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("element", "result"),
    [("i8", "i32"), ("i8", "bf16"), ("i8", "f32"), ("i32", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f32")],
)
def test_products_are_of_the_type_of_the_result(element: str, result: str) -> None:
    one = np.arange(-60, 60, 3).reshape(2, 4, 5).astype(TYPES[element])
    other = np.arange(24).reshape(3, 4, 2).astype(TYPES[element])
    kinds = f"tensor<2x4x5x{element}>", f"tensor<3x4x2x{element}>"
    made = f"tensor<2x3x4x{result}>"
    op = (
        "stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({', '.join(kinds)}) -> {made}"
    )
    text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", f"%0 = {op}", ["%0"], [made])
    (found,), (expected,) = run_on_both(text, [one, other])
    assert found.dtype == expected.dtype == TYPES[result]
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=2e-2 if result == "bf16" else 1e-6)
    assert abs(expected.astype(float)).max() > 127


def test_results_of_fewer_numbers_are_rounded_once() -> None:
    kind, narrow = "tensor<1x3xf32>", "tensor<1x1xf16>"
    op = (
        "stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[o, i]->[b, f], window = {} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({kind}, {kind}) -> {narrow}"
    )
    values = np.array([[60000, 60000, -60000]], np.float32)
    (found,), _ = run_on_both(
        function(f"%a: {kind}, %b: {kind}", f"%0 = {op}", ["%0"], [narrow]), [values, np.ones_like(values)]
    )
    np.testing.assert_array_equal(found, np.array([[60000]], np.float16))


@pytest.mark.long
@pytest.mark.parametrize(("element", "result"), [("f32", "f32"), ("i8", "i32")])
def test_results_in_every_order_of_dimensions(element: str, result: str) -> None:
    one = np.arange(2 * 3 * 5 * 6).reshape(2, 3, 5, 6).astype(TYPES[element])
    other = np.arange(4 * 3 * 2 * 3).reshape(4, 3, 2, 3).astype(TYPES[element])
    kinds = f"tensor<2x3x5x6x{element}>", f"tensor<4x3x2x3x{element}>"
    sizes = {"b": 2, "f": 4, "0": 4, "1": 4}
    for order in itertools.permutations(sizes):
        made = f"tensor<{'x'.join(str(sizes[each]) for each in order)}x{result}>"
        op = (
            f"stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[{', '.join(order)}], "
            "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
            f": ({', '.join(kinds)}) -> {made}"
        )
        text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", f"%0 = {op}", ["%0"], [made])
        (found,), (expected,) = run_on_both(text, [one, other])
        np.testing.assert_array_equal(found, expected, str(order))
