"""Dialect section: the dialects of the file, and the names of the ops of each that the file uses.

Source: «Dialect Section» in ``mlir/docs/BytecodeFormat.md``; ``BytecodeReader.cpp`` for dependencies on the version of
the format: dialect versions since 1, a leading number of op names since 4, registration bits since 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import groupby
from typing import Final

from vhlo_tools.bytecode.container import encode_section, read_section
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import flagged, varint
from vhlo_tools.files import Chunk, join
from vhlo_tools.records import dataclass

_DIALECT_VERSIONS_SINCE: Final = 1
_OP_COUNT_SINCE: Final = 4
_REGISTRATION_SINCE: Final = 5


@dataclass(frozen=True, slots=True)
class DialectName:
    """A dialect of the file."""

    name: int  # index in the string table
    version: bytes | None = None


@dataclass(frozen=True, slots=True)
class OpName:
    """The name of an op."""

    dialect: int  # index of the dialect
    name: int  # index, in the string table, of the name without the dialect
    registered: bool = True  # whether the producer knew the op; written since version 5 of the format


@dataclass(slots=True)
class Dialects:
    """The decoded dialect section."""

    names: list[DialectName] = field(default_factory=list)
    ops: list[OpName] = field(default_factory=list)  # by index; those of one dialect are adjacent


def decode_dialects(reader: ByteReader, version: int, strings: int) -> Dialects:
    result = Dialects()
    for _ in range(reader.count("dialects")):
        if version < _DIALECT_VERSIONS_SINCE:
            result.names.append(DialectName(reader.index(strings, "strings")))
            continue
        name, versioned = reader.flagged_index(strings, "strings")
        result.names.append(DialectName(name, _dialect_version(reader) if versioned else None))
    if version >= _OP_COUNT_SINCE:
        announced = reader.count("op names")
    while reader.remaining:
        dialect = reader.index(len(result.names), "dialects")
        for _ in range(reader.count("op names")):
            if version < _REGISTRATION_SINCE:
                result.ops.append(OpName(dialect, reader.index(strings, "strings")))
            else:
                result.ops.append(OpName(dialect, *reader.flagged_index(strings, "strings")))
    if version >= _OP_COUNT_SINCE and announced != len(result.ops):
        raise reader.malformed(f"{announced} op names were announced, but the section has {len(result.ops)}")
    return result


def _dialect_version(reader: ByteReader) -> bytes:
    at = reader.position
    section = read_section(reader)
    if section.name != "dialect_versions":
        raise reader.malformed(f"expected the version of a dialect, found a {section.name} section", at)
    return bytes(section.reader(reader.data).take(section.size))


def encode_dialects(dialects: Dialects, version: int) -> bytes:
    pieces: list[Chunk] = [varint(len(dialects.names))]
    for dialect in dialects.names:
        if version < _DIALECT_VERSIONS_SINCE:
            pieces.append(varint(dialect.name))
        else:
            pieces.append(flagged(dialect.name, dialect.version is not None))
            if dialect.version is not None:
                pieces += encode_section("dialect_versions", [dialect.version])
    if version >= _OP_COUNT_SINCE:
        pieces.append(varint(len(dialects.ops)))
    for index, ops in groupby(dialects.ops, key=lambda op: op.dialect):
        pieces += _encode_group(index, ops, version)
    return join(pieces)


def _encode_group(dialect: int, ops: Iterable[OpName], version: int) -> list[bytes]:
    if version < _REGISTRATION_SINCE:
        names = [varint(op.name) for op in ops]
    else:
        names = [flagged(op.name, op.registered) for op in ops]
    return [varint(dialect), varint(len(names)), *names]
