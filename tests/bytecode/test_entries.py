"""Tables of entries, which make entries on access: as if all had been made at once and kept in a list."""

from __future__ import annotations

import random
from itertools import groupby
from pathlib import Path

import pytest

from vhlo_tools import MalformedArtifactError
from vhlo_tools.bytecode import Entry, EntryTable
from vhlo_tools.bytecode.entries import decode_entries, encode_entries, encode_sizes
from vhlo_tools.bytecode.primitives import ByteReader, varint
from vhlo_tools.files.mapping import FileRange, map_file

pytestmark = pytest.mark.every_python

KNOWN = [frozenset({13, 15, 0}), frozenset({7})]
#: Groups of a few entries and of many; entries of lengths of one byte or two, and of constants.
COUNTS, LENGTHS = (1, 2, 17, 300), (1, 2, 5, 5, 5, 31, 32, 63, 64, 200, 255, 256, 257, 9000)


def group(chance: random.Random, dialect: int) -> list[Entry]:
    """Return entries of a dialect, most of which are known, and some of other forms."""
    known = sorted(KNOWN[dialect] - {0})
    lengths = chance.choice((LENGTHS, LENGTHS[:5], (5,)))
    entries = [
        Entry(dialect, True, bytes([chance.choice(known)]) + chance.randbytes(chance.choice(lengths) - 1))
        for _ in range(chance.choice(COUNTS))
    ]
    others = Entry(dialect, False, b"text\0"), Entry(dialect, True, b""), Entry(dialect, True, b"\x11\x01")
    for other in (*others, Entry(dialect, True, b"\x02\x01"), Entry(dialect, False, b"\x0d\0")):
        if chance.random() < 0.2:
            entries[chance.randrange(len(entries))] = other
    return entries


def drawn(chance: random.Random) -> list[Entry]:
    return [entry for _ in range(chance.randrange(5)) for entry in group(chance, chance.randrange(2))]


def sections(*tables: list[Entry]) -> tuple[bytes, bytes]:
    """Return the two sections of tables, written in the plainest way."""
    sizes = b"".join(varint(len(table)) for table in tables)
    for table in tables:
        for dialect, run in groupby(table, key=lambda entry: entry.dialect):
            held = [varint(len(entry.data) << 1 | entry.custom) for entry in run]
            sizes += varint(dialect) + varint(len(held)) + b"".join(held)
    return sizes, b"".join(bytes(entry.data) for table in tables for entry in table)


def read(sizes: bytes, contents: bytes) -> tuple[EntryTable, EntryTable]:
    return decode_entries(ByteReader(memoryview(sizes)), ByteReader(memoryview(contents)), len(KNOWN))


def plain(table: EntryTable) -> list[Entry]:
    return [entry._replace(data=bytes(entry.data), offset=-1) for entry in table]


def check(table: EntryTable, model: list[Entry]) -> None:
    assert plain(table) == model
    assert len(table) == len(model)
    assert [table[index].data for index in range(-len(model), len(model))] == [each.data for each in model + model]
    codes = [each.data[0] if each.custom and each.data and each.data[0] & 1 else 0 for each in model]
    assert list(table.codes) == codes
    assert list(table.others(KNOWN)) == [i for i, each in enumerate(model) if codes[i] not in KNOWN[each.dialect]]
    runs = [(dialect, index) for dialect, run in table.groups() for index in run]
    assert runs == [(each.dialect, index) for index, each in enumerate(model)]


@pytest.mark.parametrize("seed", range(60))
def test_entries_come_back_and_change(seed: int) -> None:
    chance = random.Random(seed)
    models = drawn(chance), drawn(chance)
    data = sections(*models)
    tables = read(*data)
    for table, model in zip(tables, models, strict=True):
        check(table, model)
        assert not table.is_edited
    for _ in range(chance.randrange(4)):
        for table, model in zip(tables, models, strict=True):
            edit(chance, table, model)
            check(table, model)
    sizes, pieces = encode_sizes(*tables), encode_entries(*tables)
    assert (sizes, b"".join(map(bytes, pieces))) == sections(*models)


def edit(chance: random.Random, table: EntryTable, model: list[Entry]) -> None:
    """Change a table and what it should be in the same way."""
    (entry,) = chance.choices(group(chance, chance.randrange(2)))
    match chance.randrange(3):
        case 0 if model:
            for index in chance.choices(range(len(model)), k=chance.choice((1, 5))):
                table[index] = model[index] = entry
        case 1:
            kept = {index for index in range(len(model)) if chance.random() < 0.3}
            table.fill(kept, entry)
            model[:] = [each if index in kept else entry for index, each in enumerate(model)]
        case _:
            table.append(entry)
            model.append(entry)


def test_codes_of_more_entries_than_are_looked_at_at_once() -> None:
    model = [Entry(0, True, b""), *[Entry(0, True, b"\x0d")] * (1 << 16)]
    table, _ = read(*sections(model, []))
    assert table.codes == b"\0" + b"\x0d" * (1 << 16)


def test_replaced_entries_are_told_by_the_revision() -> None:
    table, _ = read(*sections(group(random.Random(0), 0), []))
    before = table.revision
    table.append(table[0])
    assert table.revision == before
    table[0] = table[0]
    assert table.revision != before


# A section of the first size is read at once, and one of the second in parts.
@pytest.mark.parametrize("size", [1 << 17, 1 << 24])
@pytest.mark.parametrize("seed", range(10))
def test_entries_of_a_file_outside_of_memory(seed: int, size: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    models = [*drawn(chance), Entry(1, True, b"\x07" + chance.randbytes(1 << 10) + bytes(size))], drawn(chance)
    sizes, contents = sections(*models)
    path = tmp_path / "contents"
    path.write_bytes(b"head" + contents)
    whole = map_file(path)
    assert isinstance(whole, FileRange)
    tables = decode_entries(ByteReader(memoryview(sizes)), ByteReader(whole, 4), len(KNOWN))
    for table, model in zip(tables, models, strict=True):
        check(table, model)
        assert all(bytes(whole[each.offset : each.offset + len(each.data)]) == bytes(each.data) for each in table)
    again, pieces = encode_sizes(*tables), encode_entries(*tables)
    assert (again, b"".join(map(bytes, pieces))) == (sizes, contents)


@pytest.mark.parametrize("seed", range(20))
def test_sections_that_are_cut_short_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    sizes, contents = sections([*drawn(chance), *group(chance, 1), Entry(1, True, b"\x07\1")], [])
    for cut in {1, 2, len(contents) // 2, len(contents)} - {0}:
        with pytest.raises(MalformedArtifactError, match=r"an entry of \d+ bytes where \d+ remain"):
            read(sizes, contents[:-cut])
    for cut in range(1, len(sizes)):
        with pytest.raises(MalformedArtifactError):
            read(sizes[:-cut], contents)
    with pytest.raises(MalformedArtifactError, match="1 bytes follow the last of the entries"):
        read(sizes, contents + b"x")
