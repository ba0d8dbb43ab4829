"""Conversion of a grid of replicas and partitions to replicas only, so that XLA does not partition the program.

XLA's partitioner treats a program as unsplit and splits it, and refuses specifications for single partitions. A program
that specifies what each device does needs no partitioning: with the groups of its collectives as numbers of devices, it
is a program for replicas alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import GROUPS, Grid, Groups, grouping_of
from vhlo_tools.execution.refusals import described
from vhlo_tools.program import meshes_of
from vhlo_tools.rewriting import Rewriter, apply_patterns, patterns_of


def flatten_grid(provider: Provider, module: ModuleOp, grid: Grid, name: str) -> None:
    meshes = meshes_of(module)
    apply_patterns(provider, module, patterns_of(dict.fromkeys(_IDS, partial(_of_device, partitions=grid.partitions))))
    with module.context:
        for op in provider.walk(module):
            if str(op.name) in GROUPS:
                grouping = grouping_of(op, described(op, name), meshes.get)
                groups = grouping.groups(grid)
                if not grouping.is_pairs and (missing := sorted({*range(grid.size)}.difference(*groups))):
                    raise EngineError(f"{grouping.place}: device {missing[0]} of {grid} belongs to none of its groups")
                _regroup(provider, op, GROUPS[str(op.name)], groups)


#: The op that computes the number of a replica or partition from that of the device and the number of partitions.
_IDS: Final[Mapping[str, str]] = {
    "stablehlo.partition_id": "stablehlo.remainder",
    "stablehlo.replica_id": "stablehlo.divide",
}


def _of_device(rewriter: Rewriter, partitions: int) -> list[Any]:
    type_ = rewriter.op.results[0].type
    device = rewriter.make("stablehlo.replica_id", [], type_)
    return [rewriter.make(_IDS[str(rewriter.op.name)], [device, rewriter.constant(type_, partitions)], type_)]


def _regroup(provider: Provider, op: Operation, attribute: str, groups: Groups) -> None:
    for name in ("channel_handle", "use_global_device_ids"):
        if name in op.attributes:
            del op.attributes[name]
    width = max(map(len, groups), default=0)
    # Groups of fewer members are padded with -1.
    padded = np.full((len(groups), width), -1, np.int64)
    for row, group in zip(padded, groups, strict=True):
        row[: len(group)] = group
    op.attributes[attribute] = provider.dense_elements(op.context, padded)
