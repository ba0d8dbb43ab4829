"""The properties section: the inherent attributes of ops, shared between ops that have the same.

Source: ``BytecodeReader.cpp``, class PropertiesSectionReader. An entry is bytes; what is in it depends on the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.bytecode.container import Chunk
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import varint

__all__ = ["decode_properties", "encode_properties"]


def decode_properties(reader: ByteReader) -> list[Chunk]:
    """Return the entries of the section, as views.

    Raises:
        MalformedArtifactError: If the section is damaged.
    """
    entries: list[Chunk] = [reader.take(reader.varint()) for _ in range(reader.count("properties"))]
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the last entry")
    return entries


def encode_properties(entries: Sequence[Chunk]) -> bytes:
    """Return the section that holds ``entries``."""
    return b"".join([varint(len(entries)), *(piece for data in entries for piece in (varint(len(data)), data))])
