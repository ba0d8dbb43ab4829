"""Custom calls that compare two values: the assertions of StableHLO's own tests.

Source, of the tolerances too: ``stablehlo/tools/StablehloTranslateMain.cpp`` and ``stablehlo/tests/CheckOps.cpp`` in
openxla/stablehlo. As there, a difference ends the evaluation.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import CustomCall

Array = np.ndarray[Any, Any]

_TOLERANCE: Final = 1e-3
_TOLERANCE_OF_EQ: Final = 1e-4
_ULPS: Final = 3
#: The number of differences in a message.
_SHOWN: Final = 3


def expect_eq(call: CustomCall, actual: Array, expected: Array) -> None:
    """NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        _expect(call, actual, expected, actual == expected, "equal")


def expect_almost_eq(call: CustomCall, actual: Array, expected: Array, tolerance: float = _TOLERANCE) -> None:
    """NaN must be in the same places."""
    _expect(call, actual, expected, is_near(actual, expected, tolerance), f"within {tolerance:g}")


def expect_close(call: CustomCall, actual: Array, expected: Array) -> None:
    """Floats may be 3 ulp apart, with NaN in the same places; integers must be equal."""
    _expect(call, actual, expected, _is_close(actual, expected), f"within {_ULPS} ulp")


def is_eq(call: CustomCall, actual: Array, expected: Array) -> bool:
    if _is_whole(actual):
        expect_eq(call, actual, expected)
    else:
        expect_almost_eq(call, actual, expected, _TOLERANCE_OF_EQ)
    return True


def _expect(call: CustomCall, actual: Array, expected: Array, good: Any, wanted: str) -> None:
    bad = np.argwhere(~np.asarray(good))
    if not len(bad):
        return
    places = [tuple(map(int, index)) for index in bad[:_SHOWN]]
    shown = "; ".join(f"{actual[place]} at {list(place)}, expected {expected[place]}" for place in places)
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    raise EngineError(f"{call}: {len(bad)} of {actual.size} values are not {wanted}: {shown}{more}")


def _is_whole(array: Array) -> bool:
    return array.dtype.kind in "biu" or "int" in array.dtype.name


def is_near(actual: Array, expected: Array, tolerance: float) -> Any:
    if np.iscomplexobj(actual):
        return is_near(actual.real, expected.real, tolerance) & is_near(actual.imag, expected.imag, tolerance)
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= tolerance
    return (one == other) | near | (np.isnan(one) & np.isnan(other))


def ulp_difference(actual: Array, expected: Array) -> Any:
    """Zero if both are NaN, the largest integer if they differ and one is not finite; the greater part if complex."""
    if np.iscomplexobj(actual):
        return np.maximum(ulp_difference(actual.real, expected.real), ulp_difference(actual.imag, expected.imag))
    finite = np.isfinite(actual.astype(np.float64)) & np.isfinite(expected.astype(np.float64))
    one, other = _steps_from_zero(actual), _steps_from_zero(expected)
    opposite = np.signbit(actual.astype(np.float64)) != np.signbit(expected.astype(np.float64))
    steps = np.where(opposite, one + other, np.maximum(one, other) - np.minimum(one, other))
    both_nan = np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    same = (one == other) & ~opposite
    return np.where(both_nan | same, 0, np.where(finite, steps, np.iinfo(np.uint64).max)).astype(np.uint64)


def _is_close(actual: Array, expected: Array) -> Any:
    if _is_whole(actual):
        return actual == expected
    return ulp_difference(actual, expected) <= _ULPS


def _steps_from_zero(array: Array) -> Array:
    """The integers can represent the sum of two distances."""
    bits: Array = np.abs(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)
    return bits
