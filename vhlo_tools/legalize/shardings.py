"""Removal of Shardy from programs for one device, where it has no meaning.

JAX writes meshes without axes, constraints on them, and sharding rules of custom calls into such programs too.
Shardings of several devices remain. Sources: ``shardy/dialect/sdy/ir/ops.td`` and ``attrs.td`` in openxla/shardy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, class_of, elements_of, named_attributes
from vhlo_tools.rewriting import Build, Notes, Rewriter, apply_patterns, patterns_of

__all__ = ["SHARDY", "drop_single_device_shardings"]

#: The dialect that JAX writes beside StableHLO.
SHARDY: Final = "sdy"

_PREFIX: Final = f"{SHARDY}."
#: A mesh, as an attribute of a `sdy.mesh` or inside a sharding: `mesh<["x"=2], device_ids=[1, 0]>`.
_MESH: Final = re.compile(r"\bmesh<\[([^\]]*)\](?:, *device_ids=\[([-\d, ]*)\])?>")
#: The attributes of a function that contain those of its arguments and results.
_SIDES: Final = ("arg_attrs", "res_attrs")
_SIZE: Final = re.compile(r'"=(\d+)')


def _operand(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.operand(0)]


def _body(rewriter: Rewriter) -> Sequence[Any]:
    return rewriter.body(rewriter.operands())


def _nothing(rewriter: Rewriter) -> Sequence[Any]:
    return []


def _constant(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.renamed("stablehlo.constant")]


#: The patterns for ops of Shardy whose meshes have one device.
_SINGLE_DEVICE: Final[dict[str, Build]] = {
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


def drop_single_device_shardings(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    """Remove the ops and attributes of Shardy from ``module``, in place, if all of its meshes have one device.

    Args:
        provider: The bindings.
        module: The module, valid.
        notes: Receives a note for each op, and for each name of an attribute.
    """
    ops = list(provider.walk(module))
    found = [op for op in ops if str(op.name).startswith(_PREFIX) or any(_attributes(op))]
    if not found or any(_has_several_devices(op) for op in found):
        return
    with module.context:
        for op in found:
            for name in dict.fromkeys(name for name, _ in _attributes(op)):
                notes.add(op, f"{name} of {op.name} was removed: the program is for one device", "attribute")
            _drop_attributes(provider, op)
    # MLIR invalidates them on erasure.
    del ops, found, op
    apply_patterns(provider, module, patterns_of(_SINGLE_DEVICE), notes)


def _drop_attributes(provider: Provider, op: Operation) -> None:
    """Remove the attributes of Shardy from an op that is not of Shardy itself, its arguments and its results."""
    if str(op.name).startswith(_PREFIX):
        return
    ir = provider.ir
    for name, attribute in list(named_attributes(op.attributes)):
        if name.startswith(_PREFIX):
            del op.attributes[name]
        elif name in _SIDES and class_of(attribute) == "ArrayAttr":
            held = [dict(named_attributes(each)) for each in elements_of(attribute)]
            # The bindings cannot read all attributes; a dictionary with one of these is left as it is.
            if [len(each) for each in held] != [len(each) for each in attribute]:
                continue
            kept = [{key: each[key] for key in each if not key.startswith(_PREFIX)} for each in held]
            op.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in kept])


def _has_several_devices(op: Operation) -> bool:
    """Return whether an op contains a mesh of several devices, or of one other than device 0."""
    texts = [str(each) for name, each in named_attributes(op.attributes) if str(op.name).startswith(_PREFIX)]
    texts += [str(each) for _, each in _attributes(op)]
    for axes, devices in (match.groups() for text in texts for match in _MESH.finditer(text)):
        if any(size != "1" for size in _SIZE.findall(axes)) or (devices or "0").strip() not in ("", "0"):
            return True
    return False


def _attributes(op: Operation) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of Shardy of an op that is not of Shardy itself, and of its arguments and results."""
    if str(op.name).startswith(_PREFIX):
        return
    for name, attribute in named_attributes(op.attributes):
        if name.startswith(_PREFIX):
            yield name, attribute
        # Functions of VHLO have attributes of VHLO.
        elif name in _SIDES and class_of(attribute) == "ArrayAttr":
            for each in elements_of(attribute):
                yield from (item for item in named_attributes(each) if item[0].startswith(_PREFIX))
