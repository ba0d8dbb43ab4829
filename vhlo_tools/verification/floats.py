"""Distances of floats in units in the last place, for every float type of numpy and ml_dtypes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_BITS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
#: Unsigned types, whose bits are in the order of their values.
_UNSIGNED: Final = frozenset({"float8_e8m0fnu"})
#: The number of bits of floats that have fewer bits than their bytes.
_NARROW: Final = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}

#: The distance of a number from NaN.
_FARTHEST: Final = np.iinfo(np.uint64).max


def is_complex(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c"


def is_float(dtype: np.dtype[Any]) -> bool:
    """Of numpy, or of ml_dtypes."""
    return dtype.kind == "f" or "float" in dtype.name


def parts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A complex array gets a last dimension of two floats; any other array is unchanged."""
    if not is_complex(array.dtype):
        return array
    return np.stack([array.real, array.imag], axis=-1)


def ulp_distance(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Zeros of both signs are equal, and so are all NaNs; a NaN has the largest distance from every number."""
    one, other = _ordered(found), _ordered(expected)
    # A difference of signed 64-bit integers may need 64 unsigned bits: it wraps around to exactly that.
    with np.errstate(over="ignore"):
        distance = np.where(one > other, one - other, other - one).astype(np.uint64)
    nans = _isnan(found), _isnan(expected)
    distance = np.where(nans[0] & nans[1], np.uint64(0), distance)
    return np.where(nans[0] ^ nans[1], np.uint64(_FARTHEST), distance)


def _isnan(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # In every type, only NaN is not equal to itself.
    found: np.ndarray[Any, Any] = np.asarray(array != array)
    return found


def _ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers in the order of the floats, without gaps."""
    array = np.ascontiguousarray(array)
    bits = array.view(_BITS[array.dtype.itemsize])
    if array.dtype.name in _UNSIGNED:
        return bits.astype(np.int64)
    sign = _NARROW.get(array.dtype.name, array.dtype.itemsize * 8) - 1
    magnitude = (bits & bits.dtype.type((1 << sign) - 1)).astype(np.int64)
    return np.asarray(np.where(bits >> bits.dtype.type(sign) & bits.dtype.type(1), -magnitude, magnitude))
