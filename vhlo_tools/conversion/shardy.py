"""Ops and attributes of Shardy in a program, and their removal.

Sources: ``shardy/dialect/sdy/ir/ops.td``, ``attrs.td`` and ``constants.h`` in openxla/shardy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, class_of, elements_of, named_attributes
from vhlo_tools.conversion.patterns import Build, apply_patterns, patterns_of
from vhlo_tools.conversion.rewriter import Notes, Rewriter
from vhlo_tools.records import dataclass

#: The dialect that JAX writes beside StableHLO.
SHARDY: Final = "sdy"

_PREFIX: Final = f"{SHARDY}."
#: A mesh, as an attribute of a `sdy.mesh` or inside a sharding: `mesh<["x"=2], device_ids=[1, 0]>`.
_MESH: Final = re.compile(r"\bmesh<\[([^\]]*)\](?:, *device_ids=\[([-\d, ]*)\])?>")
_SIZE: Final = re.compile(r'"=(\d+)')
#: The attributes of a function that contain those of its arguments and results.
_SIDES: Final = ("arg_attrs", "res_attrs")


@dataclass(frozen=True, slots=True)
class ShardyAttribute:
    side: str | None  # attribute of a function that contains those of its arguments, or of its results; otherwise None
    number: int  # of the argument or the result
    name: str
    value: Any


def is_of_shardy(op: Operation) -> bool:
    return str(op.name).startswith(_PREFIX)


def shardy_attributes(op: Operation) -> Iterator[ShardyAttribute]:
    """Attributes of an op that is not of Shardy itself, and of its arguments and results."""
    if is_of_shardy(op):
        return
    for name, attribute in named_attributes(op.attributes):
        if name.startswith(_PREFIX):
            yield ShardyAttribute(None, 0, name, attribute)
        # Functions of VHLO have attributes of VHLO.
        elif name in _SIDES and class_of(attribute) == "ArrayAttr":
            for number, held in enumerate(elements_of(attribute)):
                found = ((key, each) for key, each in named_attributes(held) if key.startswith(_PREFIX))
                yield from (ShardyAttribute(name, number, key, each) for key, each in found)


def has_several_devices(op: Operation) -> bool:
    """Whether there is a mesh of several devices, or of one other than device 0."""
    texts = [str(each) for _, each in named_attributes(op.attributes)] if is_of_shardy(op) else []
    texts += [str(each.value) for each in shardy_attributes(op)]
    for axes, devices in (match.groups() for text in texts for match in _MESH.finditer(text)):
        if any(size != "1" for size in _SIZE.findall(axes)) or (devices or "0").strip() not in ("", "0"):
            return True
    return False


def is_readable(op: Operation) -> bool:
    """Whether the bindings can read all attributes of the arguments and results of a function."""
    sides = [op.attributes[side] for side in _SIDES if side in op.attributes]
    # Ops that are no functions may have others of these names.
    held = [each for side in sides if class_of(side) == "ArrayAttr" for each in elements_of(side)]
    return all(class_of(each) == "DictAttr" and len(dict(named_attributes(each))) == len(each) for each in held)


def replace_shardy(provider: Provider, op: Operation, old: ShardyAttribute, new: Mapping[str, Any]) -> None:
    """A function must be readable; ``new`` has the attributes that are added or changed."""
    ir = provider.ir
    if old.side is None:
        del op.attributes[old.name]
        for name, each in new.items():
            op.attributes[name] = each
        return
    held = [dict(named_attributes(each)) for each in elements_of(op.attributes[old.side])]
    del held[old.number][old.name]
    held[old.number] |= new
    op.attributes[old.side] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in held])


# Removal


def _operand(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.operand(0)]


def _body(rewriter: Rewriter) -> Sequence[Any]:
    return rewriter.body(rewriter.operands())


def _nothing(rewriter: Rewriter) -> Sequence[Any]:
    return []


def _constant(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.renamed("stablehlo.constant")]


#: What takes the place of an op of Shardy where it has no meaning: on one device, or for the values of all devices.
_REMOVED: Final[dict[str, Build]] = {
    **dict.fromkeys(
        (
            *("sdy.all_gather", "sdy.all_reduce", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute"),
            *("sdy.data_flow_edge", "sdy.propagation_barrier", "sdy.reduce_scatter", "sdy.replicated_to_unreduced"),
            *("sdy.reshard", "sdy.sharded_to_unreduced", "sdy.sharding_constraint"),
        ),
        _operand,
    ),
    "sdy.constant": _constant,
    "sdy.manual_computation": _body,
    "sdy.mesh": _nothing,
    "sdy.named_computation": _body,
    "sdy.sharding_group": _nothing,
}


def drop_shardy(provider: Provider, module: ModuleOp, notes: Notes, reason: str = "") -> None:
    with module.context:
        _drop_attributes(provider, module, notes, reason)
    apply_patterns(provider, module, patterns_of(_REMOVED), notes)


def _drop_attributes(provider: Provider, module: ModuleOp, notes: Notes, reason: str) -> None:
    """MLIR invalidates the ops on erasure, so nothing refers to them afterwards."""
    for op in provider.walk(module):
        found = list(shardy_attributes(op))
        for name in dict.fromkeys(each.name for each in found):
            notes.add(op, f"{name} of {op.name} was removed{reason}", "attribute")
        for each in found if is_readable(op) else ():
            replace_shardy(provider, op, each, {})
