"""Inputs of custom calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]

_ROUTINE: Final = re.compile(r"lapack_([sdcz])(\w+)_ffi")


def routine_of(target: str) -> str:
    found = _ROUTINE.fullmatch(target)
    names = {"Qr": "geqrf", "ProductOfElementaryHouseholderReflectors": "orgqr", "mhlo.topk": "TopK"}
    names |= {"ungqr": "orgqr", "unmqr": "ormqr", "hetrd": "sytrd", "heevd": "syevd", "gesvd": "gesdd"}
    name = found[2] if found else target
    return "gtsv" if target == "tridiagonal_solve_perturbed_ffi" else names.get(name, name)


def draw_inputs(target: str, types: Sequence[tuple[str, tuple[int, ...], np.dtype[Any]]], seed: int) -> list[Array]:
    """Return inputs of a call, as its target needs them, as far as they have the shapes for that.

    Args:
        target: The target.
        types: The element type, the shape and the dtype of each operand.
        seed: The seed.
    """
    chance = np.random.default_rng(seed)
    arrays = [_random(chance, *each) for each in types]
    make = _INPUTS.get(routine_of(target))
    if make is not None and arrays and all(each.dtype.kind in "fcV" for each in arrays[:1]):
        try:
            made = make(chance, arrays)
            pairs = zip(made, arrays, strict=True)
            arrays = [np.asarray(new).astype(old.dtype).reshape(old.shape) for new, old in pairs]
        except (ValueError, IndexError, TypeError):
            return arrays  # not the shapes that the target needs
    return arrays


def _random(chance: np.random.Generator, element: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if element == "i1":
        return chance.integers(0, 2, shape).astype(bool)
    if element.startswith("complex"):
        return np.asarray(chance.normal(size=shape) + 1j * chance.normal(size=shape)).astype(dtype)
    if element[0] in "iu":
        return chance.integers(0, 2, shape).astype(dtype)
    numbers = np.asarray(chance.normal(size=shape))
    return (np.abs(numbers) + 1 if element == "f8E8M0FNU" else numbers).astype(dtype)


def _triangle(chance: np.random.Generator, arrays: Arrays) -> list[Array]:
    matrix, rest = arrays
    n = matrix.shape[-1]
    return [matrix / max(n, 1) + 2 * np.eye(n), rest]


def _definite(chance: np.random.Generator, arrays: Arrays) -> list[Array]:
    (matrix,) = arrays
    n = matrix.shape[-1]
    return [matrix @ np.conj(np.swapaxes(matrix, -1, -2)) / max(n, 1) + np.eye(n)]


def _reflectors(chance: np.random.Generator, arrays: Arrays) -> list[Array]:
    matrix, tau, *rest = arrays
    wide = np.complex128 if matrix.dtype.kind == "c" else np.float64
    return [matrix.astype(wide) / (2 * matrix.shape[-2]), np.tanh(np.abs(tau.astype(wide))), *rest]


def _diagonals(chance: np.random.Generator, arrays: Arrays) -> list[Array]:
    lower, middle, upper, right = arrays
    return [lower, middle + 6 * np.where(middle.real < 0, -1, 1), upper, right]


_INPUTS: Final[dict[str, Callable[[np.random.Generator, Arrays], list[Array]]]] = {
    "gtsv": _diagonals,
    "orgqr": _reflectors,
    "ormqr": _reflectors,
    "potrf": _definite,
    "trsm": _triangle,
}
