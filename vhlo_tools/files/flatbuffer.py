"""Reader of FlatBuffers without generated code, and replacement of their vectors."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files.mapping import Chunk, View

# Reader of FlatBuffers without generated code, by a description of their tables, with every offset checked
#
# The format is that of https://flatbuffers.dev/internals: a *table* has a signed offset to its *vtable*, which contains
# the position in the table of each field; a field that is not a number is an unsigned offset, and so points forward:
# there can be no cycles. The FlatBuffers runtime for Python checks no offset and loads numpy.

_OFFSET: Final = 4
_VTABLE_HEAD: Final = 4
_NUMBERS: Final[Mapping[str, str]] = {
    "bool": "<?", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q"
}  # fmt: skip
#: The limit on bytes read, as a multiple of the file size: objects with several references are read for each.
_READ_AGAIN: Final = 8
_LEAST_BUDGET: Final = 1 << 16
#: The limit on the length of a vector or a string, however large the file is.
_MOST_ELEMENTS: Final = 1 << 22
_LONGEST_TEXT: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class TableField:
    """A field of a table.

    Attributes:
        slot: The position of its offset in a vtable.
        kind: A number (``u16``), ``string``, or the name of a table.
        is_vector: Whether its value is a vector of them.
    """

    slot: int
    kind: str
    is_vector: bool

    @property
    def number(self) -> str | None:
        """The ``struct`` format of the number, or of the numbers in the vector."""
        return _NUMBERS.get(self.kind)

    @property
    def is_offset(self) -> bool:
        """Whether the table contains an offset to the value instead of the value."""
        return self.is_vector or self.number is None


class Layout:
    """The tables in files of a format.

    Args:
        name: The name of the format in messages.
        tables: The fields of each table in the order of their slots, as ``name: kind`` or ``name: [kind]``, as in a
            FlatBuffers schema.
    """

    def __init__(self, name: str, tables: Mapping[str, tuple[str, ...]]) -> None:
        self.name = name
        self.tables: dict[str, dict[str, TableField]] = {
            table: {
                field: TableField(_VTABLE_HEAD + 2 * index, kind.strip("[]"), kind.startswith("["))
                for index, (field, kind) in enumerate(line.split(": ") for line in lines)
            }
            for table, lines in tables.items()
        }


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector or a string: ``count`` elements of ``size`` bytes each, after a count of four bytes at ``start``."""

    start: int
    count: int
    size: int

    @property
    def first(self) -> int:
        """The offset of the first element."""
        return self.start + _OFFSET

    @property
    def end(self) -> int:
        """The end of the last element."""
        return self.first + self.count * self.size


class FlatBufferReader:
    """Reader of the parts of one file.

    The number of bytes read is limited by the size of the file, so that a small file with many references to the same
    part is rejected instead of expanded.

    Args:
        data: The file.
        layout: The tables of its format.
    """

    def __init__(self, data: View, layout: Layout) -> None:
        self.data = data
        self.layout = layout
        self._budget = _READ_AGAIN * len(data) + _LEAST_BUDGET

    def root(self, table: str) -> Table:
        """Return the root table."""
        return Table(self, table, self.offset(0))

    def malformed(self, message: str, offset: int) -> MalformedArtifactError:
        """Return an error for this file."""
        return MalformedArtifactError(f"a {self.layout.name} file {message}", offset=offset, section=self.layout.name)

    def number(self, layout: str, at: int) -> int:
        """Return the number at ``at``."""
        if not 0 <= at <= len(self.data) - struct.calcsize(layout):
            raise self.malformed("refers outside itself", at)
        value: int = struct.unpack(layout, bytes(self.data[at : at + struct.calcsize(layout)]))[0]
        return value

    def offset(self, at: int) -> int:
        """Return the target of the offset at ``at``."""
        return at + self.number("<I", at)

    def vector(self, at: int, size: int) -> Vector:
        """Return the vector to which the offset at ``at`` points."""
        vector = Vector(start := self.offset(at), self.number("<I", start), size)
        if vector.end > len(self.data):
            left = len(self.data) - vector.first
            raise self.malformed(f"announces {vector.count * size} bytes where {left} remain", start)
        return vector

    def contents(self, vector: Vector) -> View:
        """Return the contents of a vector, as a view."""
        return self.data[vector.first : vector.end]

    def limit(self, vector: Vector, most: int) -> None:
        """Reject a vector of more than ``most`` elements."""
        if vector.count > most:
            raise self.malformed(f"has a vector of {vector.count} elements; the limit is {most}", vector.start)

    def spend(self, size: int, at: int) -> None:
        """Count ``size`` bytes as read."""
        self._budget -= size
        if self._budget < 0:
            raise self.malformed(
                "refers to the same parts too often: reading it would exceed the limit of about 8 times its size", at
            )


