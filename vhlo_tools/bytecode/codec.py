"""Attributes and types, decoded and encoded as ``dialect_specs/`` describes them.

What is not specified (another dialect's, or a code from the future) stays bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from vhlo_tools.bytecode.container import Chunk
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.bytecode.reader import EntryReader
from vhlo_tools.bytecode.writer import flagged, svarint, varint
from vhlo_tools.dialect import Encoding, EntryKind, Field, encodings_of, spellings_of
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["Tables", "Value", "decode_entry", "encode_entry", "entry_name", "references"]


class Tables(Protocol):
    """The tables that entries refer to."""

    @property
    def attributes(self) -> list[Entry]: ...  # noqa: D102
    @property
    def types(self) -> list[Entry]: ...  # noqa: D102
    @property
    def strings(self) -> list[bytes]: ...  # noqa: D102
    def dialect(self, index: int) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Value:
    """An attribute or a type, taken apart.

    Attributes:
        dialect: Its dialect.
        encoding: How it is written.
        offset: Where in the file it stands; 0 if it is new.
        fields: The values of the fields, in order: indices, numbers, views of bytes, and tuples for lists and pairs.
            A number wider than 64 bits is a tuple of its words.
    """

    dialect: str
    encoding: Encoding
    fields: tuple[Any, ...]
    offset: int = 0

    @property
    def name(self) -> str:
        """Its name as printed, without the dialect."""
        return self.encoding.name

    def field(self, name: str) -> Any:
        """Return the value of the field ``name``.

        Raises:
            MalformedArtifactError: If it has none: something else stands where one with that field belongs.
        """
        for field, value in zip(self.encoding.fields, self.fields, strict=True):
            if field.name == name:
                return value
        raise MalformedArtifactError(
            f"{self.dialect}.{self.name} stands where something with a {name} belongs",
            offset=self.offset,
            section="attr_type",
        )


def decode_entry(
    tables: Tables, kind: EntryKind, entry: Entry, encodings: Mapping[int, Encoding] | None = None
) -> Value | None:
    """Return an attribute or a type taken apart; ``None`` if nothing is known of its encoding.

    Args:
        tables: The tables it refers to.
        kind: Whether it is an attribute or a type.
        entry: Its bytes.
        encodings: The encodings of its dialect by code, by default those that are specified.

    Raises:
        MalformedArtifactError: If its bytes are not what its encoding says.
    """
    if not entry.custom:
        return None
    dialect = tables.dialect(entry.dialect)
    encodings = encodings_of(dialect, kind) if encodings is None else encodings
    if not encodings:
        return None
    reader = _Reader(tables, entry)
    encoding = encodings.get(reader.varint())
    if encoding is None:
        return None
    fields = tuple(
        [reader.elements(field) if field.is_list else _READ[field.kind](reader) for field in encoding.fields]
    )
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the {kind} {dialect}.{encoding.name}")
    return Value(dialect, encoding, fields, max(entry.offset, 0))


def entry_name(tables: Tables, kind: EntryKind, entry: Entry) -> str:
    """Return what an attribute or a type is called: its name, or its dialect and code, or the dialect of its text."""
    dialect = tables.dialect(entry.dialect)
    if not entry.custom:
        return f"{dialect} (as text)"
    code = _Reader(tables, entry).varint() if len(entry.data) else -1
    encoding = encodings_of(dialect, kind).get(code)
    return f"{dialect}.{encoding.name}" if encoding else f"{dialect} {kind} code {code}"


def references(value: Value, kind: Literal["attribute", "type", "string"]) -> set[int]:
    """Return the indices of the attributes, types or strings that ``value`` refers to itself."""
    found: set[int] = set()
    for field, content in zip(value.encoding.fields, value.fields, strict=True):
        if field.kind == "pair" and kind == "attribute":
            found |= {index for pair in content for index in pair}
        elif kind in field.kind and content is not None:
            found |= set(content) if field.is_list else {content}
    return found


class _Reader(EntryReader):
    """Reads the fields of one entry."""

    __slots__ = ("_bits", "_tables")

    def __init__(self, tables: Tables, entry: Entry) -> None:
        super().__init__(entry.data, entry.offset, "attr_type")
        self._tables = tables
        self._bits = 64

    def elements(self, field: Field) -> tuple[Any, ...]:
        read = _READ[field.kind]
        return tuple([read(self) for _ in range(self.count(f"elements of {field.name}"))])

    def attribute(self) -> int:
        return self.index(len(self._tables.attributes), "attributes")

    def type(self) -> int:
        index = self.index(len(self._tables.types), "types")
        self._bits = bits_of(self._tables, index)
        return index

    def string(self) -> int:
        return self.index(len(self._tables.strings), "strings")

    def pair(self) -> tuple[int, int]:
        return self.attribute(), self.attribute()

    def optional_attribute(self) -> int | None:
        at = self.position
        value = self.varint()
        if not value & 1:
            return None
        self.check_index(value >> 1, len(self._tables.attributes), "attributes", at)
        return value >> 1

    def flagged_attribute(self) -> int | None:
        return self.attribute() if self.varint() else None

    def blob(self) -> memoryview:
        return self.take(self.varint())

    def number(self) -> int | tuple[int, ...]:
        if self._bits <= 8:
            return self.byte()
        if self._bits <= 64:
            return self.svarint()
        return tuple([self.svarint() for _ in range(self.count("words"))])


def bits_of(tables: Tables, index: int) -> int:
    """Return how wide values of a type are; 64 where that is not known."""
    entry = tables.types[index]
    if not entry.custom:
        return 64
    dialect = tables.dialect(entry.dialect)
    reader = _Reader(tables, entry)
    encoding = encodings_of(dialect, "type").get(reader.varint())
    if encoding is None:
        return 64
    if dialect == "builtin" and encoding.name == "integer":
        return reader.varint() >> 2
    return next(each.bits for each in spellings_of(dialect, "type") if each.name == encoding.name) or 64


_READ: Final[dict[str, Callable[[_Reader], Any]]] = {
    "varint": _Reader.varint,
    "enum": _Reader.varint,
    "svarint": _Reader.svarint,
    "f64": _Reader.svarint,
    "byte": _Reader.byte,
    "attribute": _Reader.attribute,
    "attribute?": _Reader.optional_attribute,
    "flagged attribute": _Reader.flagged_attribute,
    "type": _Reader.type,
    "string": _Reader.string,
    "resource": _Reader.varint,
    "pair": _Reader.pair,
    "blob": _Reader.blob,
    "apint": _Reader.number,
    "apfloat": _Reader.number,
}


def encode_entry(tables: Tables, kind: EntryKind, value: Value) -> Chunk:
    """Return the bytes of an attribute or a type."""
    pieces: list[Chunk] = [varint(value.encoding.code)]
    bits = 64
    for field, content in zip(value.encoding.fields, value.fields, strict=True):
        if field.kind == "type" and not field.is_list:
            bits = bits_of(tables, content)
        write = _number(bits) if field.kind in ("apint", "apfloat") else _WRITE[field.kind]
        if field.is_list:
            pieces.append(varint(len(content)))
            pieces += [write(each) for each in content]
        else:
            pieces.append(write(content))
    return b"".join(pieces)


def _number(bits: int) -> Callable[[Any], bytes]:
    if bits <= 8:
        return lambda value: bytes([value])
    if bits <= 64:
        return svarint
    return lambda words: varint(len(words)) + b"".join(map(svarint, words))


def _pair(value: tuple[int, int]) -> bytes:
    return varint(value[0]) + varint(value[1])


def _optional(value: int | None) -> bytes:
    return varint(0) if value is None else flagged(value, True)


def _flagged(value: int | None) -> bytes:
    return varint(0) if value is None else varint(1) + varint(value)


def _blob(value: Chunk) -> bytes:
    return varint(len(value)) + bytes(value)


_WRITE: Final[dict[str, Callable[[Any], bytes]]] = {
    "varint": varint,
    "enum": varint,
    "svarint": svarint,
    "f64": svarint,
    "byte": lambda value: bytes([value]),
    "attribute": varint,
    "attribute?": _optional,
    "flagged attribute": _flagged,
    "type": varint,
    "string": varint,
    "resource": varint,
    "pair": _pair,
    "blob": _blob,
}
