"""FlatBuffers read and edited without generated code, by a description of their tables, with every offset checked.

The format is that of https://flatbuffers.dev/internals: a *table* finds its *vtable* by a signed offset, and the vtable
says where in the table each field stands; a field that is no number holds an unsigned offset, and so points forward:
what is written in this format cannot go in a circle. The FlatBuffers runtime for Python checks no offset and loads
numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vhlo_tools.errors import MalformedArtifactError

__all__ = ["Field", "Layout", "Reader", "Table", "Vector"]

_OFFSET: Final = 4
_VTABLE_HEAD: Final = 4
_NUMBERS: Final[Mapping[str, str]] = {
    "bool": "<?", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q"
}  # fmt: skip
#: How much may be read, as a multiple of the file: objects that many refer to are read again for each.
_READ_AGAIN: Final = 8
_LEAST_BUDGET: Final = 1 << 16
#: How long what is read may be at all, however large the file is.
_MOST_ELEMENTS: Final = 1 << 22
_LONGEST_TEXT: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table.

    Attributes:
        slot: Where its offset stands in a vtable.
        kind: A number (``u16``), ``string``, or the name of a table.
        is_vector: Whether it holds many of them.
    """

    slot: int
    kind: str
    is_vector: bool

    @property
    def number(self) -> str | None:
        """The ``struct`` format of the number, or of those in the vector."""
        return _NUMBERS.get(self.kind)

    @property
    def is_offset(self) -> bool:
        """Whether the table holds an offset to its value, and not the value."""
        return self.is_vector or self.number is None


