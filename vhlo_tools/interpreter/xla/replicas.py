"""A grid of replicas and partitions as replicas only: what XLA does not have to cut, it cannot cut wrong.

XLA's partitioner takes a program for a whole that it cuts up, and refuses what is said of a partition. A program that
says what each device does needs no cutting: with the groups of its collectives spelled in numbers of devices, it is one
for replicas alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.grid import GROUPS, Grid, Groups, grouping_of
from vhlo_tools.interpreter.meshes import meshes_of
from vhlo_tools.interpreter.refusals import described
from vhlo_tools.portable.site import Site

__all__ = ["flatten_grid"]


def flatten_grid(provider: Provider, module: ModuleOp, grid: Grid, name: str) -> None:
    """Rewrite a program for a grid as one for as many replicas as there are devices, in place.

    Args:
        provider: The bindings.
        module: The program.
        grid: The grid.
        name: What to call the program in messages.

    Raises:
        EngineError: If a collective is not for these devices.
    """
    meshes = meshes_of(module)
    with module.context:
        for op in provider.walk(module):
            if str(op.name) in _IDS:
                value = _of_device(Site(provider, op, {}), _IDS[str(op.name)], grid.partitions)
                op.results[0].replace_all_uses_with(value)
                op.operation.erase()
            elif str(op.name) in GROUPS:
                grouping = grouping_of(op, described(op, name), meshes.get)
                groups = grouping.groups(grid)
                if not grouping.is_pairs and (missing := sorted({*range(grid.size)}.difference(*groups))):
                    raise EngineError(f"{grouping.place}: device {missing[0]} of {grid} belongs to none of its groups")
                _regroup(provider, op, GROUPS[str(op.name)], groups)


#: How the number of a replica or of a partition follows from that of the device, and the number of partitions.
_IDS: Final[Mapping[str, str]] = {
    "stablehlo.partition_id": "stablehlo.remainder",
    "stablehlo.replica_id": "stablehlo.divide",
}


def _of_device(site: Site, name: str, partitions: int) -> Any:
    kind = site.op.results[0].type
    device = site.make("stablehlo.replica_id", [], kind)
    return site.make(name, [device, site.constant(kind, partitions)], kind)


def _regroup(provider: Provider, op: Operation, attribute: str, groups: Groups) -> None:
    for name in ("channel_handle", "use_global_device_ids"):
        if name in op.attributes:
            del op.attributes[name]
    width = max(map(len, groups), default=0)
    # Groups of fewer members are filled up with -1.
    padded = np.full((len(groups), width), -1, np.int64)
    for row, group in zip(padded, groups, strict=True):
        row[: len(group)] = group
    op.attributes[attribute] = provider.dense_elements(op.context, padded)
