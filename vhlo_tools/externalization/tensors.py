"""Value of a constant: its elements in their stored form, read in pieces."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final, Literal

from vhlo_tools.bytecode import File, Printer, digest, same_bytes, shortest_form
from vhlo_tools.externalization.element_types import element_size
from vhlo_tools.files import Chunk, View, slices, view
from vhlo_tools.records import dataclass

#: ``whole``: every element; ``splat``: one for all of them; ``packed``: one-bit elements, eight to a byte.
Form = Literal["whole", "splat", "packed"]

_BLOCK: Final = 1 << 16
# A program that nests shapes deeper, or has more bytes, is hostile.
_LARGEST_RANK: Final = 100
_MOST_BYTES: Final = 1 << 62
# Beyond this number, `shortest_form` leaves bits packed.
_MOST_BOOLEANS: Final = 1 << 24
_BITS_OF_BYTE: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The value of a constant.

    Attributes:
        element: The type of its elements, in StableHLO syntax.
        size: The size of an element in bytes; one of fewer than eight bits takes a byte.
        shape: Its shape.
        form: The form of the elements in ``data``.
        data: The bytes, a view into a file.
    """

    element: str
    size: int
    shape: tuple[int, ...]
    form: Form
    data: View

    @property
    def number(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of all elements in bytes."""
        return self.number * self.size

    def chunks(self) -> Iterator[Chunk]:
        """Yield all elements in pieces, one-bit elements as a byte each."""
        if self.form == "whole":
            yield self.data
        elif self.form == "packed":
            yield from _unpacked(self.data, self.number)
        else:
            one = bytes(self.data) if self.element != "i1" else bytes([self.data[0] & 1])
            block, left = one * max(1, _BLOCK // self.size), self.bytes
            while left > 0:
                yield block[:left]
                left -= len(block)

    def identify(self) -> tuple[bool, str]:
        """Return whether one element represents all of several, and a SHA-256 that equal tensors share."""
        if self.form == "packed" and self.number > _MOST_BOOLEANS:
            return self._identify_bits()
        short = shortest_form(self.data, self.shape, 1 if self.element == "i1" else 8 * self.size)
        return len(short) == self.size and self.number > 1, digest(short)

    def _identify_bits(self) -> tuple[bool, str]:
        found, first, same = hashlib.sha256(), self.data[0] & 1, True
        for chunk in self.chunks():
            for piece in slices(chunk):
                found.update(piece)
                same = same and bytes(piece).count(first) == len(piece)
        return same, digest(memoryview(bytes([first]))) if same else found.hexdigest()

    def holds(self, data: View) -> bool:
        """Return whether ``data`` equals the concatenation of :meth:`chunks`."""
        if len(data) != self.bytes:
            return False
        at = 0
        for chunk in self.chunks():
            if not same_bytes(view(chunk), data[at : at + len(chunk)]):
                return False
            at += len(chunk)
        return True


def read_tensor(file: File, printer: Printer, index: int) -> StoredTensor:
    entry = file.attributes[index]
    value = file.decode("attribute", index)
    if value is None or value.name != "tensor_v1":
        raise entry.malformed(f"attribute {index} is the value of a constant, but is not a tensor")
    text, shape, element = printer.builtin_tensor(value.field("type"))
    if not element or len(shape) > _LARGEST_RANK or any(size < 0 for size in shape):
        raise entry.malformed(f"a constant has the type {text[:100]}, which cannot have values")
    size = element_size(element)
    if size is None:
        raise entry.malformed(f"a constant has the type {text[:100]}, which cannot have values")
    number = math.prod(shape)
    if number * size > _MOST_BYTES:
        raise entry.malformed(f"a constant has the type {text[:100]}, which has too many elements")
    data = view(value.field("data"))
    form = _form_of(data, number, size, element)
    if form is None:
        raise entry.malformed(f"{len(data)} bytes are not elements of {text[:100]}")
    return StoredTensor(element, size, shape, form, data)


def _form_of(data: View, number: int, size: int, element: str) -> Form | None:
    """Return the form of ``number`` elements by the length of ``data``; ``None`` if it matches no form.

    Source: ``DenseElementsAttr::isValidRawBuffer``. Bits are packed, or in old files a byte each; for up to eight of
    them, a byte of equal bits is a splat.
    """
    if element == "i1" and number and len(data) == 1:
        return "packed" if 1 < number <= 8 and data[0] not in (0x00, 0xFF) else "splat"
    if len(data) == number * size:
        return "whole"
    if len(data) == size:
        return "splat"
    return "packed" if element == "i1" and len(data) == (number + 7) // 8 else None


def _unpacked(data: View, number: int) -> Iterator[bytes]:
    left = number
    for piece in slices(data):
        for at in range(0, len(piece), _BLOCK):
            block = b"".join([_BITS_OF_BYTE[byte] for byte in piece[at : at + _BLOCK]])[:left]
            left -= len(block)
            yield block


def pack(data: View) -> View:
    """Pack bits of a byte each eight to a byte; a large result is a mapped temporary file."""
    if len(data) <= _MOST_BOOLEANS:
        return memoryview(b"".join(_packed(data)))
    with TemporaryFile() as file:
        file.writelines(_packed(data))
        file.flush()
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _packed(data: View) -> Iterator[bytes]:
    for piece in slices(data):
        for at in range(0, len(piece), _BLOCK):
            block = bytes(piece[at : at + _BLOCK])
            if block.strip(b"\0\1"):
                raise ValueError("a byte is neither 0 nor 1")
            # The first of eight bits is the lowest: reversed, the bits are the binary digits of a number.
            digits = block[::-1].translate(_DIGITS)
            yield int(digits, 2).to_bytes((len(block) + 7) // 8, "little")


_DIGITS: Final = b"01" + bytes(254)
