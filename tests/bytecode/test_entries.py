"""Tables of entries, of which a scan passes over what is not wanted: as if all had been read, and then selected."""

from __future__ import annotations

import random

import pytest

from vhlo_tools import MalformedArtifactError
from vhlo_tools.bytecode.entries import Entry, decode_entries, encode_entries, scan_entries
from vhlo_tools.bytecode.reader import ByteReader

SKIPPED = [frozenset({13, 15}), frozenset({7}), frozenset({13}), frozenset[int]()]
DIALECTS = len(SKIPPED) // 2
#: Groups as long as are passed over at once, or shorter or longer; and entries of lengths of one byte or two.
COUNTS, LENGTHS = (1, 2, 15, 16, 17, 300), (1, 2, 5, 5, 5, 31, 32, 63, 64, 200)


def group(chance: random.Random, dialect: int, *, is_type: bool) -> list[Entry]:
    """Return entries of a dialect, most of which are skipped, and some of other forms."""
    skip = sorted(SKIPPED[dialect + DIALECTS * is_type]) or [13]
    lengths = chance.choice((LENGTHS, LENGTHS[:5], (5,)))
    entries = [
        Entry(dialect, True, bytes([chance.choice(skip)]) + chance.randbytes(chance.choice(lengths) - 1))
        for _ in range(chance.choice(COUNTS))
    ]
    for other in (Entry(dialect, False, b"text\0"), Entry(dialect, True, b""), Entry(dialect, True, b"\x11\x01")):
        if chance.random() < 0.2:
            entries[chance.randrange(len(entries))] = other
    return entries


def table(chance: random.Random, *, is_type: bool) -> list[Entry]:
    groups = (group(chance, number % DIALECTS, is_type=is_type) for number in range(chance.randrange(5)))
    return [entry for each in groups for entry in each]


def sections(attributes: list[Entry], types: list[Entry]) -> tuple[bytes, bytes]:
    sizes, contents = encode_entries(attributes, types)
    return sizes, b"".join(map(bytes, contents))


def scanned(sizes: bytes, contents: bytes) -> list[tuple[bool, Entry]]:
    readers = ByteReader(memoryview(sizes)), ByteReader(memoryview(contents))
    return [(is_type, each._replace(data=bytes(each.data))) for is_type, each in scan_entries(*readers, SKIPPED)]


def selected(sizes: bytes, contents: bytes) -> list[tuple[bool, Entry]]:
    tables = decode_entries(ByteReader(memoryview(sizes)), ByteReader(memoryview(contents)), DIALECTS)
    return [
        (is_type, entry._replace(data=bytes(entry.data)))
        for is_type, entries in zip((False, True), tables, strict=True)
        for entry in entries
        if not (entry.custom and entry.data and entry.data[0] in SKIPPED[entry.dialect + DIALECTS * is_type])
    ]


@pytest.mark.parametrize("seed", range(60))
def test_a_scan_yields_what_is_not_skipped(seed: int) -> None:
    chance = random.Random(seed)
    tables = table(chance, is_type=False), table(chance, is_type=True)
    assert scanned(*sections(*tables)) == selected(*sections(*tables))


@pytest.mark.parametrize("seed", range(20))
def test_a_scan_refuses_sections_that_are_cut_short(seed: int) -> None:
    chance = random.Random(seed)
    sizes, contents = sections([*table(chance, is_type=False), *group(chance, 1, is_type=False)], [])
    for cut in {1, 2, len(contents) // 2, len(contents)} - {0}:
        with pytest.raises(MalformedArtifactError, match=r"an entry of \d+ bytes where \d+ remain"):
            scanned(sizes, contents[:-cut])
    for cut in range(1, len(sizes)):
        with pytest.raises(MalformedArtifactError):
            scanned(sizes[:-cut], contents)
