"""Comparisons by total order, against XLA: what is no number has its place, and so has each zero."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import function, run_on_both

pytestmark = pytest.mark.every_python

FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def special(dtype: Any) -> np.ndarray[Any, Any]:
    """Return one of each kind of float, with both signs."""
    positive = np.array([0, float(np.spacing(np.zeros((), dtype))), 1, 2, np.inf, np.nan]).astype(dtype)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("element", FLOATS)
def test_every_pair_is_ordered_as_by_xla(element: str) -> None:
    one, other = np.meshgrid(*[special(FLOATS[element])] * 2)
    kind, truth = (f"tensor<12x12x{each}>" for each in (element, "i1"))
    ops = [
        f"%{number} = stablehlo.compare {direction}, %a, %b, TOTALORDER : ({kind}, {kind}) -> {truth}"
        for number, direction in enumerate(DIRECTIONS)
    ]
    results = [f"%{number}" for number in range(len(ops))]
    text = function(f"%a: {kind}, %b: {kind}", "\n".join(ops) + "\n", results, [truth] * len(ops))
    found, expected = run_on_both(text, [one, other])
    assert len(found) == len(DIRECTIONS)
    for each, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, wanted)


def test_sorting_puts_nan_behind_infinity() -> None:
    kind, scalar = "tensor<7xf32>", "tensor<f32>"
    compare = f"stablehlo.compare LT, %p, %q, TOTALORDER : ({scalar}, {scalar}) -> tensor<i1>"
    sort = (
        f'"stablehlo.sort"(%a) <{{dimension = 0 : i64}}> ({{ ^bb0(%p: {scalar}, %q: {scalar}): %c = {compare} '
        f"stablehlo.return %c : tensor<i1> }}) : ({kind}) -> {kind}"
    )
    values = np.array([np.nan, 1, np.inf, 0.0, -np.inf, -0.0, -2], np.float32)
    (found,), (expected,) = run_on_both(function(f"%a: {kind}", f"%0 = {sort}", ["%0"], [kind]), [values])
    assert found.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(found, [-np.inf, -2, -0.0, 0.0, 1, np.inf, np.nan])


def test_comparisons_of_numbers_know_one_zero_and_no_order_of_nan() -> None:
    kind, truth = "tensor<2xf32>", "tensor<2xi1>"
    op = f"stablehlo.compare EQ, %a, %b, FLOAT : ({kind}, {kind}) -> {truth}"
    text = function(f"%a: {kind}, %b: {kind}", f"%0 = {op}", ["%0"], [truth])
    values = np.array([0, np.nan], np.float32)
    (found,), _ = run_on_both(text, [values, -values])
    np.testing.assert_array_equal(found, [True, False])
