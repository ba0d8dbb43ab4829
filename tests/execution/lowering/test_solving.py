"""Triangular systems of equations, against numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from support.both_engines import function, run, tensor

pytestmark = [pytest.mark.needs("stablehlo.triangular_solve"), pytest.mark.every_python]

FORMS: Final = {"NO_TRANSPOSE": lambda a: a, "TRANSPOSE": lambda a: a.T, "ADJOINT": lambda a: a.conj().T}


def solve(
    matrices: np.ndarray[Any, Any], sides: np.ndarray[Any, Any], element: str, **attributes: Any
) -> np.ndarray[Any, Any]:
    one, other = tensor(matrices, element), tensor(sides, element)
    said = ", ".join(f"{name} = {str(value).lower()}" for name, value in attributes.items() if name != "transpose")
    said += f", transpose_a = #stablehlo<transpose {attributes['transpose']}>"
    op = f'"stablehlo.triangular_solve"(%a, %b) <{{{said}}}> : ({one}, {other}) -> {other}'
    (found,) = run(function(f"%a: {one}, %b: {other}", f"%0 = {op}", ["%0"], [other]), [matrices, sides])
    return np.asarray(found)


@pytest.mark.sample(16)
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit_diagonal", [True, False])
@pytest.mark.parametrize("transpose", FORMS)
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_every_form_of_system(
    left_side: bool, lower: bool, unit_diagonal: bool, transpose: str, batch: tuple[int, ...]
) -> None:
    chance = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray[Any, Any]:
        return chance.normal(size=(*batch, *shape)) + 1j * chance.normal(size=(*batch, *shape))

    matrices, sides = drawn(3, 3) + 4 * np.eye(3), drawn(*((3, 2) if left_side else (2, 3)))
    attributes = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal, "transpose": transpose}
    found = solve(matrices, sides, "complex<f64>", **attributes)
    for index in np.ndindex(*batch):
        asked = np.tril(matrices[index]) if lower else np.triu(matrices[index])
        if unit_diagonal:
            np.fill_diagonal(asked, 1)
        applied = FORMS[transpose](asked)
        product = applied @ found[index] if left_side else found[index] @ applied
        np.testing.assert_allclose(product, sides[index], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_the_adjoint_of_real_matrices(left_side: bool, batch: tuple[int, ...]) -> None:
    """On which the interpreter crashes."""
    chance = np.random.default_rng(0)
    matrices = np.tril(chance.normal(size=(*batch, 3, 3)) + 4 * np.eye(3))
    sides = chance.normal(size=(*batch, 3, 3))
    attributes = {"left_side": left_side, "lower": True, "unit_diagonal": False, "transpose": "ADJOINT"}
    found = solve(matrices, sides, "f64", **attributes)
    applied = np.swapaxes(matrices, -1, -2)
    np.testing.assert_allclose(applied @ found if left_side else found @ applied, sides, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 2, 2), (2, 0, 0)], ids=str)
def test_nothing_to_solve(shape: tuple[int, ...]) -> None:
    nothing = np.zeros(shape, np.float32)
    attributes = {"left_side": True, "lower": True, "unit_diagonal": False, "transpose": "NO_TRANSPOSE"}
    assert solve(nothing, nothing, "f32", **attributes).shape == shape
