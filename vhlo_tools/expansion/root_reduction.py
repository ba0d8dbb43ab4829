"""The op collective_reduce, introduced in 1.19.0, as all_reduce and a selection.

The root of each group has the reduction, all other devices have zeros. ``all_reduce`` gives all devices the reduction,
in the order of the same group, and each device selects by its position in its group, which is that of the root or not.
So the root has the bits that ``all_reduce`` gives, and the others have positive zeros.

The installed library forms groups as for ``all_reduce``: of replicas without a channel; of replicas with all their
partitions with one; of devices with ``use_global_device_ids`` (``collectiveReduceOp`` in
``stablehlo/reference/Ops.cpp`` of openxla/stablehlo; the specification tells groups of partitions in the second case).
The position follows from the numbers of the replica and the partition; for groups of devices it takes the number of
partitions, which is one more than the greatest number of a partition on any device.

``all_reduce`` requires that every device belongs to a group. The library accepts groups of all ids up to the greatest
one; each greater id becomes a group of its own, up to the number of replicas or devices that the module tells.

Source: StableHLO specification, ``collective_reduce``, ``all_reduce``, and section "Collective ops".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.device_ids import entry, groups_of, identity, with_channel
from vhlo_tools.expansion.reaching import require_all_devices
from vhlo_tools.program import channel_of
from vhlo_tools.rewriting import Build, MatchFailure, Rewriter, Tensor, constant_like

_EXTRA: Final = ("has_dynamic_root",)


def _reduce(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    if quantized := [each.type for each in op.results if "!quant." in str(each.type)]:
        raise MatchFailure(f"{quantized[0]} is quantized, and has no constant of zeros")
    groups = groups_of(rewriter)
    if _is_of_devices(rewriter):
        require_all_devices(rewriter)
    complete = _complete(rewriter, groups)
    position = Tensor(rewriter, _position(rewriter, groups, complete))
    data = list(op.operands)
    roots: list[Tensor | int] = [0] * len(data)
    if "has_dynamic_root" in op.attributes:
        told = Tensor(rewriter, data.pop())
        roots = [told.entry(number) for number in range(len(data))]
    values = []
    for value, root, result in zip(data, roots, op.results, strict=False):
        (reduced,) = rewriter.make_like(
            # The op converts to a wider type of its reduction first, which is a newer feature of all_reduce.
            [rewriter.convert(value, result.type.element_type)],
            [result.type],
            name="stablehlo.all_reduce",
            without=_EXTRA,
            replica_groups=rewriter.rows(complete),
        )
        zeros = constant_like(rewriter, reduced, 0)
        operands = [position.compare("EQ", root).value, reduced, zeros]
        values.append(rewriter.make("stablehlo.select", operands, result.type))
    return values


def _is_of_devices(rewriter: Rewriter) -> bool:
    return "use_global_device_ids" in rewriter.op.attributes


def _complete(rewriter: Rewriter, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Each id that belongs to no group becomes a group of its own."""
    held = rewriter.module().attributes
    names = ("mhlo.num_replicas", "mhlo.num_partitions") if _is_of_devices(rewriter) else ("mhlo.num_replicas",)
    counts = [int(held[name].value) if name in held else 0 for name in names]
    members = {each for group in groups for each in group}
    extent = max(math.prod(counts), max(members) + 1)
    return [*groups, *((each,) for each in range(extent) if each not in members)]


def _position(rewriter: Rewriter, groups: Sequence[tuple[int, ...]], complete: Sequence[tuple[int, ...]]) -> Any:
    """A scalar ``i32``; -1 if the device belongs to no group."""
    own = Tensor(rewriter, identity(rewriter, "replica"))
    positions = {each: at for group in groups for at, each in enumerate(group)}
    of_32 = rewriter.integer(32)
    if _is_of_devices(rewriter):
        partition = Tensor(rewriter, identity(rewriter, "partition"))
        own = own * (_greatest(rewriter, partition, complete) + 1) + partition
        return entry(rewriter, own.value, positions, -1, 32)
    first = entry(rewriter, own.value, positions, -1, 32)
    if channel_of(rewriter.op) <= 0:
        return first
    # The partitions of a group follow each other, each with all replicas.
    steps = entry(rewriter, own.value, {each: len(group) for group in groups for each in group}, 0, 32)
    partition = Tensor(rewriter, identity(rewriter, "partition")).convert(of_32)
    return (Tensor(rewriter, first) + Tensor(rewriter, steps) * partition).value


def _greatest(rewriter: Rewriter, value: Tensor, complete: Sequence[tuple[int, ...]]) -> Tensor:
    """The greatest value of all devices."""
    everyone = sorted(each for group in complete for each in group)
    scalar = value.type
    (greatest,) = rewriter.make_with_bodies(
        "stablehlo.all_reduce",
        [value.value],
        [scalar],
        [((scalar, scalar), lambda one, other: [rewriter.make("stablehlo.maximum", [one, other], scalar)])],
        replica_groups=rewriter.rows([everyone]),
        use_global_device_ids=rewriter.attribute("unit"),
        **with_channel(rewriter),
    )
    return Tensor(rewriter, greatest)


EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_reduce": _reduce}
