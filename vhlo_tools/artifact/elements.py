"""The elements of constants: compared and named without being copied whole."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final

from vhlo_tools.mapping import slices

__all__ = ["digest", "element_texts", "same_bytes", "shortest_form"]

_CHUNK: Final = 1 << 20
# A program that nests shapes deeper, or has more elements, is hostile; their product is not computed.
_LARGEST_RANK: Final = 100
# Masks are small; those that are not are compared as they stand.
_MOST_BOOLEANS: Final = 1 << 24

_LAYOUTS: Final = {
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "index": "q",
    "ui8": "B",
    "ui16": "H",
    "ui32": "I",
    "ui64": "Q",
    "f16": "e",
    "f32": "f",
    "f64": "d",
}
_BITS_OF_BYTE: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


def same_bytes(one: memoryview, other: memoryview) -> bool:
    """Tell whether two views hold the same; far faster than comparing the views, and stops at the first difference."""
    if len(one) != len(other):
        return False
    return all(
        a[at : at + _CHUNK].tobytes() == b[at : at + _CHUNK].tobytes()
        for a, b in zip(slices(one), slices(other), strict=True)
        for at in range(0, len(a), _CHUNK)
    )


def digest(data: memoryview) -> str:
    """Return the SHA-256 of ``data`` as hexadecimal digits."""
    found = hashlib.sha256()
    for each in slices(data):
        found.update(each)
    return found.hexdigest()


def shortest_form(data: memoryview, shape: Sequence[int], bits: int) -> memoryview:
    """Return the bytes of a tensor such that equal tensors have equal bytes.

    All elements being the same, one stands for all; those of one bit take a byte each. MLIR writes either form, and in
    old files one byte for each bit.

    Args:
        data: The bytes as they stand in the file.
        shape: The sizes of the tensor.
        bits: How wide an element is.
    """
    if len(shape) > _LARGEST_RANK or not (number := math.prod(shape)) > 1:
        return data[:1] and memoryview(bytes([data[0] & 1])) if bits == 1 and len(data) == 1 else data
    if bits == 1:
        data = _booleans(data, number)
    size = max(1, bits // 8)
    if len(data) != size * number or not same_bytes(data[:-size], data[size:]):
        return data
    return data[:size]


def _booleans(data: memoryview, number: int) -> memoryview:
    """Return one byte for each bit, or one for all."""
    if len(data) == 1 and (data[0] in (0x00, 0xFF) or number > 8):
        return memoryview(bytes([data[0] & 1]))
    if len(data) == number or len(data) != (number + 7) // 8 or number > _MOST_BOOLEANS:
        return data
    return memoryview(b"".join([_BITS_OF_BYTE[byte] for byte in data])[:number])


def element_texts(data: memoryview, element: str, most: int) -> list[str] | None:
    """Return elements as text, exactly; ``None`` if there are more than ``most``, or of a kind that Python has not.

    Args:
        data: Their bytes, in the form of :func:`shortest_form`.
        element: Their type, as StableHLO spells it.
        most: How many are worth showing.
    """
    if element == "i1" and len(data) <= most:
        return ["true" if byte else "false" for byte in data]
    if element == "bf16" and len(data) <= 2 * most and len(data) % 2 == 0:
        wide = bytes(chain.from_iterable((0, 0, data[at], data[at + 1]) for at in range(0, len(data), 2)))
        return element_texts(memoryview(wide), "f32", most)
    layout = _LAYOUTS.get(element)
    size = struct.calcsize(layout) if layout else 0
    if not layout or len(data) > size * most or len(data) % size:
        return None
    numbers = struct.unpack(f"<{len(data) // size}{layout}", data)
    return [_number(number, element, data[i * size : (i + 1) * size]) for i, number in enumerate(numbers)]


def _number(number: int | float, element: str, data: memoryview) -> str:
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        # Not all of them are the same.
        return f"0x{bytes(data)[::-1].hex().upper()}"
    # As many digits as tell a float from its neighbours.
    return repr(number) if element == "f64" else f"{number:.9g}"
