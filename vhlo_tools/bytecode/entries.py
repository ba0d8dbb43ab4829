"""The attribute and type tables: two sections, one with the encodings and one with their sizes.

Source: «Attribute/Type Sections» in ``mlir/docs/BytecodeFormat.md``. Entries are only delimited here;
:mod:`vhlo_tools.bytecode.codec` decodes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final, NamedTuple

from vhlo_tools.bytecode.container import Chunk
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import flagged, varint
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.mapping import View

__all__ = ["LARGEST_TABLE", "Entry", "decode_entries", "encode_entries", "scan_entries"]

#: The limit on the entries of a table. Each takes some 150 bytes of memory, and as little as two of the file; programs
#: of 300,000 ops have some 300,000.
LARGEST_TABLE: Final = 1 << 22

# A view takes 184 bytes, more than a copy of most entries.
_COPIED: Final = 256
# A section of up to this size is read at once.
_READ_AT_ONCE: Final = 1 << 24
# A group of this number of entries is worth a look as a whole.
_MANY: Final = 16
# The bytes that are numbers, which are flagged lengths of entries: not empty, and with an encoding of their dialect.
_CUSTOM: Final = bytes(range(7, 256, 4))
_QUARTERS: Final = bytes(each >> 2 for each in range(256))


class Entry(NamedTuple):
    """An attribute or a type. A tuple, which takes a third of the time of a dataclass to create: a file has very many.

    Attributes:
        dialect: The index of its dialect.
        custom: Whether its dialect defines the encoding; otherwise it is MLIR text with a final zero.
        data: Its bytes, if there are many a view into the file.
        offset: The offset of its bytes in the file; -1 if it is new.
        rest: Further bytes of a new entry, which are a view into another file; they are written, but not decoded.
    """

    dialect: int
    custom: bool
    data: Chunk
    offset: int = -1
    rest: Chunk = b""

    def malformed(self, message: str) -> MalformedArtifactError:
        """Return the error for a defect in the entry."""
        return MalformedArtifactError(message, offset=max(self.offset, 0), section="attr_type")


def decode_entries(offsets: ByteReader, contents: ByteReader, dialects: int) -> tuple[list[Entry], list[Entry]]:
    """Return the attributes and the types of a file, in the order of their indices.

    Args:
        offsets: The section with their sizes.
        contents: The section with their bytes.
        dialects: The number of dialects in the file.

    Raises:
        MalformedArtifactError: If the sections are damaged or inconsistent.
    """
    at = offsets.position
    numbers = offsets.count("attributes"), offsets.count("types")
    for number, things in zip(numbers, ("attributes", "types"), strict=True):
        if number > LARGEST_TABLE:
            raise offsets.malformed(f"the file has {number} {things}; the limit is {LARGEST_TABLE}", at)
    attributes, types = (_decode_table(offsets, contents, number, dialects) for number in numbers)
    for reader, things in ((offsets, "sizes"), (contents, "entries")):
        if reader.remaining:
            raise reader.malformed(f"{reader.remaining} bytes follow the last of the {things}")
    return attributes, types


def _decode_table(offsets: ByteReader, contents: ByteReader, number: int, dialects: int) -> list[Entry]:
    entries: list[Entry] = []
    data, start, end = contents.data, contents.position, contents.end
    base, whole = start, bytes(data[start:end]) if number and end - start <= _READ_AT_ONCE else None
    while len(entries) < number:
        dialect = offsets.index(dialects, "dialects")
        at = offsets.position
        size = offsets.varint()
        if size == 0 or size > number - len(entries):
            raise offsets.malformed(f"a group of {size} entries where {number - len(entries)} remain", at)
        for length in offsets.varints(size):
            stop = start + (length >> 1)
            if stop > end:
                raise contents.malformed(f"an entry of {length >> 1} bytes where {end - start} remain", start)
            if stop - start > _COPIED:
                piece: Chunk = data[start:stop]
            else:
                piece = bytes(data[start:stop]) if whole is None else whole[start - base : stop - base]
            entries.append(Entry(dialect, bool(length & 1), piece, start))
            start = stop
    contents.position = start
    return entries


def scan_entries(
    offsets: ByteReader, contents: ByteReader, skipped: Sequence[frozenset[int]]
) -> Iterator[tuple[bool, Entry]]:
    """Yield entries, and whether they are types, except those whose first byte is skipped for their dialect.

    Where nearly all are skipped, this takes a fraction of the time and memory of :func:`decode_entries`.

    Args:
        offsets: The section with their sizes.
        contents: The section with their bytes.
        skipped: First bytes of entries to skip: twice as many sets as there are dialects, first for the attributes of
            each dialect, then for the types.

    Raises:
        MalformedArtifactError: If the sections are damaged or inconsistent.
    """
    numbers = offsets.count("attributes"), offsets.count("types")
    dialects = len(skipped) // 2
    data, start, end = contents.data, contents.position, contents.end
    for is_type, number in zip((False, True), numbers, strict=True):
        left = number
        while left:
            dialect = offsets.index(dialects, "dialects")
            skip = skipped[dialect + dialects * is_type]
            at = offsets.position
            size = offsets.varint()
            if size == 0 or size > left:
                raise offsets.malformed(f"a group of {size} entries where {left} remain", at)
            left -= size
            if size >= _MANY and (small := offsets.small(size)) is not None:
                passed = _passed(data, start, end, small, skip)
                if passed is not None:
                    offsets.take(size)
                    start = passed
                    continue
            for length in offsets.varints(size):
                stop = start + (length >> 1)
                if stop > end:
                    raise contents.malformed(f"an entry of {length >> 1} bytes where {end - start} remain", start)
                if not (length & 1 and stop > start and data[start] in skip):
                    yield is_type, Entry(dialect, bool(length & 1), data[start:stop], start)
                start = stop


def _passed(data: View, start: int, end: int, lengths: bytes, skip: frozenset[int]) -> int | None:
    """Return the end of a group of entries that are all skipped; ``None`` if one is not, or is damaged.

    Nothing here is done entry by entry in Python: most groups are of locations, one for each op.

    Args:
        data: The file.
        start: The start of the group.
        end: The end of the section.
        lengths: The flagged lengths of the entries, a byte for each.
        skip: The first bytes of entries to skip.
    """
    if lengths.translate(None, _CUSTOM):
        return None
    sizes = lengths.translate(_QUARTERS)
    size = sum(sizes)
    if start + size > end:
        return None
    firsts = itemgetter(*accumulate(sizes[:-1], initial=0))(bytes(data[start : start + size]))
    return None if bytes(firsts).translate(None, bytes(skip)) else start + size


def encode_entries(attributes: Sequence[Entry], types: Sequence[Entry]) -> tuple[bytes, list[Chunk]]:
    """Encode the two sections: the sizes, and the bytes in pieces."""
    pieces = [varint(len(attributes)), varint(len(types))]
    for table in (attributes, types):
        for dialect, entries in groupby(table, key=lambda entry: entry.dialect):
            sizes = [flagged(len(entry.data) + len(entry.rest), entry.custom) for entry in entries]
            pieces += [varint(dialect), varint(len(sizes)), *sizes]
    return b"".join(pieces), [
        piece for table in (attributes, types) for entry in table for piece in (entry.data, entry.rest) if len(piece)
    ]
