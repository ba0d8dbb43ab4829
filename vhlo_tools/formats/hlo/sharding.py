"""XLA shardings in old jax.export files, as text.

They are messages ``OpSharding`` of Protocol Buffers (``xla/xla_data.proto`` in openxla/xla), and are printed as by
``HloSharding::ToString``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.formats.protobuf import Message

if TYPE_CHECKING:
    from vhlo_tools.mapping import View

_REPLICATED, _MAXIMAL, _OTHER = 0, 1, 3
_WORDS: Final = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
# Field numbers.
_KIND, _TILES, _DEVICES, _ON_LAST, _LAST, _SHAPE, _ORDER = 1, 3, 4, 6, 8, 9, 10
_MOST_SHOWN: Final = 64


def hlo_sharding_text(message: View) -> str:
    """Return a sharding as XLA prints it, or its size if its kind is unknown."""
    try:
        fields = _fields(message)
        text = _text(fields)
    except MalformedArtifactError:
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


def _fields(message: View) -> dict[int, list[int]]:
    """Return numbers by field, packed or not; those in nested messages are omitted."""
    fields: dict[int, list[int]] = {}
    for number, value in Message(message, "sharding").fields():
        if isinstance(value, int):
            fields.setdefault(number, []).append(value)
        elif number in (_TILES, _DEVICES, _LAST, _SHAPE, _ORDER):
            fields.setdefault(number, []).extend(value.numbers())
    return fields
