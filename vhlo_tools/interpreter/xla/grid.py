"""A grid of replicas and partitions as replicas only: what XLA does not have to cut, it cannot cut wrong.

XLA's partitioner takes a program for a whole that it cuts up, and refuses what is said of a partition. A program that
says what each device does needs no cutting: with the groups of its collectives spelled in numbers of devices, it is one
for replicas alone. Source: "Process grid" in the StableHLO specification, and ``stablehlo/reference/ProcessGrid.cpp``
in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.portable.site import Site

__all__ = ["Grid", "flatten_grid"]

Groups = list[list[int]]

_CHANNEL: Final = re.compile(r"handle = (\d+)")


@dataclass(frozen=True, slots=True)
class Grid:
    """So many replicas, each of so many partitions; device ``r * partitions + p`` is partition ``p`` of replica ``r``.

    Attributes:
        replicas: How many replicas there are.
        partitions: How many partitions each has.
    """

    replicas: int
    partitions: int

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.replicas * self.partitions

    def across_replicas(self, groups: Groups) -> Groups:
        """Return the devices in groups of replicas, for each partition."""
        return [
            [replica * self.partitions + partition for replica in group]
            for group in groups
            for partition in range(self.partitions)
        ]

    def across_partitions(self, groups: Groups) -> Groups:
        """Return the devices in groups of partitions, for each replica."""
        return [
            [replica * self.partitions + partition for partition in group]
            for group in groups
            for replica in range(self.replicas)
        ]

    def across_both(self, groups: Groups) -> Groups:
        """Return the devices in groups of replicas, with all their partitions."""
        return [
            [replica * self.partitions + partition for partition in range(self.partitions) for replica in group]
            for group in groups
        ]


def flatten_grid(provider: Provider, module: ModuleOp, grid: Grid) -> None:
    """Rewrite a program for a grid as one for as many replicas as there are devices, in place.

    Args:
        provider: The bindings.
        module: The program.
        grid: The grid.
    """
    with module.context:
        for op in provider.walk(module):
            name = str(op.name)
            if name in _IDS:
                value = _IDS[name](Site(provider, op, {}), grid.partitions)
                op.results[0].replace_all_uses_with(value)
                op.operation.erase()
            elif name in _GROUPS:
                attribute, devices = _GROUPS[name]
                _regroup(provider, op, attribute, devices(op, grid))


def _replica_id(site: Site, partitions: int) -> Any:
    return _of_device(site, "stablehlo.divide", partitions)


def _partition_id(site: Site, partitions: int) -> Any:
    return _of_device(site, "stablehlo.remainder", partitions)


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


def _groups_of(op: Operation, attribute: str, everyone: int) -> Groups:
    """Return what an attribute says, or one group of all if it says nothing."""
    groups = [[int(each) for each in row if each >= 0] for row in np.array(op.attributes[attribute])]
    return groups or [list(range(everyone))]


def _channel(op: Operation) -> int:
    match = _CHANNEL.search(str(op.attributes["channel_handle"])) if "channel_handle" in op.attributes else None
    return int(match[1]) if match else 0


def _reducing(op: Operation, grid: Grid) -> Groups:
    if _channel(op) <= 0:
        return grid.across_replicas(_groups_of(op, "replica_groups", grid.replicas))
    if "use_global_device_ids" in op.attributes:
        return _groups_of(op, "replica_groups", grid.devices)
    return grid.across_both(_groups_of(op, "replica_groups", grid.replicas))


def _exchanging(attribute: str) -> Callable[[Operation, Grid], Groups]:
    def devices(op: Operation, grid: Grid) -> Groups:
        if _channel(op) <= 0:
            return grid.across_replicas(_groups_of(op, attribute, grid.replicas))
        return grid.across_partitions(_groups_of(op, attribute, grid.partitions))

    return devices


_IDS: Final[Mapping[str, Callable[[Site, int], Any]]] = {
    "stablehlo.partition_id": _partition_id,
    "stablehlo.replica_id": _replica_id,
}
#: For each collective the attribute that holds its groups, and how it means them.
_GROUPS: Final[Mapping[str, tuple[str, Callable[[Operation, Grid], Groups]]]] = {
    "stablehlo.all_gather": ("replica_groups", _reducing),
    "stablehlo.all_reduce": ("replica_groups", _reducing),
    "stablehlo.all_to_all": ("replica_groups", _exchanging("replica_groups")),
    "stablehlo.collective_permute": ("source_target_pairs", _exchanging("source_target_pairs")),
    "stablehlo.reduce_scatter": ("replica_groups", _reducing),
}
