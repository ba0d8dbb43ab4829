"""The attributes and properties of a bytecode file, as far as tests of the specification need them."""

from __future__ import annotations

from vhlo_tools.bytecode import decode
from vhlo_tools.bytecode.primitives import ByteReader
from vhlo_tools.files.mapping import View, view

#: The properties of a module: neither of its optional attributes is there.
OF_MODULE = [0, 0]


def attribute_entries(data: bytes) -> list[bytes]:
    """Return the bytes of every attribute, in the order of their indices."""
    return [bytes(entry.data) for entry in decode(data).attributes]


def property_entries(data: bytes) -> list[list[int]]:
    """Return the numbers in every entry of the properties section."""
    return [_numbers(view(entry.data)) for entry in decode(data).properties]


def string_values(data: bytes) -> list[bytes | None]:
    """Return the value of every attribute that consists of a code and a string, `None` for any other."""
    strings = decode(data).strings
    values: list[bytes | None] = []
    for entry in attribute_entries(data):
        numbers = _numbers(view(entry))
        values.append(strings[numbers[1]] if len(numbers) == 2 and numbers[1] < len(strings) else None)
    return values


def _numbers(view: View) -> list[int]:
    reader = ByteReader(view)
    numbers = []
    while reader.remaining:
        numbers.append(reader.varint())
    return numbers
