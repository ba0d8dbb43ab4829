"""The value of a constant: elements in a form that artifacts keep them in, gone through without being held."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final, Literal

from vhlo_tools.artifact.elements import digest, same_bytes, shortest_form
from vhlo_tools.bytecode import Chunk, File
from vhlo_tools.bytecode.printing import Printer
from vhlo_tools.mapping import slices
from vhlo_tools.weights.element_types import element_size

__all__ = ["Form", "Tensor", "pack", "read_tensor"]

#: ``whole``: every element; ``splat``: one for all of them; ``packed``: eight of one bit in a byte.
Form = Literal["whole", "splat", "packed"]

_BLOCK: Final = 1 << 16
# A program that nests shapes deeper, or has more bytes, is hostile.
_LARGEST_RANK: Final = 100
_MOST_BYTES: Final = 1 << 62
# Beyond so many, `shortest_form` leaves bits as they are packed.
_MOST_BOOLEANS: Final = 1 << 24
_BITS_OF_BYTE: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


@dataclass(frozen=True, slots=True)
class Tensor:
    """The value of a constant.

    Attributes:
        element: The type of its elements, as StableHLO spells it.
        size: How many bytes an element takes; one of fewer than eight bits takes a byte.
        shape: Its sizes.
        form: How ``data`` holds the elements.
        data: The bytes, a view into a file.
    """

    element: str
    size: int
    shape: tuple[int, ...]
    form: Form
    data: memoryview

    @property
    def number(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes all elements take."""
        return self.number * self.size

    def chunks(self) -> Iterator[Chunk]:
        """Yield all elements, in pieces: a byte for each of one bit."""
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
        """Tell whether one element stands for all of several, and return a SHA-256 that equal tensors share."""
        if self.form == "packed" and self.number > _MOST_BOOLEANS:
            return self._identify_bits()
        short = shortest_form(self.data, self.shape, 1 if self.element == "i1" else 8 * self.size)
        return len(short) == self.size and self.number > 1, digest(short)

    def _identify_bits(self) -> tuple[bool, str]:
        found, first, same = hashlib.sha256(), self.data[0] & 1, True
        for chunk in self.chunks():
            found.update(chunk)
            same = same and bytes(chunk).count(first) == len(chunk)
        return same, digest(memoryview(bytes([first]))) if same else found.hexdigest()

    def holds(self, data: memoryview) -> bool:
        """Tell whether ``data`` is what :meth:`chunks` yields."""
        if len(data) != self.bytes:
            return False
        at = 0
        for chunk in self.chunks():
            if not same_bytes(memoryview(chunk), data[at : at + len(chunk)]):
                return False
            at += len(chunk)
        return True


def read_tensor(file: File, printer: Printer, index: int) -> Tensor:
    """Return the dense tensor that is attribute ``index`` of ``file``.

    Raises:
        MalformedArtifactError: If it is none, or its bytes do not fit its type.
    """
    entry = file.attributes[index]
    value = file.decode("attribute", index)
    if value is None or value.name != "tensor_v1":
        raise entry.malformed(f"attribute {index} is no tensor, although it is the value of a constant")
    text, shape, element = printer.builtin_tensor(value.field("type"))
    if not element or len(shape) > _LARGEST_RANK or any(size < 0 for size in shape):
        raise entry.malformed(f"a constant has the type {text[:100]}, which has no values")
    size = element_size(element)
    if size is None:
        raise entry.malformed(f"a constant has the type {text[:100]}, which has no values")
    number = math.prod(shape)
    if number * size > _MOST_BYTES:
        raise entry.malformed(f"a constant has the type {text[:100]}, which has too many elements")
    data = memoryview(value.field("data"))
    form = _form_of(data, number, size, element)
    if form is None:
        raise entry.malformed(f"{len(data)} bytes are no elements of {text[:100]}")
    return Tensor(element, size, shape, form, data)


def _form_of(data: memoryview, number: int, size: int, element: str) -> Form | None:
    """Return how ``data`` holds so many elements.

    MLIR tells the forms apart by their length: ``DenseElementsAttr::isValidRawBuffer``. Bits are packed, or in old
    files a byte each; of up to eight of them, a byte of equal bits is a splat.
    """
    if element == "i1" and number and len(data) == 1:
        return "packed" if 1 < number <= 8 and data[0] not in (0x00, 0xFF) else "splat"
    if len(data) == number * size:
        return "whole"
    if len(data) == size:
        return "splat"
    return "packed" if element == "i1" and len(data) == (number + 7) // 8 else None


def _unpacked(data: memoryview, number: int) -> Iterator[bytes]:
    left = number
    for piece in slices(data):
        for at in range(0, len(piece), _BLOCK):
            block = b"".join([_BITS_OF_BYTE[byte] for byte in piece[at : at + _BLOCK]])[:left]
            left -= len(block)
            yield block


def pack(data: memoryview) -> memoryview:
    """Return bits, a byte each, as eight in a byte; very many stand in a file without a name.

    Raises:
        ValueError: If a byte is no bit.
    """
    if len(data) <= _MOST_BOOLEANS:
        return memoryview(b"".join(_packed(data)))
    with TemporaryFile() as file:
        file.writelines(_packed(data))
        file.flush()
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _packed(data: memoryview) -> Iterator[bytes]:
    for piece in slices(data):
        for at in range(0, len(piece), _BLOCK):
            block = piece[at : at + _BLOCK].tobytes()
            if block.strip(b"\0\1"):
                raise ValueError("a byte is neither 0 nor 1")
            # The first of eight is the lowest bit: as digits of a number, from the last to the first.
            digits = block[::-1].translate(_DIGITS)
            yield int(digits, 2).to_bytes((len(block) + 7) // 8, "little")


_DIGITS: Final = b"01" + bytes(254)
