"""A bytecode file: opened lazily, taken apart where it is looked at, and put together again.

:func:`decode` reads the container; each part is decoded when it is first asked for. :func:`encode` builds the file from
the parts: those that were never asked for are passed on as they are, so that a large constant is never copied.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from vhlo_tools.bytecode.codec import Value, decode_entry, encode_entry
from vhlo_tools.bytecode.container import (
    PROPERTIES_SINCE,
    Chunk,
    Container,
    Section,
    decode_container,
    encode_header,
    encode_section,
)
from vhlo_tools.bytecode.dialects import Dialects, decode_dialects, encode_dialects
from vhlo_tools.bytecode.entries import Entry, decode_entries, encode_entries, scan_entries
from vhlo_tools.bytecode.ir import Block, Tables, decode_ir, encode_ir
from vhlo_tools.bytecode.properties import Properties, decode_properties, encode_properties
from vhlo_tools.bytecode.resources import ResourceGroup, decode_resources, encode_resources
from vhlo_tools.bytecode.strings import decode_strings, encode_strings
from vhlo_tools.dialect import EntryKind
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["File", "decode", "encode", "encode_chunks"]


class File:
    """A bytecode file.

    Its parts are plain data and may be edited in place; what refers to what goes by index into the parts, and entries
    that nothing refers to may stay.

    Args:
        data: The bytes; they are not copied, and must not be changed.
        container: Its outermost structure.

    Attributes:
        version: The version of the bytecode format.
        producer: Who wrote it.
        order: The names of its sections, in the order of the file.
        has_properties: Whether the inherent attributes of ops stand in properties, as they do since version 5 of the
            format, and not in their dictionaries. Whoever moves them sets it.
    """

    def __init__(self, data: memoryview, container: Container) -> None:
        self._data = data
        self._container = container
        self.version = container.version
        self.producer = container.producer
        self.order = [section.name for section in container.sections]
        self.has_properties = container.version >= PROPERTIES_SINCE

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections as they stand in the bytes it was decoded from."""
        return self._container.sections

    @cached_property
    def strings(self) -> list[bytes]:
        """Every string of the file, in the order of their indices."""
        return decode_strings(self._container.section("string").reader(self._data))

    @cached_property
    def dialects(self) -> Dialects:
        """The dialects and the names of their ops."""
        reader = self._container.section("dialect").reader(self._data)
        return decode_dialects(reader, self._container.version, len(self.strings))

    @cached_property
    def _entries(self) -> tuple[list[Entry], list[Entry]]:
        offsets, contents = (
            self._container.section(name).reader(self._data) for name in ("attr_type_offset", "attr_type")
        )
        with _without_collection():
            return decode_entries(offsets, contents, len(self.dialects.names))

    def scan(self, skipped: Sequence[frozenset[int]]) -> Iterator[tuple[bool, Entry]]:
        """Yield entries, and whether they are types, as :func:`vhlo_tools.bytecode.entries.scan_entries` does."""
        dialects = len(self.dialects.names)
        if "_entries" not in self.__dict__:
            offsets, contents = (
                self._container.section(name).reader(self._data) for name in ("attr_type_offset", "attr_type")
            )
            yield from scan_entries(offsets, contents, skipped)
            return
        for is_type, table in ((False, self.attributes), (True, self.types)):
            for entry in table:
                skip = skipped[entry.dialect + dialects * is_type]
                if not (entry.custom and len(entry.data) and entry.data[0] in skip):
                    yield is_type, entry

    @property
    def attributes(self) -> list[Entry]:
        """The attributes, locations included, in the order of their indices; not decoded."""
        return self._entries[0]

    @property
    def types(self) -> list[Entry]:
        """The types, in the order of their indices; not decoded."""
        return self._entries[1]

    @cached_property
    def ir(self) -> Block:
        """The program: a block that holds the module."""
        tables = Tables(
            op_names=len(self.dialects.ops),
            attributes=len(self.attributes),
            types=len(self.types),
            properties=len(self.properties),
        )
        reader = self._container.section("ir").reader(self._data)
        with _without_collection():
            return decode_ir(reader, self._container.version, tables)

    @cached_property
    def properties(self) -> list[Properties]:
        """The inherent attributes of ops, not decoded; none before version 5 of the format."""
        if "properties" not in self.order:
            return []
        return decode_properties(self._container.section("properties").reader(self._data))

    @cached_property
    def resources(self) -> list[ResourceGroup]:
        """What stands beside the program, by owner."""
        if "resource_offset" not in self.order:
            return []
        offsets, contents = (
            self._container.section(name).reader(self._data) for name in ("resource_offset", "resource")
        )
        return decode_resources(offsets, contents, len(self.strings), len(self.dialects.names))

    def load(self) -> None:
        """Decode every part."""
        for part in _PARTS:
            getattr(self, part)

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
        return f"{self.dialect(op.dialect)}.{self.string(op.name)}"

    def decode(self, kind: EntryKind, index: int) -> Value | None:
        """Return an attribute or a type taken apart; ``None`` if nothing is known of its encoding.

        Raises:
            MalformedArtifactError: If its bytes are not what its encoding says.
        """
        entry = (self.attributes if kind == "attribute" else self.types)[index]
        return decode_entry(self, kind, entry)

    def encode(self, kind: EntryKind, value: Value) -> Entry:
        """Return the entry for ``value``, of a dialect of this file.

        Raises:
            MalformedArtifactError: If the file does not have the dialect.
        """
        if value.dialect not in self._dialect_names:
            raise MalformedArtifactError(
                f"the file does not have the dialect {value.dialect}, which is needed to write {value.name}",
                offset=self._container.section("dialect").offset,
                section="dialect",
            )
        return Entry(self._dialect_names.index(value.dialect), True, encode_entry(self, kind, value))

    def prepare(self) -> None:
        """See that the parts can be written together, decoding all of them for another version of the format.

        Raises:
            ValueError: If they cannot.
        """
        was = self._container.version
        if self.version != was:
            if (self.version >= PROPERTIES_SINCE) != self.has_properties:
                raise ValueError(
                    f"a file of bytecode version {was} cannot become one of version {self.version} by its number: "
                    "inherent attributes stand in properties on one side only"
                )
            self.load()
            if self.has_properties and "properties" not in self.order:
                self.order.append("properties")
        for part, section in (("properties", "properties"), ("resources", "resource")):
            if self.__dict__.get(part) and section not in self.order:
                raise ValueError(f"{part} were added to a file that has no {section} section")

    def contents(self, name: str) -> tuple[list[Chunk], int]:
        """Return what the section ``name`` holds now, in pieces, and its alignment."""
        if name == "properties" and self._container.version < PROPERTIES_SINCE:
            return [encode_properties(self.properties)], 1
        section = self._container.section(name)
        # A section of its own with the version of a dialect means nothing, but is no damage: it is passed on.
        part, build = _SECTIONS.get(name, (None, None))
        if build is not None and part in self.__dict__:
            pieces, alignment = build(self)
            # Old producers aligned blobs within a section that is not aligned itself; that holds where it stood.
            moved = (self.version, self.producer) != (self._container.version, self._container.producer)
            released = name == "resource" and alignment < section.alignment
            return pieces, alignment if moved or released else section.alignment
        return [self._data[section.offset : section.end]], section.alignment


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the garbage collector from running.

    While very many objects are made it runs again and again, takes a quarter of the time, and finds nothing: what is
    decoded has no cycles.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_PARTS: Final = ("strings", "dialects", "_entries", "properties", "ir", "resources")


