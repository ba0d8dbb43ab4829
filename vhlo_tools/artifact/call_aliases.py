"""Aliases of the custom calls in an artifact: which of their results are written over which of their operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from vhlo_tools.aliasing import Alias, CallAliases, Signature, call_violations, read_call, spell_call
from vhlo_tools.artifact.entry_function import text_of
from vhlo_tools.artifact.plain_attributes import PlainReader
from vhlo_tools.bytecode import File, Operation, Place, entry_name, visit
from vhlo_tools.compat.places import Places, attributes_of
from vhlo_tools.dialect import property_slots
from vhlo_tools.errors import AliasError
from vhlo_tools.retargeting.layout import AttributeLayout
from vhlo_tools.retargeting.leftovers import clear_leftovers
from vhlo_tools.retargeting.tables import Tables

__all__ = ["has_call_aliases", "matching_calls", "read_calls", "write_call_aliases"]

_CALL: Final = "vhlo.custom_call_v"
_ALIAS: Final = "output_operand_alias_v1"
_SLOT: Final = "output_operand_aliases"
# Of the calls that there are, a message names no more.
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class _Call:
    op: Operation
    said: CallAliases


def read_calls(file: File, name: str) -> tuple[CallAliases, ...]:
    """Return all custom calls of a program, with what each says of aliases.

    Args:
        file: Its bytes.
        name: What it is called, for places in a program that had no file.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    return tuple(call.said for call in _calls(file, name))


def has_call_aliases(file: File) -> bool:
    """Tell from the tables of a program whether a custom call of it may have aliases."""
    if not any(file.op_name(index).startswith(_CALL) for index in range(len(file.dialects.ops))):
        return False
    return any(entry_name(file, "attribute", entry) == f"vhlo.{_ALIAS}" for entry in file.attributes)


def matching_calls(calls: Iterable[CallAliases], call: str) -> list[CallAliases]:
    """Return the one call at the path ``call``, or else all calls of the target ``call``.

    Raises:
        AliasError: If there is none; the message names those that there are.
    """
    known = list(calls)
    found = [each for each in known if each.path == call] or [each for each in known if each.target == call]
    if not found:
        shown = [f"{each.path} of {each.target}" for each in known[:_SHOWN]]
        shown += [f"and {len(known) - _SHOWN} more"] * (len(known) > _SHOWN)
        raise AliasError(
            f"there is no custom call {call}: expected the path of one or a target; there are {', '.join(shown)}"
            if known
            else f"there is no custom call {call}: the program has no custom calls"
        )
    return found


def write_call_aliases(file: File, aliases: Mapping[str, Iterable[Alias]], name: str) -> None:
    """Give custom calls these aliases, and no others.

    Args:
        file: The bytes of the program, which are edited.
        aliases: The aliases by the path of a call, or by a target, for all calls of it. Of equal ones one is written.
        name: What the program is called.

    Raises:
        AliasError: If there is no such call, it has no such result or operand, the two are not of one shape, or an
            alias is a may-alias.
        MalformedArtifactError: If the program is damaged.
    """
    calls = {call.said.path: call for call in _calls(file, name)}
    wanted = {
        found.path: tuple(dict.fromkeys(each))
        for call, each in aliases.items()
        for found in matching_calls((call.said for call in calls.values()), call)
    }
    tables = Tables(file)
    lost: set[int] = set()
    for path, each in wanted.items():
        said = replace(calls[path].said, aliases=each)
        if broken := call_violations(said):
            raise AliasError(f"the call of {said.target} at {path}: {broken[0].message}: {broken[0].remedy}")
        lost |= _write(file, tables, calls[path].op, spell_call(each))
    clear_leftovers(file, tables, lost)


def _write(file: File, tables: Tables, op: Operation, entries: Iterable[dict[str, Any]]) -> set[int]:
    """Write the entries of an op's aliases, and return what it lost."""
    layout = AttributeLayout(file, tables, in_properties=op.properties is not None)
    slots = property_slots(file.op_name(op.name))
    inherent, discardable = layout.read(op, slots)
    lost = {inherent.get(_SLOT), op.attributes if op.properties is None else None}
    elements = tuple(tables.vhlo(_ALIAS, *each.values()) for each in entries)
    changed = {**inherent, _SLOT: tables.vhlo("array_v1", elements)}
    op.properties, op.attributes = layout.write(changed, discardable, slots, op)
    return {index for index in lost if index is not None}


def _calls(file: File, name: str) -> Iterator[_Call]:
    named = {index for index in range(len(file.dialects.ops)) if file.op_name(index).startswith(_CALL)}
    if not named:
        return
    places, reader = Places(file, name), PlainReader(file)
    found: list[_Call] = []

    def look(place: Place, values: list[int]) -> None:
        attributes = attributes_of(file, place.op)
        index = attributes.get(_SLOT)
        entries = [_fields(file, each) for each in reader.elements(index)] if index is not None else []
        shapes = tuple(reader.shape(values[operand]) for operand in place.op.operands)
        said = CallAliases(
            path=places.path(place),
            target=text_of(file, attributes.get("call_target_name")) or "",
            signature=Signature.of_results(shapes, tuple(map(reader.shape, place.op.results))),
            aliases=read_call(entries),
            location=places.source(place.op.location),
        )
        found.append(_Call(place.op, said))

    visit(file.ir, look, lambda block, place: None, lambda op: op.name in named)
    yield from found


def _fields(file: File, index: int) -> dict[str, Any]:
    """Return an alias of a call by the names that StableHLO has for its parts."""
    value = file.decode("attribute", index)
    if value is None or value.name != _ALIAS:
        return {}
    return {
        "output_tuple_indices": value.field("outputTupleIndices"),
        "operand_index": value.field("operandIndex"),
        "operand_tuple_indices": value.field("operandTupleIndices"),
    }
