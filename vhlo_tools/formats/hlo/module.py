"""Reader of the name, signature and aliases of an HLO protocol buffer.

The field numbers are those of ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` in openxla/xla, and never change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import Alias, Array, Donor, Opaque, Signature, Tuple
from vhlo_tools.formats.hlo.header import HloHeader
from vhlo_tools.formats.protobuf import Message

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Shape
    from vhlo_tools.mapping import View

_NAME: Final = 1
_PROGRAM_SHAPE: Final = 4
_ALIASES: Final = 8
_DONORS: Final = 18
_MUST_ALIAS: Final = 2
_DEEPEST: Final = 100
_LARGEST: Final = (1 << 63) - 1

#: The enum ``PrimitiveType``, in the syntax of HLO text.
ELEMENT_TYPES: Final = dict(
    enumerate(
        (
            *("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque"),
            *("c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz"),
            *("f8e4m3fnuz", "s2", "u2", "f8e4m3", "f8e3m4", "s1", "u1", "f4e2m1fn", "f8e8m0fnu"),
        ),
        start=1,
    )
)


def read_hlo_module(data: View) -> HloHeader:
    """Return the same facts as the first line of the module's text."""
    module = Message(data, "HLO")
    name, signature = "", None
    aliases: list[Alias] = []
    donors: list[Donor] = []
    for number, value in module.fields():
        if number == _NAME:
            name = module.message(value).text()
        elif number == _PROGRAM_SHAPE:
            signature = _signature(module.message(value))
        elif number == _ALIASES:
            aliases += map(_alias, _messages(module.message(value)))
        elif number == _DONORS:
            donors += map(_donor, _messages(module.message(value)))
    return HloHeader(name, tuple(aliases), tuple(donors), signature)


def _messages(message: Message) -> Iterator[Message]:
    """Yield the values of field 1 of a message, one for each entry."""
    for number, value in message.fields():
        if number == 1:
            yield message.message(value)


def _alias(entry: Message) -> Alias:
    output, parameter, index, kind = (_numbers(entry, number) for number in (1, 2, 3, 4))
    must = kind[-1:] == (_MUST_ALIAS,)
    return Alias(output, parameter[-1] if parameter else 0, index, "must-alias" if must else "may-alias")


def _donor(entry: Message) -> Donor:
    parameter, index = (_numbers(entry, number) for number in (1, 2))
    return Donor(parameter[-1] if parameter else 0, index)


def _numbers(message: Message, wanted: int) -> tuple[int, ...]:
    """Return the numbers in a repeated field, packed or not."""
    found: list[int] = []
    for number, value in message.fields():
        if number == wanted:
            found += [value] if isinstance(value, int) else value.numbers()
    return tuple(found)


def _signature(program: Message) -> Signature:
    shapes: dict[int, list[Shape]] = {1: [], 2: [Opaque()]}
    for number, value in program.fields():
        if number in shapes:
            shapes[number].append(_shape(program.message(value), 0))
    return Signature(tuple(shapes[1]), shapes[2][-1])


def _shape(message: Message, depth: int) -> Shape:
    if depth > _DEEPEST:
        raise message.malformed(f"has shapes that nest deeper than {_DEEPEST}", 0)
    kind = ELEMENT_TYPES.get(sum(_numbers(message, 2)[-1:]), "")
    if kind == "tuple":
        parts = [message.message(value) for number, value in message.fields() if number == 4]
        return Tuple(tuple(_shape(each, depth + 1) for each in parts))
    if kind in ("token", "opaque"):
        return Opaque(f"{kind}[]")
    sizes, dynamic = _numbers(message, 3), _numbers(message, 6)
    is_dynamic = [any(dynamic[at : at + 1]) for at in range(len(sizes))]
    static = (None if each else size for size, each in zip(sizes, is_dynamic, strict=True))
    # Of a dynamic dimension the size is its bound; an unbounded one has a negative number.
    bounds = (size if each and size <= _LARGEST else None for size, each in zip(sizes, is_dynamic, strict=True))
    return Array.of_hlo(kind or "unknown", tuple(static), tuple(bounds))
