"""Resource sections: data outside of the program, such as the elements of ``dense_resource`` constants.

Source: «Resource Section» in ``mlir/docs/BytecodeFormat.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum

from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import varint
from vhlo_tools.files import Chunk
from vhlo_tools.records import dataclass

_PADDING = b"\xcb"


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
    value = contents.take(size)
    # A blob that was elided, as printing may do with large ones, is only a name.
    if kind is not ResourceKind.BLOB or not size:
        return Resource(key, kind, value, left_out=not size)
    reader = ByteReader(contents.data, start, start + size, contents.section)
    base = contents.start
    alignment, length = reader.varint(), reader.varint()
    if alignment & (alignment - 1) or (alignment == 0 and length):
        raise reader.malformed(f"alignment {alignment} is not a power of two", start)
    # Relative to the section, which starts aligned in current files, but not in all old ones.
    reader.take(-(reader.position - base) % max(1, alignment))
    if length != reader.remaining:
        raise reader.malformed(f"a blob of {length} bytes where {reader.remaining} remain")
    return Resource(key, kind, reader.take(length), alignment)


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
                head += _PADDING * (-(size + len(head)) % max(1, resource.alignment))
                pieces = [head, resource.data]
                alignment = max(alignment, resource.alignment)
            length = sum(map(len, pieces))
            keys += [varint(resource.key), varint(length), bytes([resource.kind])]
            values += pieces
            size += length
    return b"".join(keys), values, alignment