class Table:
    """A table; its fields are looked up on access, and absent ones are empty.

    Args:
        reader: The reader of its file.
        name: Its name in the layout.
        position: Its position in the file.
    """

    __slots__ = ("fields", "name", "position", "reader", "vtable", "vtable_size")

    def __init__(self, reader: FlatBufferReader, name: str, position: int) -> None:
        self.reader: FlatBufferReader = reader
        self.name: str = name
        self.position: int = position
        self.fields: dict[str, TableField] = reader.layout.tables[name]
        self.vtable: int = position - reader.number("<i", position)
        self.vtable_size: int = reader.number("<H", self.vtable)
        reader.spend(_OFFSET, position)

    def again(self) -> Table:
        """Return the same table with a new reader, whose limit on bytes read starts afresh."""
        return Table(FlatBufferReader(self.reader.data, self.reader.layout), self.name, self.position)

    def place(self, field: str) -> int | None:
        """Return the position of a field, or ``None`` if it is absent."""
        return self.place_of_slot(self.fields[field].slot)

    def place_of_slot(self, slot: int) -> int | None:
        """Return the position of the field of a slot, or ``None`` if it is absent."""
        if slot + 2 > self.vtable_size:
            return None
        offset = self.reader.number("<H", self.vtable + slot)
        return self.position + offset if offset else None

    def number(self, field: str) -> int:
        """Return a field that is a number, 0 if it is absent."""
        place, layout = self.place(field), self.fields[field].number
        return 0 if place is None or layout is None else self.reader.number(layout, place)

    def vector(self, field: str) -> Vector | None:
        """Return the vector or the string to which a field points."""
        place, kind = self.place(field), self.fields[field]
        if place is None:
            return None
        if kind.is_vector:
            return self.reader.vector(place, struct.calcsize(kind.number) if kind.number else _OFFSET)
        return self.reader.vector(place, 1)

    def bytes(self, field: str) -> View:
        """Return the contents of a string, or of a vector of numbers, as a view."""
        vector = self.vector(field)
        return memoryview(b"") if vector is None else self.reader.contents(vector)

    def message(self, field: str) -> View:
        """Return the contents of a vector of bytes, and count them as read."""
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
        return struct.unpack(f"<{vector.count}{layout[1:]}", bytes(self.reader.contents(vector)))

    def texts(self, field: str) -> Iterator[str]:
        """Yield the strings of a vector."""
        for place in self.places(field):
            yield self._text(self.reader.vector(place, 1))

    def table(self, field: str) -> Table | None:
        """Return the table to which a field points."""
        place = self.place(field)
        return None if place is None else Table(self.reader, self.fields[field].kind, self.reader.offset(place))

    def tables(self, field: str) -> Iterator[Table]:
        """Yield the tables of a vector."""
        for place in self.places(field):
            yield Table(self.reader, self.fields[field].kind, self.reader.offset(place))

    def places(self, field: str) -> Iterator[int]:
        """Yield the positions of the offsets in a vector of offsets."""
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


# Replacement of vectors in a FlatBuffer, with everything else unchanged, and without copying large parts

# Parts move by multiples of this, the largest alignment of any number in the format.
_ALIGNMENT: Final = 8
# Far more than a function of 65535 arguments, the most that jax can count, has.
_MOST_OFFSETS: Final = 1 << 23
_ZEROS: Final = memoryview(bytes(1 << 20))


