"""Properties section: the inherent attributes of ops, shared between ops with equal attributes.

Source: ``BytecodeReader.cpp``, class PropertiesSectionReader. An entry is bytes, whose format depends on the op.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vhlo_tools.bytecode.entries import LARGEST_TABLE
from vhlo_tools.bytecode.reader import ByteReader, EntryReader
from vhlo_tools.bytecode.writer import varint
from vhlo_tools.dialect import PropertySlot
from vhlo_tools.files import Chunk, join

# A view takes 184 bytes, more than a copy of most entries.
_COPIED: Final = 256


class Properties(NamedTuple):
    """The inherent attributes of an op."""

    data: Chunk
    offset: int = -1  # in the file; -1 if new

    def reader(self) -> ByteReader:
        """Return a cursor that reports offsets in the file."""
        return EntryReader(self.data, self.offset, "properties")


def decode_properties(reader: ByteReader) -> list[Properties]:
    entries = []
    at = reader.position
    number = reader.count("properties")
    if number > LARGEST_TABLE:
        raise reader.malformed(f"the file has {number} properties; the limit is {LARGEST_TABLE}", at)
    for _ in range(number):
        size = reader.varint()
        offset = reader.position
        data = reader.take(size)
        entries.append(Properties(data if size > _COPIED else bytes(data), offset))
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
