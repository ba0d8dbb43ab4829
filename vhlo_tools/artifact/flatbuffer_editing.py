"""Vectors of a FlatBuffer replaced, with all else left as it is, and nothing large held."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from vhlo_tools.artifact.flatbuffer import Reader, Table, Vector
from vhlo_tools.bytecode import Chunk
from vhlo_tools.errors import InvalidProgramError

__all__ = ["replace_vectors"]

# Parts move by multiples of this: as much as any number of the format is aligned to.
_ALIGNMENT: Final = 8
_VTABLE_HEAD: Final = 4
# What a function of 65535 arguments, as many as jax can count, comes nowhere near.
_MOST_OFFSETS: Final = 1 << 23
_ZEROS: Final = memoryview(bytes(1 << 20))


@dataclass(slots=True)
class _Survey:
    """What stands where in a file.

    Attributes:
        references: For each offset where it stands, where it points, and whether it is the signed one to a vtable.
        parts: For each part where it begins, where it ends, and what it is.
        is_whole: Whether the layout knows all fields that tables have, and so all parts.
    """

    references: dict[int, tuple[int, bool]] = field(default_factory=dict)
    parts: dict[int, tuple[int, str]] = field(default_factory=dict)
    is_whole: bool = True


def replace_vectors(root: Table, replacements: Mapping[Vector, Sequence[Chunk]]) -> list[Chunk]:
    """Return a file in pieces, with the contents of some vectors of bytes replaced.

    What follows a vector moves by multiples of eight bytes, and the offsets that lead across are written anew. Putting
    the old contents back gives the old file, byte for byte.

    A field that the layout does not know may be an offset, which could not be written anew. In a file that has one
    nothing moves: what is not larger than before takes the old place, and anything else the end of the file; zeros fill
    what is left of the old place.

    Args:
        root: The table that all others hang on.
        replacements: The new contents of the vectors, in pieces.

    Raises:
        MalformedArtifactError: If the file is damaged, or its parts overlap.
        InvalidProgramError: If the result would be larger than the format allows.
    """
    survey = _survey(root)
    in_order = sorted(replacements, key=lambda vector: vector.start)
    if survey.is_whole:
        return list(_moved(root.reader, survey, {vector: replacements[vector] for vector in in_order}))
    return list(_in_place(root.reader, survey, {vector: replacements[vector] for vector in in_order}))


def _survey(root: Table) -> _Survey:
    """Walk through all of a file.

    Every part is looked at once, and parts that overlap are refused, so that this takes no longer than the file is
    large.
    """
    survey, reader = _Survey(), root.reader
    _note(reader, survey, 0, 4, "root")
    survey.references[0] = (root.position, False)
    waiting = [root]
    while waiting:
        table = waiting.pop()
        # Vectors are told from tables of the same kind by their brackets.
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
                    # A zero that its length does not count ends a string.
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


def _survey_head(table: Table, survey: _Survey) -> None:
    """Note where the vtable of a table is, and check what it says."""
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


def _note(reader: Reader, survey: _Survey, start: int, end: int, kind: str) -> bool:
    """Note a part, and tell whether it is new."""
    if end > len(reader.data):
        raise reader.malformed("refers outside itself", start)
    known = survey.parts.setdefault(start, part := (end, kind))
    if known != part:
        raise reader.malformed(f"has a {kind} and a {known[1]} in one place", start)
    return known is part


def _moved(reader: Reader, survey: _Survey, replacements: Mapping[Vector, Sequence[Chunk]]) -> Iterator[Chunk]:
    """Yield the file with what follows each vector moved."""
    starts = sorted(survey.parts)
    cuts: list[tuple[Vector, int, int]] = []
    for vector, chunks in replacements.items():
        after = bisect_right(starts, vector.start)
        following = starts[after] if after < len(starts) else len(reader.data)
        # Of the bytes between two parts only those that align the second are nobody's.
        if following - vector.end >= _ALIGNMENT or any(reader.data[vector.end : following]):
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


def _in_place(reader: Reader, survey: _Survey, replacements: Mapping[Vector, Sequence[Chunk]]) -> Iterator[Chunk]:
    """Yield the file with all parts where they were."""
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


def _patched(data: memoryview, start: int, end: int, patches: Mapping[int, bytes]) -> Iterator[Chunk]:
    """Yield a part of the file with some numbers replaced."""
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
            "the result would be larger than a FlatBuffer can be: keep the artifact in a file of its own"
        ) from None
