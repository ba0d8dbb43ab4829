"""A bytecode file: opened lazily, decoded part by part on demand, and encoded again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

from vhlo_tools.bytecode.codec import Value, decode_entry, encode_entry
from vhlo_tools.bytecode.container import (
    LONGEST_NAME,
    PROPERTIES_SINCE,
    Container,
    Dialects,
    ResourceGroup,
    Section,
    decode_container,
    decode_dialects,
    decode_resources,
    encode_dialects,
    encode_header,
    encode_resources,
    encode_section,
)
from vhlo_tools.bytecode.entries import (
    Entry,
    EntryTable,
    Properties,
    decode_entries,
    decode_properties,
    decode_strings,
    encode_entries,
    encode_properties,
    encode_sizes,
    encode_strings,
)
from vhlo_tools.bytecode.ir import TableSizes, decode_ir, encode_ir
from vhlo_tools.bytecode.program import Block
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk, View, join, view
from vhlo_tools.spec import EntryKind, encodings_of

# Detect whether the bytecode modules are compiled (``docs/developing.md``)


def is_compiled() -> bool:
    found = find_spec("vhlo_tools.bytecode.ir")
    return found is not None and (found.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


# A bytecode file: opened lazily, decoded part by part on demand, and encoded again
#
# :func:`decode` reads the container; each part is decoded on first access. :func:`encode` builds the file from the
# parts; parts that were never accessed are passed on unchanged, so that a large constant is never copied.

# The equivalent attributes of the builtin dialect and of VHLO.
_STRINGS: Final = ("string", "string_v1")
_ARRAYS: Final = ("array", "array_v1")
_DICTIONARIES: Final = ("dictionary", "dict_v1")

#: Decoded entries are kept, if they have no more bytes than this, as long as there are no more than so many.
_KEPT: Final = 256
_MOST_KEPT: Final = 4096

_CODES: Final = frozenset(range(256))


@lru_cache(maxsize=256)
def _codes_but(kind: EntryKind, names: tuple[str, ...], dialect: str) -> frozenset[int]:
    # 0 stands for codes that take several bytes too.
    return _CODES - {0, *(code << 1 | 1 for code, each in encodings_of(dialect, kind).items() if each.name in names)}


class File:
    """A bytecode file, whose parts are plain data to be edited in place; they refer to each other by index."""

    def __init__(self, data: View, container: Container) -> None:
        self._data = data
        self._container = container
        self.version: int = container.version
        self.producer: str = container.producer
        #: names of sections, in the order of the file
        self.order: list[str] = [section.name for section in container.sections]
        #: Inherent attributes are in properties, not in dictionaries. Code that moves them must set it.
        self.has_properties: bool = container.version >= PROPERTIES_SINCE
        #: What ops found in properties, by the names of their attributes and the number of the properties.
        self.decoded_properties: dict[tuple[tuple[str, ...], int], tuple[Properties, Mapping[str, int]]] = {}
        # The parts to encode anew, even if nothing tells that they were edited.
        self._rewritten: set[str] = set()
        # By the revision of the attributes at which they were read.
        self._names: dict[int, tuple[int, bytes | None]] = {}
        self._dictionaries: dict[tuple[int, str], tuple[int, Mapping[str, int] | None]] = {}
        self._decoded: dict[tuple[EntryKind, int, int], Value | None] = {}
        self._texts: dict[bytes, str] = {}

    def copy(self) -> File:
        """Return the file as decoded, to be edited; nothing is decoded again."""
        copied = File(self._data, self._container)
        if "_entries" in self.__dict__ and not self._is_rewritten("_entries"):
            copied._entries = self.attributes.copy(), self.types.copy()
        if "_program" in self.__dict__ and not self._is_rewritten("_program"):
            copied._program = self._program.copy({})
        return copied

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the bytes from which the file was decoded."""
        return self._container.sections

    @cached_property
    def strings(self) -> list[bytes]:
        """Every string of the file, in the order of their indices."""
        return decode_strings(self._container.section("string").reader(self._data))

    @cached_property
    def dialects(self) -> Dialects:
        """The dialects and the names of their ops."""
        section = self._container.section("dialect")
        found = decode_dialects(section.reader(self._data), self._container.version, len(self.strings))
        names = [*(each.name for each in found.names), *(each.name for each in found.ops)]
        longest = max([len(self.strings[each]) for each in names], default=0)
        if longest > LONGEST_NAME:
            raise MalformedArtifactError(
                f"the name of a dialect or an op has {longest} bytes; the limit is {LONGEST_NAME}",
                offset=section.offset,
                section="dialect",
            )
        return found

    @cached_property
    def _entries(self) -> tuple[EntryTable, EntryTable]:
        offsets, contents = (
            self._container.section(name).reader(self._data) for name in ("attr_type_offset", "attr_type")
        )
        return decode_entries(offsets, contents, len(self.dialects.names))

    @property
    def attributes(self) -> EntryTable:
        """The attributes, locations included, in the order of their indices; not decoded."""
        return self._entries[0]

    @property
    def types(self) -> EntryTable:
        """The types, in the order of their indices; not decoded."""
        return self._entries[1]

    @property
    def ir(self) -> Block:
        """The program, to be edited: a block that contains the module."""
        self._rewritten.add("_program")
        return self._program

    @property
    def program(self) -> Block:
        """The program; not to be edited, unless :attr:`ir` is used too."""
        return self._program

    @cached_property
    def _program(self) -> Block:
        with without_collection():
            return self._decoded_ir(bodies=True)

    @property
    def outline(self) -> Block:
        """The program without the bodies of its functions, unless they have been decoded; not to be edited."""
        decoded: Block | None = self.__dict__.get("_program")
        return self._outline if decoded is None else decoded

    @cached_property
    def _outline(self) -> Block:
        return self._decoded_ir(bodies=False)

    def _decoded_ir(self, *, bodies: bool) -> Block:
        tables = TableSizes(
            op_names=len(self.dialects.ops),
            attributes=len(self.attributes),
            types=len(self.types),
            properties=len(self.properties),
        )
        reader = self._container.section("ir").reader(self._data)
        return decode_ir(reader, self._container.version, tables, bodies=bodies)

    @cached_property
    def properties(self) -> list[Properties]:
        """The inherent attributes of ops, not decoded; empty before version 5 of the format."""
        if "properties" not in self.order:
            return []
        return decode_properties(self._container.section("properties").reader(self._data))

    @cached_property
    def resources(self) -> list[ResourceGroup]:
        """The resources, which are stored outside of the program, by owner."""
        if "resource_offset" not in self.order:
            return []
        offsets, contents = (
            self._container.section(name).reader(self._data) for name in ("resource_offset", "resource")
        )
        return decode_resources(offsets, contents, len(self.strings), len(self.dialects.names))

    def load(self) -> None:
        """Decode every part, so that every part is encoded anew."""
        for part in _PARTS:
            getattr(self, part)
        self._rewritten |= {*_PARTS}

    def string(self, index: int) -> str:
        """Return a string as text."""
        return self.strings[index].decode("utf-8", "backslashreplace")

    def dialect(self, index: int) -> str:
        """Return the name of a dialect."""
        return self._dialect_names[index]

    @cached_property
    def _dialect_names(self) -> list[str]:
        return [self.string(dialect.name) for dialect in self.dialects.names]

    def op_name(self, index: int) -> str:
        """Return the name of an op, with its dialect."""
        op = self.dialects.ops[index]
        return f"{self._dialect_names[op.dialect]}.{self.string(op.name)}"

    def decode(self, kind: EntryKind, index: int) -> Value | None:
        """Return a decoded attribute or type; ``None`` if its encoding is unknown."""
        table = table_of(self, kind)
        key = (kind, index, table.revision)
        if key in self._decoded:
            return self._decoded[key]
        entry = table[index]
        value = decode_entry(self, kind, entry)
        if len(entry.data) <= _KEPT:
            if len(self._decoded) >= _MOST_KEPT:
                self._decoded.clear()
            self._decoded[key] = value
        return value

    def called(self, kind: EntryKind, dialect: str, *names: str) -> Iterator[int]:
        """Yield the indices of the attributes or types of a dialect with one of ``names``; others are not decoded."""
        skipped = [_codes_but(kind, names, dialect) if name == dialect else _CODES for name in self._dialect_names]
        for index in table_of(self, kind).others(skipped):
            value = self.decode(kind, index)
            if value is not None and value.name in names:
                yield index

    def raw_text(self, index: int | None) -> bytes | None:
        """Return the bytes of a string attribute, builtin or of VHLO; ``None`` for another attribute or none."""
        value = self.decode("attribute", index) if index is not None else None
        return self.strings[value.field("value")] if value is not None and value.name in _STRINGS else None

    def text(self, index: int | None) -> str | None:
        """Return a string attribute as text, with escapes for bytes that are not UTF-8; else like :meth:`raw_text`."""
        found = self.raw_text(index)
        if found is None:
            return None
        text = self._texts.get(found) or found.decode("utf-8", "backslashreplace")
        # All functions may have one name, as long as the rest of the file.
        if len(found) > _KEPT:
            self._texts[found] = text
        return text

    def elements(self, index: int | None) -> tuple[int, ...] | None:
        """Return the attributes in an array attribute; ``None`` for another attribute or none.

        Raises:
            MalformedArtifactError: If its bytes do not match its encoding.
        """
        value = self.decode("attribute", index) if index is not None else None
        found: tuple[int, ...] | None = value.field("elements") if value and value.name in _ARRAYS else None
        return found

    def dictionary(self, index: int | None, *, errors: str = "backslashreplace") -> Mapping[str, int] | None:
        """Return a dictionary attribute by name; ``None`` for another attribute or none.

        ``errors`` is as for ``bytes.decode``; names that are to be written again need ``surrogateescape``.
        """
        if index is None:
            return None
        revision = self.attributes.revision
        known, found = self._dictionaries.get((index, errors), (-1, None))
        if known != revision:
            value = self.decode("attribute", index)
            is_dictionary = value is not None and value.name in _DICTIONARIES
            elements = value.field("elements") if value is not None and is_dictionary else ()
            found = {self._name(key).decode("utf-8", errors): held for key, held in elements} if is_dictionary else None
            # Kept, because many ops may refer to one large dictionary.
            self._dictionaries[index, errors] = revision, found
        return found

    def _name(self, index: int) -> bytes:
        revision = self.attributes.revision
        known, found = self._names.get(index, (-1, None))
        if known != revision:
            found = self.raw_text(index)
            # Kept, because the dictionaries of many arguments have the same names.
            self._names[index] = revision, found
        if found is None:
            raise self.attributes[index].malformed(f"attribute {index} is used as a name, but is not a string")
        return found

    def encode(self, kind: EntryKind, value: Value) -> Entry:
        """Encode ``value``, of a dialect of this file, as an entry."""
        if value.dialect not in self._dialect_names:
            raise MalformedArtifactError(
                f"the file does not declare the dialect {value.dialect}, which is required to write {value.name}",
                offset=self._container.section("dialect").offset,
                section="dialect",
            )
        return Entry(self._dialect_names.index(value.dialect), True, encode_entry(self, kind, value))

    def prepare(self) -> None:
        """Check that the parts can be written together, decoding all of them for another version of the format.

        Raises:
            ValueError: If they cannot.
        """
        was = self._container.version
        if self.version != was:
            if (self.version >= PROPERTIES_SINCE) != self.has_properties:
                raise ValueError(
                    f"a file of bytecode version {was} cannot be changed to version {self.version} by its version "
                    f"number alone: only one of them stores inherent attributes as properties"
                )
            self.load()
            if self.has_properties and "properties" not in self.order:
                self.order.append("properties")
        for part, section in (("properties", "properties"), ("resources", "resource")):
            if self.__dict__.get(part) and section not in self.order:
                raise ValueError(f"{part} were added to a file that has no {section} section")

    def contents(self, name: str) -> tuple[list[Chunk], int]:
        """Return the present contents of a section, in pieces, and its alignment."""
        if name == "properties" and self._container.version < PROPERTIES_SINCE:
            return [encode_properties(self.properties)], 1
        section = self._container.section(name)
        # A top-level section with a dialect version has no meaning, but is no damage either: it is passed on.
        part, build = _SECTIONS.get(name, (None, None))
        if build is not None and self._is_rewritten(part):
            pieces, alignment = build(self)
            # Old producers aligned blobs within an unaligned section; the alignment is valid at the original offset
            # only.
            moved = (self.version, self.producer) != (self._container.version, self._container.producer)
            released = name == "resource" and alignment < section.alignment
            return pieces, alignment if moved or released else section.alignment
        return [self._data[section.offset : section.end]], section.alignment

    def _is_rewritten(self, part: str | None) -> bool:
        if part in self._rewritten or part not in self.__dict__:
            return part in self._rewritten
        return part != "_program" and (part != "_entries" or self.attributes.is_edited or self.types.is_edited)


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable the garbage collector: it takes up to half of the time, and decoded parts have no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_PARTS: Final = ("strings", "dialects", "_entries", "properties", "_program", "resources")


