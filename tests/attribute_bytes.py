"""The attributes and properties of a bytecode file, as far as tests of the specification need them."""

from __future__ import annotations

from vhlo_tools.bytecode import decode_container, decode_strings
from vhlo_tools.bytecode.reader import ByteReader

#: The properties of a module: neither of its optional attributes is there.
OF_MODULE = [0, 0]


def attribute_entries(data: bytes) -> list[bytes]:
    """Return the bytes of every attribute, in the order of their indices."""
    view = memoryview(data)
    container = decode_container(view)
    offsets = container.section("attr_type_offset").reader(view)
    attributes, types = offsets.varint(), offsets.varint()
    sizes: list[int] = []
    while len(sizes) < attributes + types:
        offsets.varint()  # the dialect
        sizes += [offsets.varint() >> 1 for _ in range(offsets.varint())]
    contents = container.section("attr_type").reader(view)
    return [bytes(contents.take(size)) for size in sizes[:attributes]]


def property_entries(data: bytes) -> list[list[int]]:
    """Return the numbers in every entry of the properties section."""
    view = memoryview(data)
    reader = decode_container(view).section("properties").reader(view)
    entries = [reader.take(reader.varint()) for _ in range(reader.varint())]
    return [_numbers(entry) for entry in entries]


def string_values(data: bytes) -> list[bytes | None]:
    """Return the value of every attribute that consists of a code and a string, `None` for any other."""
    view = memoryview(data)
    strings = decode_strings(view, decode_container(view))
    values: list[bytes | None] = []
    for entry in attribute_entries(data):
        numbers = _numbers(memoryview(entry))
        values.append(strings[numbers[1]] if len(numbers) == 2 and numbers[1] < len(strings) else None)
    return values


def _numbers(view: memoryview) -> list[int]:
    reader = ByteReader(view)
    numbers = []
    while reader.remaining:
        numbers.append(reader.varint())
    return numbers
