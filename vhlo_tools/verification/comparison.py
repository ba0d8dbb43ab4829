"""Comparison of arrays and of values: tolerances, NaN, and which result is which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import numpy as np

from vhlo_tools.compat import PLUGIN_ENGINE
from vhlo_tools.execution import ProbedValue, ProbeSite
from vhlo_tools.records import dataclass

# Distances of floats in units in the last place, for every float type of numpy and ml_dtypes

_BITS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
#: Unsigned types, whose bits are in the order of their values.
_UNSIGNED: Final = frozenset({"float8_e8m0fnu"})
#: The number of bits of floats that have fewer bits than their bytes.
_NARROW: Final = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}

#: The distance of a number from NaN.
_ULPS_APART: Final = 2**64 - 1


#: The smallest normal numbers of types whose subnormal numbers XLA takes as zero on a CPU, by their names.
_SMALLEST: Final = {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float64": 2.0**-1022}


def flushed_by(engines: Iterable[str]) -> str | None:
    """Why numbers that differ say nothing of the programs, if one of the engines may take subnormal ones as zero."""
    found = next((each for each in engines if each == "xla" or each.startswith(PLUGIN_ENGINE)), None)
    return None if found is None else f"{found} {'takes' if found == 'xla' else 'may take'} subnormal numbers as zero"


def without_subnormals(value: Any) -> Any:
    """A copy of results or inputs with zeros in place of the numbers that XLA takes as zeros."""
    if isinstance(value, tuple | list):
        return tuple(map(without_subnormals, value))
    if value is None:
        return None
    array = np.array(value)
    numbers = array.reshape(-1)
    numbers = numbers.view(f"f{array.dtype.itemsize // 2}") if is_complex(array.dtype) else numbers
    if (smallest := _SMALLEST.get(numbers.dtype.name)) is not None:
        numbers[np.abs(numbers) < numbers.dtype.type(smallest)] *= numbers.dtype.type(0)
    return array


def has_subnormals(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(has_subnormals, value))
    return value is not None and bool((without_subnormals(value) != np.asarray(value)).any())


def is_complex(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c"


def copied(value: Any) -> Any:
    """Return a copy of an input, which may be donated."""
    if isinstance(value, tuple | list):
        return tuple(map(copied, value))
    return None if value is None else np.array(value)


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
    return np.where(nans[0] ^ nans[1], np.uint64(_ULPS_APART), distance)


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


# Matching of corresponding values of two programs

#: The key of a result of an op: the position of the op, and the number of the result.
Key = tuple[str, int]


def key_of(site: ProbeSite) -> Key:
    return site.path, site.result


def matching_sites(before: Sequence[ProbedValue], after: Sequence[ProbedValue]) -> dict[Key, Key]:
    """Sites match by location and name of their ops if unique, otherwise by the order of ops of equal name and type.

    Where ops replace others, each is matched with the one at its position if there are as many and the types are equal,
    otherwise the last with the last: the final result of both.
    """
    pairs: dict[Key, Key] = {}
    located = _once(after, _location)
    for each, value in _once(before, _location).items():
        if each in located and value.dtype == located[each].dtype and value.shape == located[each].shape:
            pairs[key_of(value.site)] = key_of(located[each].site)
    taken = set(pairs.values())
    one = [value for value in before if key_of(value.site) not in pairs]
    other = [value for value in after if key_of(value.site) not in taken]
    pairs.update((key_of(a.site), key_of(b.site)) for a, b in _aligned(one, other))
    return pairs


def _aligned(before: Sequence[ProbedValue], after: Sequence[ProbedValue]) -> Iterator[tuple[ProbedValue, ProbedValue]]:
    matcher = SequenceMatcher(None, list(map(_kind, before)), list(map(_kind, after)), autojunk=False)
    for tag, start, end, start_, end_ in matcher.get_opcodes():
        one, other = before[start:end], after[start_:end_]
        if tag == "replace" and len(one) != len(other):
            one, other = one[-1:], other[-1:]
        if tag in ("equal", "replace"):
            yield from (pair for pair in zip(one, other, strict=True) if _kind(pair[0])[2:] == _kind(pair[1])[2:])


def _kind(value: ProbedValue) -> tuple[Hashable, ...]:
    return value.site.op, value.site.result, value.dtype, value.shape


def _location(value: ProbedValue) -> Hashable:
    # A position in unnamed text does not identify the origin of the op.
    known = value.site.location and not value.site.location.startswith('"-":')
    return (value.site.location, value.site.op, value.site.result) if known else None


def _once(values: Sequence[ProbedValue], identity: Callable[[ProbedValue], Hashable]) -> dict[Hashable, ProbedValue]:
    """Only values with a unique identity."""
    numbers = Counter(map(identity, values))
    return {each: value for value in values if (each := identity(value)) is not None and numbers[each] == 1}


# Comparison of outputs: the distance of their elements, its maximum, and whether it is within a tolerance


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerance for floats: a float must be within ``ulp``, or within the sum of the other two.

    Integers and booleans must be equal.

    Attributes:
        ulp: The distance in units in the last place of the compared float type.
        relative: The distance relative to the absolute expected value.
        absolute: The absolute distance, added to the relative one.
    """

    ulp: int = 4
    relative: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        text = f"{self.ulp} ulp"
        if self.relative or self.absolute:
            text += f", or {self.absolute:g} + {self.relative:g} * |expected|"
        return text


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of the comparison of an output.

    Attributes:
        place: The number of the output, in tuples ``0.1``.
        dtype: The type of its elements.
        shape: Its shape.
        differing: The number of elements that are not equal.
        outside: The number of elements outside of the tolerance.
        max_ulp: The largest distance in units in the last place; ``None`` for elements that are not floats.
        max_absolute: The largest absolute difference, among finite numbers.
        max_relative: The largest difference relative to the expected value, among finite numbers other than zero.
        worst: The index of the element with the largest distance; ``None`` if all are equal.
        found: That element.
        expected: The expected element at that index.
        mismatch: The difference of shapes or types, if these prevented a comparison.
        explained: The reason why elements outside of the tolerance say nothing of the programs: what the specification
            leaves open, or subnormal numbers that an engine takes as zero; empty if there is none.
    """

    place: str
    dtype: str
    shape: tuple[int, ...]
    differing: int = 0
    outside: int = 0
    max_ulp: int | None = None
    max_absolute: float = 0.0
    max_relative: float = 0.0
    worst: tuple[int, ...] | None = None
    found: str | None = None
    expected: str | None = None
    mismatch: str | None = None
    explained: str = ""

    @property
    def passed(self) -> bool:
        """Whether the output is within the tolerance, or its distance is explained."""
        return self.mismatch is None and not (self.outside and not self.explained)

    def __str__(self) -> str:
        if self.mismatch is not None:
            return f"output {self.place}: {self.mismatch}"
        head = f"output {self.place}: {self.dtype}[{', '.join(map(str, self.shape))}]"
        if not self.differing:
            return f"{head}, equal"
        number = f"{self.differing} of {int(np.prod(self.shape))} differ"
        if self.outside:
            number += f", {self.outside} beyond the tolerance"
        ulp = "" if self.max_ulp is None else f" {self.max_ulp} ulp," if self.max_ulp < _ULPS_APART else " NaN,"
        return (
            f"{head}, {number}: at most{ulp} {self.max_absolute:.3g} absolute, {self.max_relative:.3g} relative; "
            f"most at {list(self.worst or ())}: {self.found}, expected {self.expected}"
            f"{self.explained and f'; {self.explained}'}"
        )


def compare(
    found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: Tolerance, place: str
) -> Comparison:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        mismatch = f"it is {found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"
        return Comparison(place, str(found.dtype), found.shape, mismatch=mismatch)
    floats = is_float(found.dtype) or is_complex(found.dtype)
    if found.tobytes() == expected.tobytes():
        return Comparison(place, str(found.dtype), found.shape, max_ulp=0 if floats else None)
    ulp = None
    if floats:
        one, other = parts(found), parts(expected)
        ulp = ulp_distance(one, other)
        wide = (one.astype(np.float64), other.astype(np.float64))
        with np.errstate(invalid="ignore", over="ignore"):
            absolute = np.abs(wide[0] - wide[1])
            near = absolute <= tolerance.absolute + tolerance.relative * np.abs(wide[1])
        # Infinities have no difference; those of the same sign are equal by their distance in ulp.
        near &= np.isfinite(wide[0]) & np.isfinite(wide[1])
        outside = (ulp > tolerance.ulp) & ~near
        # The largest number is one ulp from infinity, and yet outside of the tolerance.
        outside |= np.isinf(wide[0]) ^ np.isinf(wide[1])
        absolute = np.where(np.isfinite(absolute), absolute, 0)
        unequal = ulp != 0
    else:
        unequal = outside = np.asarray(found != expected)
        # Differences of 64 bits exceed all integer types of numpy; float64 is precise enough for reports.
        absolute = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    if not unequal.any():
        # The signs of zeros or the bits of NaNs differ.
        return Comparison(place, str(found.dtype), found.shape, max_ulp=None if ulp is None else 0)
    # The element with the largest distance, among those outside of the tolerance if there are any.
    measure = (absolute if ulp is None else ulp.astype(np.float64)) + 1
    flat = int(np.argmax(np.where(outside if outside.any() else unequal, measure, 0)))
    index = tuple(int(each) for each in np.unravel_index(flat, unequal.shape))[: found.ndim]
    size = np.abs(parts(expected).astype(np.float64))
    relative = np.divide(absolute, size, out=np.zeros_like(absolute), where=(size > 0) & np.isfinite(size))
    differing, beyond = (int(each.reshape(*found.shape, -1).any(axis=-1).sum()) for each in (unequal, outside))
    return Comparison(
        *(place, str(found.dtype), found.shape, differing, beyond, None if ulp is None else int(ulp.max())),
        *(float(absolute.max()), float(relative.max()), index, str(found[index]), str(expected[index])),
    )