def _plain(build: Callable[[File], Chunk]) -> Callable[[File], tuple[list[Chunk], int]]:
    return lambda file: ([build(file)], 1)


# Each section: the part of a file that it is made from, and how.
_SECTIONS: Final[dict[str, tuple[str, Callable[[File], tuple[list[Chunk], int]]]]] = {
    "string": ("strings", _plain(lambda file: encode_strings(file.strings))),
    "dialect": ("dialects", _plain(lambda file: encode_dialects(file.dialects, file.version))),
    "attr_type_offset": ("_entries", _plain(lambda file: encode_entries(file.attributes, file.types)[0])),
    "attr_type": ("_entries", lambda file: (encode_entries(file.attributes, file.types)[1], 1)),
    "ir": ("ir", _plain(lambda file: encode_ir(file.ir, file.version))),
    "properties": ("properties", _plain(lambda file: encode_properties(file.properties))),
    "resource_offset": ("resources", _plain(lambda file: encode_resources(file.resources)[0])),
    "resource": ("resources", lambda file: encode_resources(file.resources)[1:]),
}


def decode(data: Chunk | bytearray) -> File:
    """Open a bytecode file, of version 0 to 6.

    Args:
        data: Its bytes, which are not copied.

    Raises:
        MalformedArtifactError: If it is no MLIR bytecode, of a newer version, or its sections are damaged. What is
            within a section is checked when it is asked for.
    """
    view = memoryview(data)
    return File(view, decode_container(view))


def encode_chunks(file: File) -> list[Chunk]:
    """Return a file as bytes in pieces; what was not edited is a view into the file it came from.

    Raises:
        ValueError: If the edits do not make a file: a number that is none, resources or properties where there is no
            section for them, or a version of the format that cannot have the parts.
    """
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
    """Return a file as bytes; of a file that was decoded and not edited, those it was decoded from.

    That holds for what MLIR and we ourselves write. A hand-made file that spells numbers longer than they need be,
    marks empty lists as present, or pads resources with other bytes is read, and comes back in the usual spelling.

    Raises:
        ValueError: As :func:`encode_chunks`.
    """
    return b"".join(encode_chunks(file))
