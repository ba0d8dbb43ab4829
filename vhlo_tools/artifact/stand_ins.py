"""Stand-ins: custom calls in the place of ops that a library does not know.

What the library then reads of an artifact that is newer than itself is all but those ops, and the patterns of
expansions find them by the names of the calls' targets. An op of a stand-in has its operands, results and location; its
inherent attributes are discardable ones, under the prefix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vhlo_tools.bytecode import AttributeLayout, File, Place, Tables, attributes_of, visit
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.spec import Op, OpVersion, Structure, find_op, find_op_version, property_slots
from vhlo_tools.version import Version

#: Begins the names of the targets, and those of attributes.
STAND_IN: Final = "vhlo_tools."
_CALL: Final = "custom_call"
_EMPTY: Final[Structure] = {"attribute": "array_v1", "elements": []}
_TEXT: Final[Structure] = {"attribute": "string_v1", "value": ""}
#: The inherent attributes of a custom call of nothing but a target.
_PLAIN: Final[dict[str, Structure]] = {
    "api_version": {"attribute": "api_version_v1", "case": "API_VERSION_ORIGINAL"},
    "backend_config": _TEXT,
    "called_computations": _EMPTY,
    "has_side_effect": {"attribute": "bool_v1", "value": False},
    "operand_layouts": _EMPTY,
    "output_operand_aliases": _EMPTY,
    "result_layouts": _EMPTY,
    "result_tilings": _EMPTY,
}


def hide_newer_ops(file: File, version: Version, known: Version) -> None:
    """Put stand-ins in the place of the ops of an artifact of ``version`` that were introduced after ``known``."""
    names = dict(enumerate(map(file.op_name, range(len(file.dialects.ops)))))
    found = {at: op for at, name in names.items() if (op := _newer(name, known)) is not None}
    if not found:
        return
    tables = Tables(file)
    layout = AttributeLayout(file, tables, in_properties=file.has_properties)
    call = _at(_CALL, version)
    plain = {name: tables.structure("attribute", _PLAIN[name]) for name in call.attributes if name in _PLAIN}

    def hide(place: Place, _: list[int]) -> None:
        op = place.op
        hidden = found[op.name]
        inherent, discardable = layout.read(op, property_slots(f"vhlo.{hidden.name}"))
        target = tables.structure("attribute", {"attribute": "string_v1", "value": f"{STAND_IN}{hidden.op}"})
        kept = {**discardable, **{f"{STAND_IN}{name}": index for name, index in inherent.items()}}
        slots = property_slots(f"vhlo.{call.name}")
        op.properties, op.attributes = layout.write({**plain, "call_target_name": target}, kept, slots, op)

    visit(file.ir, hide, lambda head: head.name in found, for_editing=True)
    # Names change afterwards, because they determine how attributes are stored.
    for at in found:
        file.dialects.ops[at] = replace(file.dialects.ops[at], name=tables.string(call.name))
    layout.finish()


def show_newer_ops(file: File, version: Version) -> set[str]:
    """Put the ops back in an artifact of ``version``; return the names of those that it does not have."""
    calls = {each for each in range(len(file.dialects.ops)) if file.op_name(each).startswith(f"vhlo.{_CALL}_v")}
    tables = Tables(file)
    layout = AttributeLayout(file, tables, in_properties=file.has_properties)
    names: dict[str, int] = {}
    missing: set[str] = set()

    def show(place: Place, _: list[int]) -> None:
        op = place.op
        target = file.text(attributes_of(file, op.head).get("call_target_name")) or ""
        held = op_of(target, len(op.operands), len(op.results))
        if held is None:
            return
        discardable = layout.read(op, property_slots(file.op_name(op.name)))[1]
        names_of_attributes = held.versions[-1].attributes
        inherent = {
            name: discardable[key] for name in names_of_attributes if (key := f"{STAND_IN}{name}") in discardable
        }
        if len(inherent) < len(names_of_attributes):
            return
        if (shown := held.at(version)) is None:
            missing.add(held.name)
            return
        slots = property_slots(f"vhlo.{shown.name}")
        kept = {name: index for name, index in discardable.items() if not name.startswith(STAND_IN)}
        if shown.name not in names:
            names[shown.name] = len(file.dialects.ops)
            file.dialects.ops.append(replace(file.dialects.ops[op.name], name=tables.string(shown.name)))
        op.name = names[shown.name]
        op.properties, op.attributes = layout.write(inherent, kept, slots, op)

    visit(file.ir, show, lambda head: head.name in calls, for_editing=True)
    layout.finish()
    return missing


def op_of(target: str, operands: int, results: int) -> Op | None:
    """Return the op for which a custom call of ``target`` stands; others may be called so, too."""
    op = find_op(target.removeprefix(STAND_IN)) if target.startswith(STAND_IN) else None
    newest = op.versions[-1] if op else None
    if newest is None or (len(newest.operands), len(newest.results)) != (operands, results):
        return None
    return op


def _newer(name: str, known: Version) -> OpVersion | None:
    dialect, _, short = name.partition(".")
    found = find_op_version(short) if dialect == "vhlo" else None
    if found is None or found.number > 1 or found.min <= known.minor_release:
        return None
    # Custom calls have no regions.
    return None if found.regions else found


def _at(name: str, version: Version) -> OpVersion:
    op = find_op(name)
    found = op.at(version) if op else None
    if found is None:
        raise InvalidProgramError(f"{name} is not in StableHLO {version}")
    return found
