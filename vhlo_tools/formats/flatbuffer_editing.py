"""Replacement of vectors in a FlatBuffer, with everything else unchanged, and without copying large parts."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.formats.flatbuffer import Table
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Chunk
    from vhlo_tools.formats.flatbuffer import FlatBufferReader, Vector
    from vhlo_tools.mapping import View

# Parts move by multiples of this, the largest alignment of any number in the format.
_ALIGNMENT: Final = 8
_VTABLE_HEAD: Final = 4
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
    in_order = sorted(replacements, key=lambda vector: vector.start)
    if survey.is_whole:
        return list(_moved(root.reader, survey, {vector: replacements[vector] for vector in in_order}))
    return list(_in_place(root.reader, survey, {vector: replacements[vector] for vector in in_order}))


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
    """Record a part, and return whether it is new."""
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
        if moved(target) - moved(at) != target - at:
            distance = moved(target) - moved(at)
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
        kept = _size(chunks) if _size(chunks) <= vector.count else 0
        if kept:
            yield from chunks
        for left in range(vector.count - kept, 0, -len(_ZEROS)):
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
