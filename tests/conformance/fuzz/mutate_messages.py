"""Mutation of protocol buffers without their schema: fields are found by trying to read bytes as messages."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fuzz.drawing import damage, hostile_string, near, number, varint

_DEEPEST = 12
_SIZES = {1: 8, 5: 4}


@dataclass
class Field:
    """A field: its number, its wire type, and its value, which for wire type 2 may be a message."""

    number: int
    wire: int
    value: int | bytes | Message


Message = list[Field]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("too long")


def decode_message(data: bytes, depth: int = 0) -> Message:
    """Read ``data`` as a message, and its fields too where they can be messages.

    Raises:
        ValueError: If it is none.
        IndexError: If it is cut short.
    """
    fields: Message = []
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        field, wire = key >> 3, key & 7
        if not field:
            raise ValueError("no number")
        value: int | bytes | Message
        if wire == 0:
            value, at = _read_varint(data, at)
        elif wire == 2:
            size, at = _read_varint(data, at)
            if at + size > len(data):
                raise ValueError("too large")
            value, at = _held(data[at : at + size], depth), at + size
        else:
            size = _SIZES[wire] if wire in _SIZES else len(data) + 1
            if at + size > len(data):
                raise ValueError("too large")
            value, at = data[at : at + size], at + size
        fields.append(Field(field, wire, value))
    return fields


def _held(data: bytes, depth: int) -> bytes | Message:
    if len(data) < 2 or depth >= _DEEPEST or (data.isascii() and data.decode().isprintable()):
        return data
    try:
        return decode_message(data, depth + 1)
    except (ValueError, IndexError):
        return data


def encode_message(message: Message) -> bytes:
    out = bytearray()
    for field in message:
        out += varint(field.number << 3 | field.wire)
        value = encode_message(field.value) if isinstance(field.value, list) else field.value
        if isinstance(value, int):
            # A length or a number: what the wire type says was not obeyed before either.
            out += varint(value)
        else:
            out += (varint(len(value)) if field.wire == 2 else b"") + value
    return bytes(out)


def _places(message: Message) -> list[tuple[Message, int]]:
    found: list[tuple[Message, int]] = []
    for index, field in enumerate(message):
        found.append((message, index))
        if isinstance(field.value, list):
            found += _places(field.value)
    return found


def _deep(chance: random.Random, field: Field) -> bytes:
    """Return messages in messages, of the numbers that nest in real ones."""
    inner = b""
    for _ in range(chance.choice((20, 200, 3000))):
        inner = varint(field.number << 3 | 2) + varint(len(inner)) + inner
    return inner


def _edit(chance: random.Random, message: Message, other: Message) -> None:
    within, at = chance.choice(_places(message))
    field = within[at]
    match chance.randrange(13):
        case 0:
            del within[at]
        case 1:
            within[at:at] = [field] * chance.choice((1, 2, 500))
        case 2:
            field.number = near(chance, field.number, 1 << 29) or 1
        case 3:
            field.wire = chance.randrange(8)
        case 4:
            theirs, place = chance.choice(_places(other))
            within[at] = theirs[place]
        case 5:
            theirs, place = chance.choice(_places(other))
            field.value = theirs[place].value
        case 6:
            field.value, field.wire = _deep(chance, field), 2
        case 7:
            # A length without what it announces.
            field.value = number(chance)
        case 8:
            field.value, field.wire = b"".join(varint(number(chance)) for _ in range(chance.randrange(1, 20))), 2
        case 9:
            mine, place = chance.choice(_places(message))
            within[at], mine[place] = mine[place], within[at]
        case _:
            if isinstance(field.value, int):
                field.value = near(chance, field.value)
            elif isinstance(field.value, bytes):
                field.value = chance.choice((hostile_string(chance, field.value), damage(chance, field.value)))
            else:
                chance.shuffle(field.value)


def mutate_message(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a message changed; parts of ``other`` may be put in."""
    if chance.random() < 0.2:
        return damage(chance, data)
    try:
        message, theirs = decode_message(data), decode_message(other)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            _edit(chance, message, theirs)
        return encode_message(message)
    except (ValueError, IndexError, RecursionError):
        # Not a message, or one that now contains itself.
        return damage(chance, data)
