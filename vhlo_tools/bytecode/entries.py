"""Tables of a file: strings, attributes and types, and the properties of ops."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import eq
from typing import Final, NamedTuple

from vhlo_tools.bytecode.container import COPIED
from vhlo_tools.bytecode.primitives import ByteReader, EntryReader, varint, varints
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk, FileRange, View, join, view
from vhlo_tools.lazy import pattern
from vhlo_tools.spec import PropertySlot

# String section: every string of the file, once
#
# Source: «String Section» in ``mlir/docs/BytecodeFormat.md``. The lengths come first, in reverse order and including
# the zero byte at the end of each string.


def decode_strings(reader: ByteReader) -> list[bytes]:
    lengths = reader.varints(reader.count("strings"))
    if sum(lengths) != reader.remaining:
        raise reader.malformed(f"the strings announce {sum(lengths)} bytes, but {reader.remaining} remain")
    strings = []
    for length in reversed(lengths):
        at = reader.position
        text = bytes(reader.take(length))
        if not text.endswith(b"\0"):
            raise reader.malformed("a string does not end with a zero byte", at)
        strings.append(text[:-1])
    return strings


def encode_strings(strings: Sequence[bytes]) -> bytes:
    lengths = b"".join(varint(len(text) + 1) for text in reversed(strings))
    return b"".join([varint(len(strings)), lengths, *(text + b"\0" for text in strings)])


# Attribute and type tables: two sections, one with the encodings and one with their sizes
#
# Source: «Attribute/Type Sections» in ``mlir/docs/BytecodeFormat.md``. Entries are only delimited here;
# :mod:`vhlo_tools.bytecode.codec` decodes them.

#: The limit on types, and that on properties, of which each takes as little as two bytes of the file, and a hundred of
#: memory; programs of 300,000 ops have some 300,000.
LARGEST_TABLE: Final = 1 << 22
#: The limit on attributes, which are columns. Each location is one: programs of ten million ops have ten million.
MOST_ATTRIBUTES: Final = 1 << 24

# A section of a large file of up to this size is read at once.
_READ_AT_ONCE: Final = 1 << 24
# The first bytes of entries are read at once where the entries are of this size on average, and one by one where they
# are longer, because one of them may be a constant of gigabytes.
_SHORT: Final = 256
_PIECE: Final = 1 << 16

# What stands at an index: the entry of the file, an entry of its own, or the common one of `EntryTable.fill`.
_ORIGINAL: Final = 0
_OWN: Final = 1
_FILLED: Final = 2
_RUNS: Final = pattern(rb"\0+|\x01|\x02+")
_ODD: Final = bytes(each * (each & 1) for each in range(256))


class Entry(NamedTuple):
    """An attribute or a type."""

    dialect: int  # index of the dialect
    custom: bool  # the dialect defines the encoding; otherwise MLIR text with a final zero
    data: Chunk
    offset: int = -1  # of ``data`` in the file; -1 if new
    rest: Chunk = b""  # further bytes of a new entry, a view into another file: written, not decoded

    def malformed(self, message: str) -> MalformedArtifactError:
        """Return the error for a defect in the entry."""
        return MalformedArtifactError(message, offset=max(self.offset, 0), section="attr_type")


# Hardly any question about entries is asked of one file alone.
@lru_cache(maxsize=256)
def _others_than(known: frozenset[int]) -> bytes:
    return bytes(each not in known for each in range(256))


class EntryTable:
    """Attributes or types of a file. Entries are made on access: there are as many locations as ops, rarely needed."""

    def __init__(self, data: View, start: int, base: int = 0) -> None:
        self.revision: int = 0  # changes when entries are replaced
        self._data = data
        self._base = base
        # The offset of each entry, and the end of the last.
        self._bounds = array("Q", [start])
        self._custom = bytearray()
        # The groups of entries of one dialect: the index of the first entry, and the dialect.
        self._firsts: list[int] = []
        self._dialects: list[int] = []
        self._codes: bytes | None = None
        self._state = bytearray()
        self._own: dict[int, Entry] = {}
        self._filler: Entry | None = None
        self._added: list[Entry] = []

    def copy(self) -> EntryTable:
        """Return a copy of a table without its edits."""
        copied = EntryTable(self._data, self._bounds[0], self._base)
        # These do not change once the table has been read.
        copied._bounds, copied._custom, copied._codes = self._bounds, self._custom, self._codes
        copied._firsts, copied._dialects = self._firsts, self._dialects
        return copied

    def add_group(self, dialect: int, lengths: Sequence[int]) -> int:
        """Add entries of one dialect by their flagged lengths; return the end of the last."""
        self._firsts.append(len(self._custom))
        self._dialects.append(dialect)
        end = self._bounds.pop()
        self._bounds.extend(accumulate([length >> 1 for length in lengths], initial=end))
        self._custom += bytes([length & 1 for length in lengths])
        return self._bounds[-1]

    @property
    def end(self) -> int:
        """The offset of the end of its last entry in the file."""
        return self._bounds[-1]

    @property
    def is_edited(self) -> bool:
        """Whether entries have been replaced or added."""
        return bool(self._state or self._added)

    def __len__(self) -> int:
        return len(self._custom) + len(self._added)

    def __getitem__(self, index: int) -> Entry:
        return self._at(index if index >= 0 else index + len(self))

    def __setitem__(self, index: int, entry: Entry) -> None:
        if index < 0:
            index += len(self)
        self.revision += 1
        if index >= len(self._custom):
            self._added[index - len(self._custom)] = entry
            return
        self._states()[index] = _OWN
        self._own[index] = entry

    def __iter__(self) -> Iterator[Entry]:
        return map(self._at, range(len(self)))

    def append(self, entry: Entry) -> None:
        """Add an entry at the end."""
        self._added.append(entry)

    def fill(self, kept: Collection[int], entry: Entry) -> None:
        """Replace every entry by ``entry``, except those at the indices ``kept``."""
        number = len(self._custom)
        state = bytearray([_FILLED]) * number
        self._added = [each if number + i in kept else entry for i, each in enumerate(self._added)]
        was = self._states()
        for index in kept:
            if index < number:
                if was[index] == _FILLED:
                    self._own[index] = self._at(index)
                state[index] = _ORIGINAL if was[index] == _ORIGINAL else _OWN
        self._state, self._filler = state, entry
        self.revision += 1

    def _states(self) -> bytearray:
        if not self._state:
            self._state = bytearray(len(self._custom))
        return self._state

    def _at(self, index: int) -> Entry:
        if index >= len(self._custom):
            return self._added[index - len(self._custom)]
        state = self._state[index] if self._state else _ORIGINAL
        if state == _OWN:
            return self._own[index]
        if state == _FILLED and self._filler is not None:
            return self._filler
        start, stop = self._bounds[index], self._bounds[index + 1]
        piece = self._data[start - self._base : stop - self._base]
        return Entry(
            self._dialects[bisect_right(self._firsts, index) - 1],
            self._custom[index] == 1,
            piece if stop - start > COPIED else bytes(piece),
            start,
        )

    # Questions about all entries, without making them

    def groups(self) -> Iterator[tuple[int, range]]:
        """Yield runs of entries of one dialect: the dialect, and their indices. Replaced entries are runs of one."""
        firsts = [*self._firsts, len(self._custom)]
        for dialect, start, stop in zip(self._dialects, firsts, firsts[1:], strict=False):
            if not self._state:
                yield dialect, range(start, stop)
                continue
            for run in _RUNS.finditer(self._state, start, stop):
                if self._state[run.start()] == _ORIGINAL:
                    yield dialect, range(*run.span())
                else:
                    yield self._at(run.start()).dialect, range(*run.span())
        for index, entry in enumerate(self._added, len(self._custom)):
            yield entry.dialect, range(index, index + 1)

    @property
    def codes(self) -> bytes:
        """First byte of each entry: twice its code plus one; 0 if it is text, empty, or a code of several bytes."""
        if self._codes is None:
            self._codes = b"".join(self._original_codes())
        if not self._state and not self._added:
            return self._codes
        codes = bytearray(self._codes)
        for run in _RUNS.finditer(self._state):
            if self._state[run.start()] != _ORIGINAL:
                codes[run.start() : run.end()] = bytes([_code(self._at(run.start()))]) * (run.end() - run.start())
        return bytes(codes) + bytes(map(_code, self._added))

    def _original_codes(self) -> Iterator[bytes]:
        bounds, data, base = self._bounds, self._data, self._base
        for at in range(0, len(self._custom), _PIECE):
            stop = min(at + _PIECE, len(self._custom))
            first, last = bounds[at], bounds[stop]
            starts = bounds[at:stop]
            if last - first <= _SHORT * (stop - at):
                # One byte more, because the last entries may be empty.
                piece = bytes(data[first - base : last - base]) + b"\0"
                codes = bytearray([piece[start - first] for start in starts])
            else:
                codes = bytearray([data[start - base] if start < last else 0 for start in starts])
            text = self._custom.find(0, at, stop)
            while text >= 0:
                codes[text - at] = 0
                text = self._custom.find(0, text + 1, stop)
            if any(map(eq, starts, bounds[at + 1 : stop + 1])):
                for index, (start, end) in enumerate(zip(starts, bounds[at + 1 : stop + 1], strict=True)):
                    codes[index] *= start < end
            yield bytes(codes.translate(_ODD))

    def others(self, known: Sequence[frozenset[int]]) -> Iterator[int]:
        """Yield the indices of entries whose byte in :attr:`codes` is not in ``known`` for their dialect."""
        codes = self.codes
        for dialect, run in self.groups():
            marks = codes[run.start : run.stop].translate(_others_than(known[dialect]))
            at = marks.find(1)
            while at >= 0:
                yield run.start + at
                at = marks.find(1, at + 1)

    def encode_sizes(self) -> bytes:
        """Return the sizes of the entries, by dialect."""
        sizes, group = bytearray(), bytearray()
        last, number = -1, 0
        for dialect, run in self.groups():
            if dialect != last and number:
                sizes += varint(last) + varint(number) + group
                group, number = bytearray(), 0
            last = dialect
            number += len(run)
            if not self._is_original(run):
                entry = self._at(run.start)
                group += varint((len(entry.data) + len(entry.rest)) << 1 | entry.custom) * len(run)
                continue
            for at in range(run.start, run.stop, _PIECE):
                stop = min(at + _PIECE, run.stop)
                bounds, custom = self._bounds[at : stop + 1], self._custom[at:stop]
                group += varints(
                    [(end - start) << 1 | flag for start, end, flag in zip(bounds, bounds[1:], custom, strict=False)]
                )
        if number:
            sizes += varint(last) + varint(number) + group
        return bytes(sizes)

    def encode(self) -> list[Chunk]:
        """Return the bytes of the entries, in pieces."""
        pieces: list[Chunk] = []
        for _, run in self.groups():
            if self._is_original(run):
                pieces.append(self._data[self._bounds[run.start] - self._base : self._bounds[run.stop] - self._base])
                continue
            entry = self._at(run.start)
            pieces += [bytes(entry.data) * len(run)] if len(run) > 1 else [entry.data, entry.rest]
        return [each for each in pieces if len(each)]

    def _is_original(self, run: range) -> bool:
        return run.start < len(self._custom) and (not self._state or self._state[run.start] == _ORIGINAL)


def _code(entry: Entry) -> int:
    first = entry.data[0] if entry.custom and len(entry.data) else 0
    return first if first & 1 else 0


def decode_entries(offsets: ByteReader, contents: ByteReader, dialects: int) -> tuple[EntryTable, EntryTable]:
    numbers = offsets.count("attributes", MOST_ATTRIBUTES), offsets.count("types", LARGEST_TABLE)
    data, base = contents.data, 0
    if isinstance(data, FileRange) and contents.remaining <= _READ_AT_ONCE:
        data, base = view(bytes(data[contents.position : contents.end])), contents.position
    tables = [EntryTable(data, contents.position, base)]
    _read_groups(tables[0], offsets, contents, numbers[0], dialects)
    tables.append(EntryTable(data, contents.position, base))
    _read_groups(tables[1], offsets, contents, numbers[1], dialects)
    for reader, things in ((offsets, "sizes"), (contents, "entries")):
        if reader.remaining:
            raise reader.malformed(f"{reader.remaining} bytes follow the last of the {things}")
    return tables[0], tables[1]


def _read_groups(table: EntryTable, offsets: ByteReader, contents: ByteReader, number: int, dialects: int) -> None:
    left = number
    while left:
        dialect = offsets.index(dialects, "dialects")
        at = offsets.position
        size = offsets.varint()
        if size == 0 or size > left:
            raise offsets.malformed(f"a group of {size} entries where {left} remain", at)
        left -= size
        lengths = offsets.varints(size)
        start = table.end
        if start + sum(lengths) // 2 > contents.end:
            # In sum they are too long; which one it is matters for the message only.
            for length in lengths:
                if start + (length >> 1) > contents.end:
                    remain = contents.end - start
                    raise contents.malformed(f"an entry of {length >> 1} bytes where {remain} remain", start)
                start += length >> 1
        table.add_group(dialect, lengths)
    contents.position = table.end


def encode_sizes(attributes: EntryTable, types: EntryTable) -> bytes:
    counts = varint(len(attributes)), varint(len(types))
    return b"".join([*counts, attributes.encode_sizes(), types.encode_sizes()])


def encode_entries(attributes: EntryTable, types: EntryTable) -> list[Chunk]:
    return [*attributes.encode(), *types.encode()]


# Properties section: the inherent attributes of ops, shared between ops with equal attributes
#
# Source: ``BytecodeReader.cpp``, class PropertiesSectionReader. An entry is bytes, whose format depends on the op.

# Up to this size, equal properties are one object, whose place is that of the first.
_SHARED: Final = 2


class Properties(NamedTuple):
    """The inherent attributes of an op."""

    data: Chunk
    offset: int = -1  # in the file; -1 if new

    def reader(self) -> ByteReader:
        """Return a cursor that reports offsets in the file."""
        return EntryReader(self.data, self.offset, "properties")


def decode_properties(reader: ByteReader) -> list[Properties]:
    entries = []
    # The shortest, which are a hundred times as large in memory as in the file.
    shared: dict[bytes, Properties] = {}
    for _ in range(reader.count("properties", LARGEST_TABLE)):
        size = reader.varint()
        offset = reader.position
        data = reader.take(size)
        if size > _SHARED:
            entries.append(Properties(data if size > COPIED else bytes(data), offset))
            continue
        found = shared.get(short := bytes(data))
        if found is None:
            found = shared[short] = Properties(short, offset)
        entries.append(found)
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the last entry")
    return entries


def attributes_in(properties: Properties, slots: Iterable[PropertySlot], attributes: int) -> dict[str, int]:
    """Return the attributes in ``properties`` by name, as indices into a table of size ``attributes``."""
    reader = properties.reader()
    found: dict[str, int] = {}
    for slot in slots:
        if not slot.optional:
            found[slot.name] = reader.index(attributes, "attributes")
            continue
        index, present = reader.flagged_index(attributes, "attributes")
        if present:
            found[slot.name] = index
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the properties of an op")
    return found


def encode_properties(entries: Sequence[Properties]) -> bytes:
    return join([varint(len(entries)), *(piece for each in entries for piece in (varint(len(each.data)), each.data))])
