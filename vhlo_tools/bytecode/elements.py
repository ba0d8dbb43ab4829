"""Compare, digest and print the elements of constants, without copying them whole."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final

from vhlo_tools.files import View, slices

# The beginning of a tensor, which tells most of those apart whose elements are not all equal.
_HEAD: Final = 1 << 12
# Masks are small; larger boolean tensors are compared in the form in which they are stored.
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


def same_bytes(one: View, other: View) -> bool:
    """Far faster than comparing the views, and stops at the first difference."""
    if len(one) != len(other):
        return False
    return all(bytes(a) == bytes(b) for a, b in zip(slices(one), slices(other), strict=True))


def digest(data: View) -> str:
    found = hashlib.sha256()
    for each in slices(data):
        found.update(each)
    return found.hexdigest()


def shortest_form(data: View, shape: Sequence[int], bits: int) -> View:
    """Return the bytes of a tensor in a canonical form: equal tensors have equal bytes.

    A splat becomes a single element; ``i1`` takes a byte each. MLIR writes either form; old files pack eight to a byte.
    """
    if not (number := math.prod(shape)) > 1:
        return data[:1] and memoryview(bytes([data[0] & 1])) if bits == 1 and len(data) == 1 else data
    if bits == 1:
        data = _booleans(data, number)
    size = max(1, bits // 8)
    if len(data) != size * number:
        return data
    if len(data) <= _HEAD:
        return data[:size] if bytes(data) == bytes(data[:size]) * number else data
    head = data[:_HEAD]
    return data[:size] if all(same_bytes(each[:-size], each[size:]) for each in (head, data)) else data


def _booleans(data: View, number: int) -> View:
    if len(data) == 1 and (data[0] in (0x00, 0xFF) or number > 8):
        return memoryview(bytes([data[0] & 1]))
    if len(data) == number or len(data) != (number + 7) // 8 or number > _MOST_BOOLEANS:
        return data
    return memoryview(b"".join([_BITS_OF_BYTE[byte] for byte in bytes(data)])[:number])


def element_texts(data: View, element: str, most: int) -> list[str] | None:
    """Return elements, in :func:`shortest_form`, as exact text; ``None`` if too many or without a Python format."""
    if element == "i1" and len(data) <= most:
        return ["true" if byte else "false" for byte in bytes(data)]
    if element == "bf16" and len(data) <= 2 * most and len(data) % 2 == 0:
        wide = bytes(chain.from_iterable((0, 0, data[at], data[at + 1]) for at in range(0, len(data), 2)))
        return element_texts(memoryview(wide), "f32", most)
    layout = _LAYOUTS.get(element)
    size = struct.calcsize(layout) if layout else 0
    if not layout or len(data) > size * most or len(data) % size:
        return None
    numbers = struct.unpack(f"<{len(data) // size}{layout}", bytes(data))
    return [_number(number, element, data[i * size : (i + 1) * size]) for i, number in enumerate(numbers)]


def _number(number: int | float, element: str, data: View) -> str:
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        # There are many NaNs, which only their bits distinguish.
        return f"0x{bytes(data)[::-1].hex().upper()}"
    # Nine digits distinguish a float32 from its neighbours.
    return repr(number) if element == "f64" else f"{number:.9g}"
