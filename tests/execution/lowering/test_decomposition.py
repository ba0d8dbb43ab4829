"""The Cholesky decomposition, against XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

pytestmark = pytest.mark.every_python

ELEMENTS: dict[str, tuple[Any, float]] = {
    "f16": (np.float16, 2e-2),
    "f32": (np.float32, 4e-6),
    "f64": (np.float64, 1e-14),
    "complex<f32>": (np.complex64, 4e-6),
    "complex<f64>": (np.complex128, 1e-14),
}


def cholesky(matrices: np.ndarray[Any, Any], element: str, *, lower: bool) -> str:
    kind = tensor(matrices, element)
    op = f'"stablehlo.cholesky"(%a) {{lower = {str(lower).lower()}}} : ({kind}) -> {kind}'
    return function(f"%a: {kind}", f"%0 = {op}", ["%0"], [kind])


@pytest.mark.sample(4)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    ("element", "shape"),
    [(element, (2, 3, 3)) for element in ELEMENTS]
    + [("f32", shape) for shape in [(1, 1), (2, 3, 4, 4), (9, 9), (0, 0), (2, 0, 0)]],
    ids=str,
)
def test_only_one_triangle_is_read_and_the_other_is_zero(element: str, shape: tuple[int, ...], lower: bool) -> None:
    dtype, tolerance = ELEMENTS[element]
    chance = np.random.default_rng(0)
    root = chance.normal(size=shape) + (1j * chance.normal(size=shape) if "complex" in element else 0)
    matrices = root @ np.swapaxes(root.conj(), -1, -2) + np.eye(shape[-1]) * shape[-1]
    ones = np.ones(shape[-2:])
    asked = (np.tril(ones) if lower else np.triu(ones)).astype(bool)
    matrices = np.where(asked, matrices, 77).astype(dtype)
    (found,), (expected,) = run_on_both(cholesky(matrices, element, lower=lower), [matrices])
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert not found[..., ~asked].any()


def test_matrices_that_are_not_positive_definite_become_nan_and_no_others() -> None:
    good = np.array([[4, 0, 0], [2, 5, 0], [2, 3, 6]], np.float32)
    matrices = [good]
    for pivot in range(3):
        for value in (0.0, -1.0, np.nan):
            bad = good.copy()
            bad[pivot, pivot] = value
            matrices.append(bad)
    stacked = np.stack(matrices)
    (found,), (expected,) = run_on_both(cholesky(stacked, "f32", lower=True), [stacked])
    assert np.isnan(found[1:]).all()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
