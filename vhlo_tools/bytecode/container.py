"""Structure of a file: header, sections, the dialects with the names of their ops, and resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from enum import IntEnum
from itertools import groupby
from typing import Final

from vhlo_tools.bytecode.primitives import ByteReader, EntryReader, flagged, varint
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import MAGIC, Chunk, FileRange, View, join
from vhlo_tools.records import dataclass

# Outermost structure of a file: magic, bytecode version, producer, and a sequence of sections
#
# Source: «Top Level Structure» and «Sections» in ``mlir/docs/BytecodeFormat.md``; section ids and versions in
# ``mlir/include/mlir/Bytecode/Encoding.h``.

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


# Dialect section: the dialects of the file, and the names of the ops of each that the file uses
#
# Source: «Dialect Section» in ``mlir/docs/BytecodeFormat.md``; ``BytecodeReader.cpp`` for dependencies on the version
# of the format: dialect versions since 1, a leading number of op names since 4, registration bits since 5.

_DIALECT_VERSIONS_SINCE: Final = 1
_OP_COUNT_SINCE: Final = 4
_REGISTRATION_SINCE: Final = 5

#: The limits on dialects and on names of ops, and on the bytes of a name: there are some dozens of dialects, and some
#: hundreds of ops, and one long string could be the name of all.
MOST_DIALECTS: Final = 1 << 8
MOST_OP_NAMES: Final = 1 << 14
LONGEST_NAME: Final = 1 << 10


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
    for _ in range(reader.count("dialects", MOST_DIALECTS)):
        if version < _DIALECT_VERSIONS_SINCE:
            result.names.append(DialectName(reader.index(strings, "strings")))
            continue
        name, versioned = reader.flagged_index(strings, "strings")
        result.names.append(DialectName(name, _dialect_version(reader) if versioned else None))
    if version >= _OP_COUNT_SINCE:
        announced = reader.count("op names", MOST_OP_NAMES)
    while reader.remaining:
        dialect = reader.index(len(result.names), "dialects")
        for _ in range(reader.count("op names", MOST_OP_NAMES - len(result.ops))):
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


# Resource sections: data outside of the program, such as the elements of ``dense_resource`` constants
#
# Source: «Resource Section» in ``mlir/docs/BytecodeFormat.md``.

_RESOURCE_PADDING = b"\xcb"

#: A view takes 184 bytes, more than a copy of most entries.
COPIED: Final = 256


class ResourceKind(IntEnum):
    """The kind of a resource."""

    BLOB = 0
    BOOL = 1
    STRING = 2


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource."""

    key: int  # index of its name in the string table
    kind: ResourceKind
    data: Chunk  # bytes of a blob, as a view; otherwise the encoded value
    alignment: int = 1  # in the file, of a blob; 0 for some that are empty
    left_out: bool = False  # only a name, without a value in the file

    def unaligned(self) -> Resource:
        """Return the resource without an alignment."""
        return replace(self, alignment=1)


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """The resources of one owner."""

    owner: int  # index of the dialect, or if external of a name in the string table
    external: bool  # whether the owner is not a dialect
    resources: tuple[Resource, ...]

    def with_resources(self, resources: Iterable[Resource]) -> ResourceGroup:
        """Return the group with other resources."""
        return replace(self, resources=tuple(resources))


def decode_resources(offsets: ByteReader, contents: ByteReader, strings: int, dialects: int) -> list[ResourceGroup]:
    groups: list[ResourceGroup] = []
    external = offsets.count("resource groups")
    while offsets.remaining:
        is_external = len(groups) < external
        owner = offsets.index(strings, "strings") if is_external else offsets.index(dialects, "dialects")
        resources = tuple(_decode(offsets, contents, strings) for _ in range(offsets.count("resources")))
        groups.append(ResourceGroup(owner, is_external, resources))
    if len(groups) < external:
        raise offsets.malformed(f"{external} resource groups were announced, but the section has {len(groups)}")
    if contents.remaining:
        raise contents.malformed(f"{contents.remaining} bytes follow the last resource")
    return groups


def _decode(offsets: ByteReader, contents: ByteReader, strings: int) -> Resource:
    key = offsets.index(strings, "strings")
    size = offsets.varint()
    at = offsets.position
    number = offsets.byte()
    if number not in list(ResourceKind):
        raise offsets.malformed(f"unknown kind {number} of resource", at)
    kind = ResourceKind(number)
    start = contents.position
    value: Chunk = contents.take(size)
    # A blob that was elided, as printing may do with large ones, is only a name.
    if kind is not ResourceKind.BLOB or not size:
        # A view takes more than a copy of most values.
        return Resource(key, kind, value if size > COPIED else bytes(value), left_out=not size)
    reader = ByteReader(contents.data, start, start + size, contents.section)
    base = contents.start
    alignment, length = reader.varint(), reader.varint()
    if alignment & (alignment - 1) or (alignment == 0 and length):
        raise reader.malformed(f"alignment {alignment} is not a power of two", start)
    # Relative to the section, which starts aligned in current files, but not in all old ones.
    reader.take(-(reader.position - base) % max(1, alignment))
    if length != reader.remaining:
        raise reader.malformed(f"a blob of {length} bytes where {reader.remaining} remain")
    data = reader.take(length)
    return Resource(key, kind, data if length > COPIED else bytes(data), alignment)


def encode_resources(groups: Sequence[ResourceGroup]) -> tuple[bytes, list[Chunk], int]:
    """Encode the two sections, keys and values; the last result is the alignment of the second."""
    keys = [varint(sum(group.external for group in groups))]
    values: list[Chunk] = []
    size, alignment = 0, 1
    for group in groups:
        keys += [varint(group.owner), varint(len(group.resources))]
        for resource in group.resources:
            pieces: list[Chunk] = [resource.data]
            if resource.kind is ResourceKind.BLOB and not resource.left_out:
                head = varint(resource.alignment) + varint(len(resource.data))
                # The section starts aligned, so that the offset within it determines the padding.
                head += _RESOURCE_PADDING * (-(size + len(head)) % max(1, resource.alignment))
                pieces = [head, resource.data]
                alignment = max(alignment, resource.alignment)
            length = sum(map(len, pieces))
            keys += [varint(resource.key), varint(length), bytes([resource.kind])]
            values += pieces
            size += length
    return b"".join(keys), values, alignment
