"""Primitives of MLIR bytecode: a cursor over untrusted bytes, and the encoders of what it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk, View, view

# Cursor over untrusted bytes

# The PrefixVarInts of one byte: those with their lowest bit set.
_SMALL: Final = bytes(range(1, 256, 2))
_SHORT: Final = 64
_HALVES: Final = bytes(each >> 1 for each in range(256))


class ByteReader:
    """Bounded cursor over one section; it raises :class:`MalformedArtifactError` when the bytes do not suffice."""

    __slots__ = ("data", "end", "position", "section", "start")

    def __init__(self, data: View, start: int = 0, end: int | None = None, section: str | None = None) -> None:
        self.data: View = data
        self.start: int = start
        self.position: int = start
        self.end: int = len(data) if end is None else end
        self.section: str | None = section

    @property
    def remaining(self) -> int:
        """The number of bytes left in the range."""
        return self.end - self.position

    def byte(self) -> int:
        """Read one byte."""
        if self.position >= self.end:
            raise self.malformed("the bytes end where another byte was expected")
        value = self.data[self.position]
        self.position += 1
        return value

    def take(self, length: int) -> View:
        """Read ``length`` bytes, as a view."""
        if length > self.remaining:
            raise self.malformed(f"{length} bytes were announced, but only {self.remaining} remain")
        taken = self.data[self.position : self.position + length]
        self.position += length
        return taken

    def varint(self) -> int:
        """Read a PrefixVarInt: one to nine bytes, the number of further bytes in the low bits of the first."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        extra = (first & -first).bit_length() - 1
        return (int.from_bytes(self.take(extra), "little") << 8 | first) >> (extra + 1)

    def small(self, number: int) -> bytes | None:
        """Return the next PrefixVarInts as bytes if each of them has one, without reading them; ``None`` otherwise."""
        data = bytes(self.data[self.position : min(self.end, self.position + number)])
        return None if len(data) < number or data.translate(None, _SMALL) else data

    def varints(self, number: int) -> list[int]:
        """Read PrefixVarInts; faster than one by one, above all if they are small."""
        data, position = bytes(self.data[self.position : min(self.end, self.position + 9 * number)]), 0
        start, last = self.position, len(data) - 9
        if len(data) >= number and not (small := data[:number]).translate(None, _SMALL):
            # Sizes of locations, of which there may be as many as ops, have one byte each.
            self.position = start + number
            return list(small.translate(_HALVES))
        values: list[int] = []
        for _ in range(number):
            if position <= last:
                first = data[position]
                if first & 1:
                    values.append(first >> 1)
                    position += 1
                elif first & 2:
                    values.append((data[position + 1] << 8 | first) >> 2)
                    position += 2
                elif first:
                    size = (first & -first).bit_length()
                    values.append(int.from_bytes(data[position : position + size], "little") >> size)
                    position += size
                else:
                    values.append(int.from_bytes(data[position + 1 : position + 9], "little"))
                    position += 9
            else:
                self.position = start + position
                values.append(self.varint())
                position = self.position - start
        self.position = start + position
        return values

    def svarint(self) -> int:
        """Read a signed PrefixVarInt, of 64 bits."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def count(self, things: str, most: int | None = None) -> int:
        """Read a number of items of at least one byte each, which cannot exceed the number of remaining bytes.

        Nor may it exceed ``most``: what takes much more memory than bytes of the file has a limit.
        """
        at = self.position
        value = self.varint()
        if most is not None and value > most:
            raise self.malformed(f"the file has {value} {things}; the limit is {most}", at)
        if value > self.remaining:
            raise self.malformed(f"{value} {things} were announced, but only {self.remaining} bytes are left", at)
        return value

    def index(self, size: int, things: str) -> int:
        """Read an index into a table with ``size`` entries."""
        at = self.position
        value = self.varint()
        self.check_index(value, size, things, at)
        return value

    def flagged_index(self, size: int, things: str) -> tuple[int, bool]:
        """Read an index into a table with ``size`` entries, with a flag in its low bit."""
        at = self.position
        value = self.varint()
        self.check_index(value >> 1, size, things, at)
        return value >> 1, bool(value & 1)

    def check_index(self, value: int, size: int, things: str, at: int) -> None:
        """Raise unless ``value``, which was read at ``at``, is an index into a table with ``size`` entries."""
        if value >= size:
            raise self.malformed(f"index {value} is outside the table of {size} {things}", at)

    def null_terminated(self, limit: int) -> str:
        """Read a string of at most ``limit`` bytes, terminated by a zero byte."""
        window, length = b"", -1
        # Most are short.
        for size in (min(_SHORT, limit), limit):
            if length < 0:
                window = bytes(self.data[self.position : min(self.end, self.position + size + 1)])
                length = window.find(0)
        if length < 0:
            raise self.malformed(f"no end of the string within {limit} bytes")
        try:
            text = window[:length].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.malformed("the string is not UTF-8") from error
        self.position += length + 1
        return text

    def malformed(self, message: str, at: int | None = None) -> MalformedArtifactError:
        """Return the error for a defect at ``at``, by default at the present position."""
        return MalformedArtifactError(message, offset=self.position if at is None else at, section=self.section)


class EntryReader(ByteReader):
    """Reader of one table entry, whose errors have offsets in the file; a negative offset means a new entry."""

    __slots__ = ("_base",)

    def __init__(self, data: Chunk, offset: int, section: str) -> None:
        # Does not call super().__init__, because this one is called for every entry.
        self.data: View = view(data)
        self.start: int = 0
        self.position: int = 0
        self.end: int = len(self.data)
        self.section: str | None = section
        self._base = max(offset, 0)

    def malformed(self, message: str, at: int | None = None) -> MalformedArtifactError:
        return super().malformed(message, self._base + (self.position if at is None else at))


# Encoders of the primitives of MLIR bytecode; the counterpart of :mod:`vhlo_tools.bytecode.primitives`


def _varint(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} does not fit into an unsigned 64-bit integer")
    # A number of three bytes, as nearly all are in a program of very many ops, is made without the loop.
    if 1 << 14 <= value < 1 << 21:
        return (value << 3 | 4).to_bytes(3, "little")
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


#: The PrefixVarInts of small numbers, as nearly all in a file are: a table is twice as fast as the arithmetic.
SMALL: Final = [
    *(bytes((value << 1 | 1,)) for value in range(1 << 7)),
    *((value << 2 | 2).to_bytes(2, "little") for value in range(1 << 7, 1 << 11)),
]


def varint(value: int) -> bytes:
    """Encode 0 to 2^64 - 1 as a PrefixVarInt; raise ``ValueError`` for other values."""
    return SMALL[value] if 0 <= value < len(SMALL) else _varint(value)


def varints(values: Iterable[int]) -> bytes:
    small, most = SMALL, len(SMALL)
    return b"".join([small[value] if 0 <= value < most else _varint(value) for value in values])


def flagged(value: int, flag: bool) -> bytes:
    return varint(value << 1 | flag)


def zigzag(value: int) -> int:
    """Map a signed number of 64 bits to an unsigned one."""
    return ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF


def svarint(value: int) -> bytes:
    return varint(zigzag(value))
