"""Inline the values of ``dense_resource`` attributes, because artifacts cannot contain resources.

No MLIR binding exposes the contents of a resource; in a bytecode file they are in a section of their own.
"""

from __future__ import annotations

import math
import re
from typing import Final

from vhlo_tools.bytecode.codec import Value
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.bytecode.file import File
from vhlo_tools.bytecode.printing import Printer
from vhlo_tools.bytecode.resources import Resource, ResourceKind
from vhlo_tools.bytecode.writer import varint
from vhlo_tools.dialect import encodings_of
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk

_BITS: Final = re.compile(r"\d+")
# An index is an integer of 64 bits.
_INDEX_BITS: Final = 64
# The digits for a byte that is zero, or is not.
_DIGITS: Final = b"0" + b"1" * 255


def inline_resources(file: File) -> None:
    """Convert every ``dense_resource`` attribute to ``dense``, without copying except booleans: eight to a byte.

    Elided resources remain, as do those of vectors, which no artifact contains.
    """
    handles = [resource for group in file.resources if not group.external for resource in group.resources]
    encoding = next(each for each in encodings_of("builtin", "attribute").values() if each.name == "dense")
    printer = Printer(file)
    kept = False
    for index, entry in enumerate(file.attributes):
        value = file.decode("attribute", index)
        if value is None or value.name != "dense_resource":
            continue
        if value.field("key") >= len(handles):
            raise entry.malformed(f"the file refers to resource {value.field('key')}, but has {len(handles)} resources")
        resource = handles[value.field("key")]
        name, kind = file.string(resource.key), file.decode("type", value.field("type"))
        if resource.left_out or resource.kind is not ResourceKind.BLOB or kind is None or kind.name != "tensor":
            kept = True
            continue
        data = _elements(printer, entry, value.field("type"), name, resource)
        empty = file.encode("attribute", Value("builtin", encoding, (value.field("type"), b"")))
        # The size is the last number of an empty attribute.
        head = bytes(empty.data)[:-1] + varint(len(data))
        file.attributes[index] = Entry(entry.dialect, True, head, rest=data)
    others = any(not group.external and file.dialect(group.owner) != "builtin" for group in file.resources)
    if not kept and not others:
        # Nothing refers to the resources any more, and the reader would copy them.
        file.resources[:] = [group for group in file.resources if group.external]


def release_alignment(file: File) -> None:
    """MLIR rejects a file with aligned resources that is not at an aligned address."""
    file.resources[:] = [
        group.with_resources([resource.unaligned() for resource in group.resources]) for group in file.resources
    ]


def _elements(printer: Printer, entry: Entry, index: int, name: str, resource: Resource) -> Chunk:
    text, shape, element = printer.builtin_tensor(index)
    match = _BITS.search(element)
    if not element or (match is None and element != "index") or any(size < 0 for size in shape):
        raise entry.malformed(f"the resource {name} has the type {text[:100]}, which cannot have values")
    bits = int(match[0]) if match else _INDEX_BITS
    size = (bits + 7) // 8 * (2 if element.startswith("complex") else 1)
    number = math.prod(shape)
    if len(resource.data) == number * size:
        return _packed(bytes(resource.data)) if element == "i1" else resource.data
    if element == "i1" and len(resource.data) == (number + 7) // 8:
        return resource.data
    raise _misfit(entry, name, text, number * size, len(resource.data))


def _misfit(entry: Entry, name: str, text: str, expected: int, found: int) -> MalformedArtifactError:
    return entry.malformed(f"the resource {name} contains {found} bytes, but {text[:100]} requires {expected}")


def _packed(data: bytes) -> bytes:
    """Pack booleans of one byte each eight to a byte, lowest bit first."""
    if not data:
        return b""
    return int(data[::-1].translate(_DIGITS), 2).to_bytes((len(data) + 7) // 8, "little")