class Layout:
    """The tables that a kind of file is made of.

    Args:
        name: What to call the file in messages.
        tables: For each table its fields in the order of their slots, as ``name: kind`` or ``name: [kind]``, as in a
            FlatBuffers schema.
    """

    def __init__(self, name: str, tables: Mapping[str, tuple[str, ...]]) -> None:
        self.name = name
        self.tables = {
            table: {
                field: Field(_VTABLE_HEAD + 2 * index, kind.strip("[]"), kind.startswith("["))
                for index, (field, kind) in enumerate(line.split(": ") for line in lines)
            }
            for table, lines in tables.items()
        }


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector or a string: ``count`` things of ``size`` bytes each, behind a count of four bytes at ``start``."""

    start: int
    count: int
    size: int

    @property
    def first(self) -> int:
        """Where the first of them stands."""
        return self.start + _OFFSET

    @property
    def end(self) -> int:
        """Where the last of them ends."""
        return self.first + self.count * self.size


class Reader:
    """Reads the parts of one file.

    It reads not much more than there is in the file, so that a small file in which all refers to the same is refused,
    and not unfolded.

    Args:
        data: The file.
        layout: What it is made of.
    """

    def __init__(self, data: memoryview, layout: Layout) -> None:
        self.data = data
        self.layout = layout
        self._budget = _READ_AGAIN * len(data) + _LEAST_BUDGET

    def root(self, table: str) -> Table:
        """Return the table that all others hang on."""
        return Table(self, table, self.offset(0))

    def malformed(self, message: str, offset: int) -> MalformedArtifactError:
        """Return an error of this file."""
        return MalformedArtifactError(f"a {self.layout.name} file {message}", offset=offset, section=self.layout.name)

    def number(self, layout: str, at: int) -> int:
        """Return the number at ``at``."""
        if not 0 <= at <= len(self.data) - struct.calcsize(layout):
            raise self.malformed("refers outside itself", at)
        value: int = struct.unpack_from(layout, self.data, at)[0]
        return value

    def offset(self, at: int) -> int:
        """Return what the offset at ``at`` points to."""
        return at + self.number("<I", at)

    def vector(self, at: int, size: int) -> Vector:
        """Return the vector that the offset at ``at`` points to."""
        vector = Vector(start := self.offset(at), self.number("<I", start), size)
        if vector.end > len(self.data):
            left = len(self.data) - vector.first
            raise self.malformed(f"announces {vector.count * size} bytes where {left} are left", start)
        return vector

    def contents(self, vector: Vector) -> memoryview:
        """Return what stands in a vector, as a view."""
        return self.data[vector.first : vector.end]

    def limit(self, vector: Vector, most: int) -> None:
        """Refuse a vector of more than ``most`` things."""
        if vector.count > most:
            raise self.malformed(f"has {vector.count} things where more than {most} make no sense", vector.start)

    def spend(self, size: int, at: int) -> None:
        """Take note that ``size`` bytes were read."""
        self._budget -= size
        if self._budget < 0:
            raise self.malformed("refers to the same parts again and again", at)


class Table:
    """A table; its fields are looked up when they are asked for, and absent ones are empty.

    Args:
        reader: What reads its file.
        name: Its name in the layout.
        position: Where it stands.
    """

    __slots__ = ("fields", "name", "position", "reader", "vtable", "vtable_size")

    def __init__(self, reader: Reader, name: str, position: int) -> None:
        self.reader = reader
        self.name = name
        self.position = position
        self.fields = reader.layout.tables[name]
        self.vtable = position - reader.number("<i", position)
        self.vtable_size = reader.number("<H", self.vtable)
        reader.spend(_OFFSET, position)

    def again(self) -> Table:
        """Return the same table, to be read anew: as much may be read of what is in it as if nothing had been."""
        return Table(Reader(self.reader.data, self.reader.layout), self.name, self.position)

    def place(self, field: str) -> int | None:
        """Return where a field stands, if the table has it."""
        return self.place_of_slot(self.fields[field].slot)

    def place_of_slot(self, slot: int) -> int | None:
        """Return where the field of a slot stands, if the table has it."""
        if slot + 2 > self.vtable_size:
            return None
        offset = self.reader.number("<H", self.vtable + slot)
        return self.position + offset if offset else None

    def number(self, field: str) -> int:
        """Return a field that is a number, 0 where it is absent."""
        place, layout = self.place(field), self.fields[field].number
        return 0 if place is None or layout is None else self.reader.number(layout, place)

    def vector(self, field: str) -> Vector | None:
        """Return the vector or the string that a field points to."""
        place, kind = self.place(field), self.fields[field]
        if place is None:
            return None
        if kind.is_vector:
            return self.reader.vector(place, struct.calcsize(kind.number) if kind.number else _OFFSET)
        return self.reader.vector(place, 1)

    def bytes(self, field: str) -> memoryview:
        """Return the contents of a string, or of a vector of numbers, as a view."""
        vector = self.vector(field)
        return memoryview(b"") if vector is None else self.reader.contents(vector)

    def message(self, field: str) -> memoryview:
        """Return the contents of a vector of bytes that is to be read."""
        contents = self.bytes(field)
        self.reader.spend(len(contents), self.position)
        return contents

    def text(self, field: str) -> str:
        """Return a string."""
        return self._text(self.vector(field))

    def numbers(self, field: str) -> tuple[int, ...]:
        """Return a vector of numbers."""
        vector, layout = self.vector(field), self.fields[field].number
        if vector is None or layout is None:
            return ()
        self.reader.limit(vector, _MOST_ELEMENTS)
        self.reader.spend(vector.count * vector.size, vector.start)
        return struct.unpack(f"<{vector.count}{layout[1:]}", self.reader.contents(vector))

    def texts(self, field: str) -> Iterator[str]:
        """Yield the strings of a vector."""
        for place in self.places(field):
            yield self._text(self.reader.vector(place, 1))

    def table(self, field: str) -> Table | None:
        """Return the table that a field points to."""
        place = self.place(field)
        return None if place is None else Table(self.reader, self.fields[field].kind, self.reader.offset(place))

    def tables(self, field: str) -> Iterator[Table]:
        """Yield the tables of a vector."""
        for place in self.places(field):
            yield Table(self.reader, self.fields[field].kind, self.reader.offset(place))

    def places(self, field: str) -> Iterator[int]:
        """Yield where the offsets of a vector of offsets stand."""
        vector = self.vector(field)
        if vector is not None:
            self.reader.limit(vector, _MOST_ELEMENTS)
            for place in range(vector.first, vector.end, vector.size):
                self.reader.spend(_OFFSET, place)
                yield place

    def _text(self, vector: Vector | None) -> str:
        if vector is None:
            return ""
        self.reader.limit(vector, _LONGEST_TEXT)
        self.reader.spend(vector.count, vector.start)
        return bytes(self.reader.contents(vector)).decode("utf-8", "backslashreplace")
