"""The properties section: the inherent attributes of ops, shared between ops that have the same.

Source: ``BytecodeReader.cpp``, class PropertiesSectionReader. An entry is bytes; what is in it depends on the op.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vhlo_tools.bytecode.container import Chunk
from vhlo_tools.bytecode.reader import ByteReader, EntryReader
from vhlo_tools.bytecode.writer import varint
from vhlo_tools.dialect import PropertySlot

__all__ = ["Properties", "attributes_in", "decode_properties", "encode_properties"]


class Properties(NamedTuple):
    """The inherent attributes of an op.

    Attributes:
        data: Their bytes, a view into the file.
        offset: Where in the file they start; -1 if they are new.
    """

    data: Chunk
    offset: int = -1

    def reader(self) -> ByteReader:
        """Return a cursor over the bytes, which knows where in the file they stand."""
        return EntryReader(self.data, self.offset, "properties")


def decode_properties(reader: ByteReader) -> list[Properties]:
    """Return the entries of the section.

    Raises:
        MalformedArtifactError: If the section is damaged.
    """
    entries = []
    for _ in range(reader.count("properties")):
        size = reader.varint()
        offset = reader.position
        entries.append(Properties(reader.take(size), offset))
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the last entry")
    return entries


def attributes_in(properties: Properties, slots: Iterable[PropertySlot], attributes: int) -> dict[str, int]:
    """Return the indices of the attributes that ``properties`` hold, by name; those that are absent are left out.

    Args:
        properties: The properties of an op.
        slots: The attributes that it has by definition.
        attributes: The size of the table of attributes.

    Raises:
        MalformedArtifactError: If they hold something else.
    """
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
    """Return the section that holds ``entries``."""
    return b"".join(
        [varint(len(entries)), *(piece for each in entries for piece in (varint(len(each.data)), each.data))]
    )