def _plain(build: Callable[[File], Chunk]) -> Callable[[File], tuple[list[Chunk], int]]:
    return lambda file: ([build(file)], 1)


# Each section: the part of a file from which it is encoded, and the encoder.
_SECTIONS: Final[dict[str, tuple[str, Callable[[File], tuple[list[Chunk], int]]]]] = {
    "string": ("strings", _plain(lambda file: encode_strings(file.strings))),
    "dialect": ("dialects", _plain(lambda file: encode_dialects(file.dialects, file.version))),
    "attr_type_offset": ("_entries", _plain(lambda file: encode_sizes(file.attributes, file.types))),
    "attr_type": ("_entries", lambda file: (encode_entries(file.attributes, file.types), 1)),
    "ir": ("_program", _plain(lambda file: encode_ir(file.program, file.version))),
    "properties": ("properties", _plain(lambda file: encode_properties(file.properties))),
    "resource_offset": ("resources", _plain(lambda file: encode_resources(file.resources)[0])),
    "resource": ("resources", lambda file: encode_resources(file.resources)[1:]),
}


def table_of(file: File, kind: EntryKind) -> EntryTable:
    """Return the attributes, or the types."""
    return file.attributes if kind == "attribute" else file.types


def decode(data: Chunk | bytearray, name: str | None = None) -> File:
    """Open a file of version 0 to 6, without copying; the contents of a section are checked on access."""
    whole = view(data)
    try:
        return File(whole, decode_container(whole))
    except MalformedArtifactError as error:
        if name is not None:
            # With several inputs, the message must name the one at fault.
            error.args = (f"{name}: {error}",)
        raise


def encode_chunks(file: File) -> list[Chunk]:
    """Encode a file in pieces; unedited pieces are views into the original. Invalid edits raise ``ValueError``."""
    file.prepare()
    chunks: list[Chunk] = [encode_header(file.version, file.producer)]
    size = len(chunks[0])
    for name in file.order:
        if name == "properties" and file.version < PROPERTIES_SINCE:
            continue
        contents, alignment = file.contents(name)
        section = encode_section(name, contents, alignment=alignment, at=size)
        size += sum(map(len, section))
        chunks += section
    return chunks


def encode(file: File) -> bytes:
    """Encode a file; without edits the result is the original bytes, for files that MLIR or this package wrote.

    Overlong numbers, empty lists marked as present and other padding of resources are written in the usual form.
    """
    return join(encode_chunks(file))
