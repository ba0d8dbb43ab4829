"""The roots and the several operands of collective_broadcast, introduced in 1.20.0.

Several operands without roots become one op for each operand, because a result depends on its own operand only.

With roots that are only known at run time, each device needs the value of the device at the position that its own root
tells. Permutations rotate the values within each group, one for every distance between two positions, and each device
takes the value of the rotation that brings the one from its root. The first rotation, by no position, leaves zeros on
devices that belong to no group. Values are only moved and selected, as in ``broadcast_rounds``. A gathering op would
need all devices to belong to groups of one size, and ``all_gather`` has no groups of partitions.

Source: StableHLO specification, ``collective_broadcast``; ``collectiveBroadcastOp`` in ``stablehlo/reference/Ops.cpp``
of openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.broadcast_rounds import permuted
from vhlo_tools.expansion.collective_operands import one_for_each
from vhlo_tools.expansion.device_ids import entry, groups_of, id_along_one_axis
from vhlo_tools.expansion.reaching import require_all_devices
from vhlo_tools.rewriting import Build, Rewriter, Tensor


def _from_roots(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if "has_dynamic_root" not in op.attributes:
        return one_for_each(rewriter)
    *data, told = op.operands
    groups = groups_of(rewriter)
    require_all_devices(rewriter)
    own = id_along_one_axis(rewriter)
    roots = [Tensor(rewriter, told).entry(number) for number in range(len(data))]
    found = [permuted(rewriter, value, [(each, each) for group in groups for each in group]) for value in data]
    for distance in range(1, max(map(len, groups))):
        turned = [
            (group[at - distance], group[at], (at - distance) % len(group))
            for group in groups
            if distance < len(group)
            for at in range(len(group))
        ]
        source = Tensor(rewriter, entry(rewriter, own, {to: position for _, to, position in turned}, -1, 32))
        pairs = [(one, to) for one, to, _ in turned]
        for number, (value, root) in enumerate(zip(data, roots, strict=True)):
            operands = [source.compare("EQ", root).value, permuted(rewriter, value, pairs), found[number]]
            found[number] = rewriter.make("stablehlo.select", operands, value.type)
    return found


EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_broadcast": _from_roots}
