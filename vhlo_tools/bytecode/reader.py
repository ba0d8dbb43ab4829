"""A cursor over hostile bytes."""

from __future__ import annotations

from vhlo_tools.errors import MalformedArtifactError

__all__ = ["ByteReader", "EntryReader"]


class ByteReader:
    """Reads the primitives of MLIR bytecode from a range of a buffer, and never outside it.

    Args:
        data: The whole file.
        start: Where the range starts.
        end: Where it ends; by default at the end of the file.
        section: The name of the section that the range is, for messages.

    Every method raises :class:`MalformedArtifactError`, with offset and section, when the bytes do not suffice.
    """

    __slots__ = ("data", "end", "position", "section", "start")

    def __init__(self, data: memoryview, start: int = 0, end: int | None = None, section: str | None = None) -> None:
        self.data = data
        self.start = self.position = start
        self.end = len(data) if end is None else end
        self.section = section

    @property
    def remaining(self) -> int:
        """The number of bytes left in the range."""
        return self.end - self.position

    def byte(self) -> int:
        """Read one byte."""
        if self.position >= self.end:
            raise self.malformed("the bytes end where one more was expected")
        value = self.data[self.position]
        self.position += 1
        return value

    def take(self, length: int) -> memoryview:
        """Read ``length`` bytes, as a view."""
        if length > self.remaining:
            raise self.malformed(f"{length} bytes were announced, but only {self.remaining} are left")
        view = self.data[self.position : self.position + length]
        self.position += length
        return view

    def varint(self) -> int:
        """Read a PrefixVarInt: one to nine bytes, the number of further bytes in the low bits of the first."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        extra = (first & -first).bit_length() - 1
        return (int.from_bytes(self.take(extra), "little") << 8 | first) >> (extra + 1)

    def varints(self, number: int) -> list[int]:
        """Read ``number`` PrefixVarInts; faster than one by one where they are small."""
        data, position = bytes(self.data[self.position : min(self.end, self.position + 9 * number)]), 0
        start, last = self.position, len(data) - 2
        values: list[int] = []
        for _ in range(number):
            if position < last and (first := data[position]) & 3:
                if first & 1:
                    values.append(first >> 1)
                    position += 1
                else:
                    values.append((data[position + 1] << 8 | first) >> 2)
                    position += 2
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

    def count(self, things: str) -> int:
        """Read a number of things each of which takes at least one byte, so that it cannot exceed what is left."""
        at = self.position
        value = self.varint()
        if value > self.remaining:
            raise self.malformed(f"{value} {things} were announced, but only {self.remaining} bytes are left", at)
        return value

    def index(self, size: int, things: str) -> int:
        """Read an index into a table of ``size`` things."""
        at = self.position
        value = self.varint()
        self.check_index(value, size, things, at)
        return value

    def flagged_index(self, size: int, things: str) -> tuple[int, bool]:
        """Read an index into a table of ``size`` things, with a flag in its low bit."""
        at = self.position
        value = self.varint()
        self.check_index(value >> 1, size, things, at)
        return value >> 1, bool(value & 1)

    def check_index(self, value: int, size: int, things: str, at: int) -> None:
        """Raise unless ``value``, which was read at ``at``, is an index into a table of ``size`` things."""
        if value >= size:
            raise self.malformed(f"index {value} is outside the table of {size} {things}", at)

    def null_terminated(self, limit: int) -> str:
        """Read a string that ends with a zero byte, of at most ``limit`` bytes."""
        window = bytes(self.data[self.position : min(self.end, self.position + limit + 1)])
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
        """Return the error for what is wrong at ``at``, by default here."""
        return MalformedArtifactError(message, offset=self.position if at is None else at, section=self.section)


class EntryReader(ByteReader):
    """Reads one entry of a table, and tells where in the file something is wrong with it.

    Args:
        data: The bytes of the entry.
        offset: Where in the file they start; negative if they are new.
        section: The name of the section that they stand in.
    """

    __slots__ = ("_base",)

    def __init__(self, data: bytes | memoryview, offset: int, section: str) -> None:
        # Not by the constructor above: this one is called for every entry.
        self.data = memoryview(data)
        self.start, self.position, self.end, self.section = 0, 0, len(self.data), section
        self._base = max(offset, 0)

    def malformed(self, message: str, at: int | None = None) -> MalformedArtifactError:
        """Return the error for what is wrong at ``at`` within the entry, by default here."""
        return super().malformed(message, self._base + (self.position if at is None else at))
