"""How far floats are apart: in units in the last place, for every float type that numpy and ml_dtypes have."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["is_complex", "is_float", "parts", "ulp_distance"]

_BITS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
#: Types without a sign, whose bits are in the order of their values.
_UNSIGNED: Final = frozenset({"float8_e8m0fnu"})
#: How many bits a float has where that is less than its bytes.
_NARROW: Final = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}

#: The distance of a number from what is none.
_FARTHEST: Final = np.iinfo(np.uint64).max


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Tell whether a type has a real and an imaginary part."""
    return dtype.kind == "c"


def is_float(dtype: np.dtype[Any]) -> bool:
    """Tell whether a type is a float, of numpy's own or of ml_dtypes."""
    return dtype.kind == "f" or "float" in dtype.name


def parts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of complex numbers as one of floats with one dimension more, and any other as it is."""
    if not is_complex(array.dtype):
        return array
    return np.stack([array.real, array.imag], axis=-1)


def ulp_distance(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return how many floats lie between those of two arrays of one type.

    Zeros of both signs are the same, and so are all that are no numbers; one of these is farthest from every number.

    Args:
        found: The floats.
        expected: Those that they are compared with, of the same type and shape.

    Returns:
        The distances, as ``uint64``.
    """
    one, other = _ordered(found), _ordered(expected)
    # The difference of two of 64 bits may need 64 without a sign: it wraps around to just that.
    with np.errstate(over="ignore"):
        distance = np.where(one > other, one - other, other - one).astype(np.uint64)
    nans = _isnan(found), _isnan(expected)
    distance = np.where(nans[0] & nans[1], np.uint64(0), distance)
    return np.where(nans[0] ^ nans[1], np.uint64(_FARTHEST), distance)


def _isnan(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # What is no number is not even itself, in every type.
    found: np.ndarray[Any, Any] = np.asarray(array != array)
    return found


def _ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers that are in the order of floats, without gaps."""
    array = np.ascontiguousarray(array)
    bits = array.view(_BITS[array.dtype.itemsize])
    if array.dtype.name in _UNSIGNED:
        return bits.astype(np.int64)
    sign = _NARROW.get(array.dtype.name, array.dtype.itemsize * 8) - 1
    magnitude = (bits & bits.dtype.type((1 << sign) - 1)).astype(np.int64)
    return np.asarray(np.where(bits >> bits.dtype.type(sign) & bits.dtype.type(1), -magnitude, magnitude))
