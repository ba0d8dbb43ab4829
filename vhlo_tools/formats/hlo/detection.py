"""Recognition of HLO protocol buffers, and extraction of the module.

A file is an ``HloModuleProto``, or an ``HloProto`` that contains one. The field numbers are those of
``xla/service/hlo.proto`` in openxla/xla, and never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.formats.protobuf import Message

if TYPE_CHECKING:
    from vhlo_tools.mapping import View

_NAME: Final = 1
_ENTRY: Final = 2
_COMPUTATION: Final = 3
_INSTRUCTION: Final = 2
_OPCODE: Final = 2
_LONGEST_NAME: Final = 1 << 16


def is_hlo_proto(data: View) -> bool:
    """Judge by the beginning: names, and a computation with an instruction."""
    return find_hlo_module(data) is not None


def find_hlo_module(data: View) -> View | None:
    try:
        whole = Message(data, "HLO")
        if _is_module(whole):
            return data
        number, value = next(whole.fields())
        if number == _NAME and isinstance(value, Message) and _is_module(value):
            return value.data
    except (MalformedArtifactError, StopIteration):
        pass
    return None


def _is_module(message: Message) -> bool:
    fields = message.fields()
    for wanted in (_NAME, _ENTRY):
        number, value = next(fields, (0, 0))
        if number != wanted or not _is_name(value):
            return False
    number, computation = next(fields, (0, 0))
    if number != _COMPUTATION or not isinstance(computation, Message):
        return False
    for number, value in computation.fields():
        if number == _NAME and not _is_name(value):
            return False
        if number == _INSTRUCTION and isinstance(value, Message):
            return any(number == _OPCODE and _is_name(opcode) for number, opcode in value.fields())
    return False


def _is_name(value: int | Message) -> bool:
    if not isinstance(value, Message) or len(value.data) > _LONGEST_NAME:
        return False
    try:
        return bytes(value.data).decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False
