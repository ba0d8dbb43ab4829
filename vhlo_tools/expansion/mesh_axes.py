"""Replica groups given by the axes of a mesh, introduced in 1.16.0, as groups of ids.

A group has the ids of the devices that differ only in their positions along the given axes, of which the last one
changes most often; groups are in the order of the remaining axes. The mesh is part of the attribute, or an op of the
module (``sdy.mesh``) to which the attribute refers by name; a mesh may tell the order of its devices, and an axis may
be split into sub-axes. The ids mean what ids of explicit groups mean on the same op.

Source: StableHLO specification, section "Replica groups"; ``stablehlo/dialect/ReplicaGroupUtils.cpp`` in
openxla/stablehlo, which has no sub-axes: these are as in Shardy (``shardy/dialect/sdy/ir/attrs.td``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.device_ids import groups_of
from vhlo_tools.rewriting import Build, Rewriter

#: The ops with the attribute ``replica_groups``, except ``collective_reduce``: no version with it lacks meshes.
_OPS: Final = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")


def _explicit(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if str(op.attributes["replica_groups"]).startswith("dense<"):
        return None
    groups = rewriter.rows(groups_of(rewriter))
    return rewriter.make_like(op.operands, [each.type for each in op.results], replica_groups=groups)


EXACT: Final[Mapping[str, Build]] = {f"stablehlo.{name}": _explicit for name in _OPS}