@dataclass(slots=True)
class _SpanSurvey:
    """Parts and offsets in a file."""

    #: by the position of each offset: its target, and whether it is the signed one to a vtable
    references: dict[int, tuple[int, bool]] = field(default_factory=dict)
    parts: dict[int, tuple[int, str]] = field(default_factory=dict)  # by start: end and kind
    is_whole: bool = True  # whether the layout knows all fields of all tables, and so all parts


def replace_vectors(root: Table, replacements: Mapping[Vector, Sequence[Chunk]]) -> list[Chunk]:
    """Return a file in pieces, with the contents of some vectors of bytes replaced, reversibly.

    Parts after a vector move by multiples of eight bytes, and offsets across it are updated. A field unknown to the
    layout may be an offset: then parts stay, larger contents go to the end of the file, and unused space is zeros.
    """
    survey = _survey(root)
    in_order = dict(sorted(replacements.items(), key=lambda each: each[0].start))
    return list((_moved if survey.is_whole else _in_place)(root.reader, survey, in_order))


def _survey(root: Table) -> _SpanSurvey:
    """Survey a whole file; each part is visited once and must not overlap others, so the time is linear."""
    survey, reader = _SpanSurvey(), root.reader
    # The offset to the root is before all vectors, because unsigned offsets point forward, and never moves.
    _note(reader, survey, 0, 4, "root")
    waiting = [root]
    while waiting:
        table = waiting.pop()
        # The brackets distinguish vectors from tables of the same kind.
        if not _note(reader, survey, table.position, table.position + _size_of(table), table.name):
            continue
        _survey_head(table, survey)
        for name, kind in table.fields.items():
            place = table.place(name)
            if place is None or not kind.is_offset:
                continue
            places: Sequence[int] = (place,)
            survey.references[place] = (reader.offset(place), False)
            if kind.is_vector:
                vector = table.vector(name)
                if vector is None or not _note(reader, survey, vector.start, vector.end, f"[{kind.kind}]"):
                    continue
                places = range(vector.first, vector.end, vector.size) if kind.number is None else ()
            if len(survey.references) + len(waiting) + len(places) > _MOST_OFFSETS:
                raise reader.malformed(f"has more than {_MOST_OFFSETS} offsets", place)
            for each in places:
                target = reader.offset(each)
                survey.references[each] = (target, False)
                if kind.kind == "string":
                    # A string ends with a zero that its length does not count.
                    end = min(reader.vector(each, 1).end + 1, len(reader.data))
                    _note(reader, survey, target, end, kind.kind)
                elif kind.number is None:
                    waiting.append(Table(reader, kind.kind, target))
    for (start, (end, _)), (following, _) in pairwise(sorted(survey.parts.items())):
        if end > following:
            raise reader.malformed(f"has parts that overlap, from {start} and", following)
    return survey


def _size_of(table: Table) -> int:
    return table.reader.number("<H", table.vtable + 2)


def _survey_head(table: Table, survey: _SpanSurvey) -> None:
    """Record the vtable of a table, and check its contents."""
    reader, size = table.reader, _size_of(table)
    if table.vtable_size < _VTABLE_HEAD:
        raise reader.malformed("has a vtable without a head", table.vtable)
    _note(reader, survey, table.vtable, table.vtable + table.vtable_size, "vtable")
    survey.references[table.position] = (table.vtable, True)
    known = {each.slot: each for each in table.fields.values()}
    free = table.position + _VTABLE_HEAD
    places = []
    for slot in range(_VTABLE_HEAD, table.vtable_size - 1, 2):
        place, kind = table.place_of_slot(slot), known.get(slot)
        if place is None:
            continue
        if kind is None:
            survey.is_whole = False
        else:
            places.append((place, place + (4 if kind.is_offset else struct.calcsize(kind.number or ""))))
    for start, end in sorted(places):
        if not free <= start <= end <= table.position + size:
            raise reader.malformed(f"has a field outside its {table.name}", start)
        free = end


