"""Outermost structure of a file: magic, bytecode version, producer, and a sequence of sections.

Source: «Top Level Structure» and «Sections» in ``mlir/docs/BytecodeFormat.md``; section ids and versions in
``mlir/include/mlir/Bytecode/Encoding.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vhlo_tools.bytecode.reader import ByteReader, EntryReader
from vhlo_tools.bytecode.writer import varint
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import MAGIC, Chunk, FileRange, View
from vhlo_tools.records import dataclass

__all__ = [
    "NEWEST_BYTECODE",
    "PROPERTIES_SINCE",
    "SECTION_NAMES",
    "Chunk",
    "Container",
    "Section",
    "decode_container",
    "encode_header",
    "encode_section",
    "read_section",
]

NEWEST_BYTECODE: Final = 6
PROPERTIES_SINCE: Final = 5

SECTION_NAMES: Final = (
    "string",
    "dialect",
    "attr_type",
    "attr_type_offset",
    "ir",
    "resource",
    "resource_offset",
    "dialect_versions",
    "properties",
)
_REQUIRED: Final = frozenset(SECTION_NAMES[:5])
# The sections that hold constants.
_LARGE: Final = ("attr_type", "resource")

_ALIGNED: Final = 0x80
_PADDING: Final = 0xCB
_LONGEST_PRODUCER: Final = 4096


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the file; offset, size and alignment are those of its contents."""

    name: str  # one of SECTION_NAMES
    offset: int
    size: int
    alignment: int = 1  # 1 if none is specified

    @property
    def end(self) -> int:
        """The end of its contents in the file."""
        return self.offset + self.size

    def reader(self, data: View) -> ByteReader:
        """Return a reader of its contents."""
        if isinstance(data, FileRange) and self.name not in _LARGE:
            # Read at once, and not piece by piece.
            contents = data[self.offset : self.end]
            return EntryReader(bytes(contents), self.offset, self.name)
        return ByteReader(data, self.offset, self.end, self.name)


@dataclass(frozen=True, slots=True)
class Container:
    """The top-level structure of a bytecode file; the contents of its sections are not decoded."""

    version: int
    producer: str  # ``StableHLO_v#.#.#`` for a portable artifact
    sections: tuple[Section, ...]
    header_size: int  # bytes before the first section

    def section(self, name: str) -> Section:
        """Return the section called ``name``."""
        for section in self.sections:
            if section.name == name:
                return section
        end = self.sections[-1].end if self.sections else self.header_size
        raise MalformedArtifactError(
            "the section is missing, but another section requires it", offset=end, section=name
        )


def decode_container(data: View) -> Container:
    """Split a file of a version up to 6 into its sections, checking that they fill it exactly."""
    reader = ByteReader(data, section="header")
    if bytes(data[:4]) != MAGIC:
        raise reader.malformed(f"this is not MLIR bytecode: expected the magic {MAGIC!r}, found {bytes(data[:4])!r}")
    reader.take(len(MAGIC))
    version = reader.varint()
    if version > NEWEST_BYTECODE:
        raise reader.malformed(
            f"MLIR bytecode version {version} is newer than {NEWEST_BYTECODE}, the newest supported version", len(MAGIC)
        )
    producer = reader.null_terminated(_LONGEST_PRODUCER)
    header_size = reader.position

    sections: dict[str, Section] = {}
    while reader.remaining:
        at = reader.position
        section = read_section(reader)
        if section.name in sections:
            raise reader.malformed(f"a second {section.name} section", at)
        sections[section.name] = section
    required = _REQUIRED | {"properties"} if version >= PROPERTIES_SINCE else _REQUIRED
    if missing := sorted(required - sections.keys()):
        raise MalformedArtifactError(
            f"the file ends without its {', '.join(missing)} section{'s' * (len(missing) > 1)}; it may be cut short",
            offset=reader.position,
            section=missing[0],
        )
    return Container(version, producer, tuple(sections.values()), header_size)


def read_section(reader: ByteReader) -> Section:
    at = reader.position
    mark = reader.byte()
    identifier = mark & ~_ALIGNED
    if identifier >= len(SECTION_NAMES):
        raise reader.malformed(f"there is no section with id {identifier}", at)
    name = SECTION_NAMES[identifier]
    size = reader.varint()
    alignment = _step_to_alignment(reader, name) if mark & _ALIGNED else 1
    if size > reader.remaining:
        raise MalformedArtifactError(
            f"the section announces {size} bytes, but only {reader.remaining} remain; the file may be cut short",
            offset=at,
            section=name,
        )
    section = Section(name, reader.position, size, alignment)
    reader.take(size)
    return section


def _step_to_alignment(reader: ByteReader, name: str) -> int:
    at = reader.position
    alignment = reader.varint()
    if alignment == 0 or alignment & (alignment - 1):
        raise MalformedArtifactError(f"alignment {alignment} is not a power of two", offset=at, section=name)
    start, gap = reader.position, -reader.position % alignment
    padding = bytes(reader.data[start : start + min(gap, reader.remaining)])
    right = len(padding) - len(padding.lstrip(bytes([_PADDING])))
    if right < len(padding):
        raise MalformedArtifactError(f"padding is not 0x{_PADDING:X}", offset=start + right, section=name)
    reader.take(gap)
    return alignment


def encode_header(version: int, producer: str) -> bytes:
    return b"".join([MAGIC, varint(version), producer.encode(), b"\0"])


def encode_section(name: str, contents: Sequence[Chunk], *, alignment: int = 1, at: int = 0) -> list[Chunk]:
    """Return a section in pieces, without copying. ``at`` is its offset in the file, which matters if it is aligned."""
    identifier = SECTION_NAMES.index(name)
    head = bytes([identifier | (_ALIGNED if alignment > 1 else 0)]) + varint(sum(map(len, contents)))
    if alignment > 1:
        head += varint(alignment)
        head += bytes([_PADDING]) * (-(at + len(head)) % alignment)
    return [head, *contents]
