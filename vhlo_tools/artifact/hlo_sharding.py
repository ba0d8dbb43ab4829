"""Shardings of XLA, as old jax.export files have them, in XLA's own words.

They are messages ``OpSharding`` of Protocol Buffers (``xla/xla_data.proto`` in openxla/xla), and are spelled as
``HloSharding::ToString`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["hlo_sharding_text"]

_REPLICATED, _MAXIMAL, _OTHER = 0, 1, 3
_WORDS: Final = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
# Numbers of fields.
_KIND, _TILES, _DEVICES, _ON_LAST, _LAST, _SHAPE, _ORDER = 1, 3, 4, 6, 8, 9, 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_MOST_SHOWN: Final = 64


def hlo_sharding_text(message: memoryview) -> str:
    """Return a sharding as XLA prints it, or its size if it is of a kind that is not known here."""
    try:
        fields = _fields(message)
        text = _text(fields)
    except (IndexError, ValueError):
        text = None
    return text or f"an HLO sharding of {len(message)} bytes"


def _text(fields: dict[int, list[int]]) -> str | None:
    kind = fields.get(_KIND, [_REPLICATED])[-1]
    if kind in _WORDS:
        return f"{{{_WORDS[kind]}}}"
    devices = fields.get(_DEVICES, [])
    if kind == _MAXIMAL and len(devices) == 1:
        return f"{{maximal device={devices[0]}}}"
    if kind != _OTHER or _TILES not in fields:
        return None
    text = f"devices=[{_joined(fields[_TILES])}]"
    if _SHAPE in fields:
        shape, order = fields[_SHAPE], fields.get(_ORDER, [])
        text += f"<=[{_joined(shape)}]" + (f"T({_joined(order)})" if len(order) > 1 else "")
    else:
        text += _joined(devices)
    if fields.get(_ON_LAST, [0])[-1]:
        text += " last_tile_dim_replicate"
    elif _LAST in fields:
        text += f" last_tile_dims={{{', '.join(_WORDS.get(each, 'unknown') for each in fields[_LAST])}}}"
    return f"{{{text}}}"


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers[:_MOST_SHOWN])) + (",..." if len(numbers) > _MOST_SHOWN else "")


def _fields(message: memoryview) -> dict[int, list[int]]:
    """Return the numbers of a message by the field they are in; those in messages within it are left out.

    Raises:
        IndexError: If the message ends within a number.
        ValueError: If it is malformed otherwise.
    """
    fields: dict[int, list[int]] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            fields.setdefault(number, []).append(value)
        elif wire == _BYTES:
            size, at = _varint(message, at)
            end = at + size
            if end > len(message):
                raise ValueError("the message ends within a field")
            # Packed numbers, in the fields that are looked at.
            while at < end and number in (_TILES, _DEVICES, _LAST, _SHAPE, _ORDER):
                value, at = _varint(message, at)
                fields.setdefault(number, []).append(value)
            at = end
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"the message has a field of the unknown form {wire}")
    return fields


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("the message has a number without end")