def _note(reader: FlatBufferReader, survey: _SpanSurvey, start: int, end: int, kind: str) -> bool:
    if end > len(reader.data):
        raise reader.malformed("refers outside itself", start)
    known = survey.parts.setdefault(start, part := (end, kind))
    if known != part:
        raise reader.malformed(f"has a {kind} and a {known[1]} at the same position", start)
    return known is part


def _moved(
    reader: FlatBufferReader, survey: _SpanSurvey, replacements: Mapping[Vector, Sequence[Chunk]]
) -> Iterator[Chunk]:
    """Yield the file with the parts after each vector moved."""
    starts = sorted(survey.parts)
    cuts: list[tuple[Vector, int, int]] = []
    for vector, chunks in replacements.items():
        after = bisect_right(starts, vector.start)
        following = starts[after] if after < len(starts) else len(reader.data)
        # Only alignment padding before the following part may be dropped; other bytes between parts are kept.
        if following - vector.end >= _ALIGNMENT or any(bytes(reader.data[vector.end : following])):
            following = vector.end
        cuts.append((vector, following, -(_size(chunks) - following + vector.first) % _ALIGNMENT))
    ends = [following for _, following, _ in cuts]
    shifts = [0]
    for (vector, following, padding), chunks in zip(cuts, replacements.values(), strict=True):
        shifts.append(shifts[-1] + _size(chunks) + padding - (following - vector.first))

    def moved(position: int) -> int:
        return position + shifts[bisect_right(ends, position)]

    patches = {vector.start: _pack("<I", _size(chunks)) for vector, chunks in replacements.items()}
    for at, (target, is_signed) in survey.references.items():
        if (distance := moved(target) - moved(at)) != target - at:
            patches[at] = _pack("<i", -distance) if is_signed else _pack("<I", distance)
    done = 0
    for vector, following, padding in cuts:
        yield from _patched(reader.data, done, vector.first, patches)
        yield from replacements[vector]
        yield _ZEROS[:padding]
        done = following
    yield from _patched(reader.data, done, len(reader.data), patches)


def _in_place(
    reader: FlatBufferReader, survey: _SpanSurvey, replacements: Mapping[Vector, Sequence[Chunk]]
) -> Iterator[Chunk]:
    """Yield the file with all parts at their old positions."""
    end = len(reader.data)
    patches: dict[int, bytes] = {}
    appended: list[Chunk] = []
    for vector, chunks in replacements.items():
        size = _size(chunks)
        if size <= vector.count:
            patches[vector.start] = _pack("<I", size)
            continue
        patches[vector.start] = _pack("<I", 0)
        at = end + -end % _ALIGNMENT
        for place, (target, _) in survey.references.items():
            if target == vector.start:
                patches[place] = _pack("<I", at - place)
        appended += [_ZEROS[: at - end], _pack("<I", size), *chunks]
        end = at + 4 + size
    done = 0
    for vector, chunks in replacements.items():
        yield from _patched(reader.data, done, vector.first, patches)
        fits = _size(chunks) <= vector.count
        yield from chunks if fits else ()
        for left in range(vector.count - fits * _size(chunks), 0, -len(_ZEROS)):
            yield _ZEROS[:left]
        done = vector.end
    yield from _patched(reader.data, done, len(reader.data), patches)
    yield from appended
    yield _ZEROS[: -end % _ALIGNMENT if appended else 0]


def _patched(data: View, start: int, end: int, patches: Mapping[int, bytes]) -> Iterator[Chunk]:
    """Yield a range of the file with some numbers replaced."""
    for at in sorted(at for at in patches if start <= at < end):
        yield data[start:at]
        yield patches[at]
        start = at + 4
    yield data[start:end]


def _size(chunks: Sequence[Chunk]) -> int:
    return sum(map(len, chunks))


def _pack(layout: str, number: int) -> bytes:
    try:
        return struct.pack(layout, number)
    except struct.error:
        raise InvalidProgramError(
            "the result would exceed the maximum size of a FlatBuffer: store the artifact in a separate file"
        ) from None
