"""Decode and encode attributes and types, as specified in ``dialect_specs/``.

Entries without a specification (of another dialect, or with an unknown code) remain bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from vhlo_tools.bytecode.entries import Entry, EntryTable
from vhlo_tools.bytecode.primitives import EntryReader, flagged, svarint, varint
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk, View, join
from vhlo_tools.limits import excess_of_shape
from vhlo_tools.records import dataclass
from vhlo_tools.spec import CodesBeside, DialectBeside, Encoding, EntryKind, Field, encodings_of, spellings_of

_REFERENCES: Final[dict[str, EntryKind]] = {
    "attribute": "attribute",
    "attribute?": "attribute",
    "flagged attribute": "attribute",
    "pair": "attribute",
    "type": "type",
}


#: From here on, unknown codes, and unknown cases of enums, are not told apart.
_MOST_CODES: Final = 1 << 7


class OversizedShapeError(MalformedArtifactError):
    """A shape that is well-formed, and too large for everybody: the library would take minutes."""


class EntryTables(Protocol):
    @property
    def attributes(self) -> EntryTable: ...
    @property
    def types(self) -> EntryTable: ...
    @property
    def strings(self) -> list[bytes]: ...
    def dialect(self, index: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Value:
    """A decoded attribute or type."""

    dialect: str
    encoding: Encoding
    #: in order: indices, numbers, views of bytes, tuples for lists and pairs; over 64 bits, a tuple of words
    fields: tuple[Any, ...]
    offset: int = 0  # in the file; 0 if new

    @property
    def name(self) -> str:
        """Its name as printed, without the dialect."""
        return self.encoding.name

    def field(self, name: str) -> Any:
        """Return the value of a field; if it is missing, the file uses a value of the wrong kind: an error."""
        for field, value in zip(self.encoding.fields, self.fields, strict=True):
            if field.name == name:
                return value
        raise MalformedArtifactError(
            f"expected a value with the field {name}, found {self.dialect}.{self.name}",
            offset=self.offset,
            section="attr_type",
        )


def decode_entry(
    tables: EntryTables, kind: EntryKind, entry: Entry, encodings: Mapping[int, Encoding] | None = None
) -> Value | None:
    """Decode an entry; ``None`` if its encoding is unknown.

    ``encodings`` are by code, by default the specification's.
    """
    if not entry.custom:
        return None
    dialect = tables.dialect(entry.dialect)
    encodings = encodings_of(dialect, kind) if encodings is None else encodings
    if not encodings:
        return None
    reader = _Reader(tables, entry)
    encoding = encodings.get(reader.varint())
    if encoding is None or encoding.opaque:
        return None
    fields = tuple(
        [reader.elements(field) if field.is_list else _READ[field.kind](reader) for field in encoding.fields]
    )
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the {kind} {dialect}.{encoding.name}")
    return Value(dialect, encoding, fields, max(entry.offset, 0))


def entry_name(tables: EntryTables, kind: EntryKind, entry: Entry) -> str:
    """Return a display name: name, or dialect and code, or the dialect if the entry is text."""
    dialect = tables.dialect(entry.dialect)
    if not entry.custom:
        return f"{dialect} (as text)"
    encoding, code = encoding_of_entry(tables, kind, entry), _code(tables, entry)
    if encoding is not None:
        return f"{dialect}.{encoding.name}"
    # A dialect has some dozens; a file could have as many others as entries, and each would be told apart.
    return f"{dialect} {kind} code {code if code < _MOST_CODES else f'{_MOST_CODES} or more'}"


def encoding_of_entry(tables: EntryTables, kind: EntryKind, entry: Entry) -> Encoding | None:
    """Return the encoding of an entry, opaque ones included; ``None`` if it is unknown, or text."""
    return encodings_of(tables.dialect(entry.dialect), kind).get(_code(tables, entry)) if entry.custom else None


def codes_beside(
    tables: EntryTables, kind: EntryKind, entry: Entry, dialect: DialectBeside
) -> tuple[CodesBeside | None, Value | None]:
    """Return the row of an entry of a dialect beside VHLO; ``None`` if nobody knows its code, or its layout.

    With it comes the value, where the row has its fields.
    """
    code = _code(tables, entry)
    for row in dialect.rows.get(kind, ()):
        if code not in row.codes:
            continue
        if row.fields is None:
            return row, None
        with suppress(MalformedArtifactError):
            value = decode_entry(tables, kind, entry, {code: Encoding(dialect.name, code, row.fields)})
            if value is not None:
                return row, value
    return None, None


def _code(tables: EntryTables, entry: Entry) -> int:
    return _Reader(tables, entry).varint() if len(entry.data) else -1


def references(value: Value, kind: Literal["attribute", "type", "string"]) -> set[int]:
    """Return the indices of the attributes, types or strings to which ``value`` refers directly."""
    found: set[int] = set()
    for field, content in zip(value.encoding.fields, value.fields, strict=True):
        if field.kind == "pair" and kind == "attribute":
            found |= {index for pair in content for index in pair}
        elif kind in field.kind and content is not None:
            found |= set(content) if field.is_list else {content}
    return found


def children(value: Value) -> Iterator[tuple[EntryKind, int]]:
    """Yield the attributes and types to which ``value`` refers directly, in the order of its bytes."""
    for field, content in zip(value.encoding.fields, value.fields, strict=True):
        kind = _REFERENCES.get(field.kind)
        if kind is not None:
            for each in content if field.is_list else (content,):
                for index in each if isinstance(each, tuple) else (each,):
                    if index is not None:
                        yield kind, index


class _Reader(EntryReader):
    __slots__ = ("_tables", "_type")

    def __init__(self, tables: EntryTables, entry: Entry) -> None:
        super().__init__(entry.data, entry.offset, "attr_type")
        self._tables = tables
        # The type that the last field named, if any: it decides how numbers are written.
        self._type: int | None = None

    def elements(self, field: Field) -> tuple[Any, ...]:
        at, number = self.position, self.count(f"elements of {field.name}")
        if field.kind == "svarint":
            numbers = tuple([(value >> 1) ^ -(value & 1) for value in self.varints(number)])
            if field.name == "shape" and (excess := excess_of_shape(numbers)) is not None:
                raise OversizedShapeError(f"a type has {excess}", offset=self._base + at, section=self.section)
            return numbers
        if (table := self._table(field.kind)) is not None:
            at, indices = self.position, tuple(self.varints(number))
            self.check_index(max(indices, default=-1), len(table), f"{field.kind}s", at)
            return indices
        read = _READ[field.kind]
        return tuple([read(self) for _ in range(number)])

    def _table(self, kind: str) -> EntryTable | None:
        """Return the table to which values of a kind are indices, and nothing else."""
        match kind:
            case "attribute":
                return self._tables.attributes
            case "type":
                return self._tables.types
        return None

    def attribute(self) -> int:
        return self.index(len(self._tables.attributes), "attributes")

    def type(self) -> int:
        self._type = self.index(len(self._tables.types), "types")
        return self._type

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

    def blob(self) -> View:
        return self.take(self.varint())

    def number(self) -> int | tuple[int, ...]:
        bits = 64 if self._type is None else bits_of(self._tables, self._type)
        if bits <= 8:
            return self.byte()
        if bits <= 64:
            return self.svarint()
        return tuple([self.svarint() for _ in range(self.count("words"))])


def bits_of(tables: EntryTables, index: int) -> int:
    """Return the width in bits of the values of a type; 64 if it is unknown."""
    entry = tables.types[index]
    dialect = tables.dialect(entry.dialect)
    if not entry.custom:
        # Releases up to jaxlib 0.10.1 write the builtin floats of eight bits and less as text.
        text = bytes(entry.data).removesuffix(b"\0").decode(errors="replace")
        known = spellings_of(dialect, "type") if dialect == "builtin" else ()
        return next((each.bits for each in known if each.name == text), None) or 64
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


def encode_entry(tables: EntryTables, kind: EntryKind, value: Value) -> Chunk:
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
    return join(pieces)


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
