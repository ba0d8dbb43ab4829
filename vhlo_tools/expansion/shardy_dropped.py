"""Shardings of Shardy, whose dialect stands beside VHLO since 1.11.0, dropped.

Meshes, shardings and constraints say how values are split over devices, and not what they are: without them, the
program computes the same values on one device. This does not hold for what runs once for each part of a value: a manual
computation is replaced by its body only if each part is the whole value, as it is along axes of size 1; and a program
with ops that devices exchange values with, or know their numbers by, remains as it is.

Source: ``shardy/dialect/sdy/ir/ops.td`` and ``docs/sharding_representation.md`` in openxla/shardy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vhlo_tools.bindings import Operation, named_attributes
from vhlo_tools.expansion.whole_module import WholeModule
from vhlo_tools.rewriting import drop_shardy, has_several_devices, is_of_shardy, is_readable, shardy_attributes

#: The ops of StableHLO whose results depend on the device, or on what other devices compute.
_OF_DEVICES: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "collective_reduce",
        "partition_id",
        "recv",
        "reduce_scatter",
        "replica_id",
        "send",
    )
)
#: The ops of Shardy whose operand has another value on each device, which only reductions add up.
_REDUCTIONS: Final = frozenset(
    f"sdy.{name}" for name in ("all_reduce", "reduce_scatter", "replicated_to_unreduced", "sharded_to_unreduced")
)


def _drop(whole: WholeModule) -> None:
    ops = whole.provider.walk(whole.module)
    shardy = [op for op in ops if is_of_shardy(op) or any(shardy_attributes(op))]
    several = any(map(has_several_devices, shardy))
    refusals = [(op, reason) for op in ops for reason in _reasons(op)] if several else []
    for op, reason in refusals:
        whole.refuse(op, reason)
    # MLIR invalidates them on erasure.
    is_dropped = bool(shardy) and not refusals
    del ops, shardy
    if is_dropped:
        drop_shardy(whole.provider, whole.module, whole.notes)


def _reasons(op: Operation) -> Iterator[str]:
    """The reasons why the program would compute something else without Shardy."""
    name = str(op.name)
    if name in _OF_DEVICES:
        yield f"{name} is for several devices, and without shardings the program is for one"
    elif name in _REDUCTIONS:
        yield f"{name} has another operand on each device"
    elif name == "sdy.manual_computation" and _has_parts(op):
        yield f"the body of {name} runs once for each part of the values that it takes or returns"
    if any("unreduced={" in text for text in _texts(op)):
        yield f"{name} has a sharding with unreduced axes: its value is the sum of those of several devices"
    if any(each.side for each in shardy_attributes(op)) and not is_readable(op):
        yield f"an argument or a result of {name} has attributes that the bindings cannot read"


def _has_parts(op: Operation) -> bool:
    block = op.regions[0].blocks[0]
    *_, end = block.operations
    sides = ((op.operands, block.arguments), (op.results, end.operation.operands))
    return any(one.type != other.type for side in sides for one, other in zip(*side, strict=True))


def _texts(op: Operation) -> Iterator[str]:
    if is_of_shardy(op):
        yield from (str(each) for _, each in named_attributes(op.attributes))
    yield from (str(each.value) for each in shardy_attributes(op))


RELAXED: Final = _drop
