"""The dialect section: the dialects of the file and the names of the ops that it uses of each.

Source: «Dialect Section» in ``mlir/docs/BytecodeFormat.md``; what depends on the version of the format is in
``BytecodeReader.cpp``: dialect versions since 1, a leading number of op names since 4, registration bits since 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from vhlo_tools.bytecode.container import Container, Section, read_section
from vhlo_tools.bytecode.reader import ByteReader

__all__ = ["DialectEntry", "OpName", "decode_dialects"]

_DIALECT_VERSIONS_SINCE = 1
_OP_COUNT_SINCE = 4
_REGISTRATION_SINCE = 5


@dataclass(frozen=True, slots=True)
class OpName:
    """The name of an op.

    Attributes:
        name: The name, without its dialect.
        registered: Whether the producer knew the op; ``None`` where the format does not tell.
    """

    name: str
    registered: bool | None


@dataclass(frozen=True, slots=True)
class DialectEntry:
    """A dialect of the file.

    Attributes:
        name: Its name.
        version: The section with its own version, if it has one.
        ops: The ops of it that the file uses.
    """

    name: str
    version: Section | None
    ops: tuple[OpName, ...]


def decode_dialects(data: memoryview, container: Container, strings: tuple[bytes, ...]) -> tuple[DialectEntry, ...]:
    """Return the dialects of the file, in the order of their indices.

    Raises:
        MalformedArtifactError: If the section is damaged.
    """
    reader = container.section("dialect").reader(data)
    heads = [_read_head(reader, container.version, strings) for _ in range(reader.count("dialects"))]
    ops: list[list[OpName]] = [[] for _ in heads]
    if container.version >= _OP_COUNT_SINCE:
        reader.count("op names")
    while reader.remaining:
        of_dialect = ops[reader.index(len(heads), "dialects")]
        for _ in range(reader.count("op names")):
            of_dialect.append(_read_op_name(reader, container.version, strings))
    return tuple(DialectEntry(name, version, tuple(names)) for (name, version), names in zip(heads, ops, strict=True))


def _read_head(reader: ByteReader, version: int, strings: tuple[bytes, ...]) -> tuple[str, Section | None]:
    if version < _DIALECT_VERSIONS_SINCE:
        return _text(strings[reader.index(len(strings), "strings")]), None
    index, versioned = reader.flagged_index(len(strings), "strings")
    return _text(strings[index]), read_section(reader) if versioned else None


def _read_op_name(reader: ByteReader, version: int, strings: tuple[bytes, ...]) -> OpName:
    if version < _REGISTRATION_SINCE:
        return OpName(_text(strings[reader.index(len(strings), "strings")]), None)
    index, registered = reader.flagged_index(len(strings), "strings")
    return OpName(_text(strings[index]), registered)


def _text(string: bytes) -> str:
    return string.decode("utf-8", "backslashreplace")
