"""The devices of a run, and the groups in which they exchange values, as both engines see them.

Source: StableHLO specification, section "Parallel execution", and the semantics of each collective (``docs/spec.md`` in
openxla/stablehlo).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from vhlo_tools.bindings import Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.meshes import mesh_groups, mesh_name

__all__ = ["GROUPS", "Grid", "Grouping", "Groups", "Strategy", "channel_of", "grouping_of"]

Strategy = Literal["cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_ids"]
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The devices of a run; they are numbered by replica, and within it by partition.

    Attributes:
        replicas: How many replicas there are.
        partitions: How many partitions each has.
    """

    replicas: int = 1
    partitions: int = 1

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self.replicas * self.partitions

    def device(self, replica: int, partition: int) -> int:
        """Return the number of a device."""
        return replica * self.partitions + partition

    def place(self, device: int) -> tuple[int, int]:
        """Return the replica and the partition of a device."""
        return divmod(device, self.partitions)

    def extent(self, strategy: Strategy) -> int:
        """Return how many ids there are that groups are made of."""
        return {"cross_partition": self.partitions, "flattened_ids": self.size}.get(strategy, self.replicas)

    def groups(self, strategy: Strategy, ids: Sequence[Sequence[int]]) -> Groups:
        """Return the devices of each group of ids.

        Args:
            strategy: What ids are, and what belongs to a group beside.
            ids: The ids of each group.
        """
        return tuple(group for each in ids for group in _STRATEGIES[strategy](self, each))

    def __str__(self) -> str:
        return f"{_counted(self.replicas, 'replica')} of {_counted(self.partitions, 'partition')}"


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the devices that come to an op find each other.

    Attributes:
        place: The op and where it stands, for messages.
        strategy: What ``ids`` are.
        ids: The ids of each group, or each pair of a source and a target.
        is_pairs: Whether ``ids`` are pairs.
    """

    place: str
    strategy: Strategy
    ids: Groups
    is_pairs: bool

    def groups(self, grid: Grid) -> Groups:
        """Return the devices of each group, or each pair of devices. No groups at all are one of everybody.

        Raises:
            EngineError: If there are ids of devices that are not there, or twice.
        """
        extent = grid.extent(self.strategy)
        for column in zip(*self.ids, strict=True) if self.is_pairs else [sum(self.ids, ())]:
            for each in column:
                if not 0 <= each < extent or column.count(each) > 1:
                    raise EngineError(
                        f"{self.place}: it names {each} by {self.strategy}, which it must do once, of the devices: "
                        f"{grid}; run it with as many replicas and partitions as it was made for"
                    )
        if not self.ids and not self.is_pairs:
            return self.all(grid)
        return grid.groups(self.strategy, self.ids)

    def all(self, grid: Grid) -> Groups:
        """Return the devices in groups of all that could exchange values."""
        return grid.groups(self.strategy, [range(grid.extent(self.strategy))])


def grouping_of(op: Operation, place: str, mesh: Callable[[str], str | None]) -> Grouping:
    """Return how devices find each other at one of :data:`GROUPS`.

    Args:
        op: The op.
        place: The op and where it stands, for messages.
        mesh: Returns a mesh of the program as MLIR prints it, if there is one of that name.

    Raises:
        EngineError: If its groups are told by a mesh that is not there.
    """
    attribute = GROUPS[str(op.name)]
    ids = _ids(op, attribute, place, mesh) if attribute in op.attributes else ()
    return Grouping(place, _strategy(op), ids, attribute == "source_target_pairs")


def channel_of(op: Operation) -> int:
    """Return the number of the channel of an op; zero if it has none."""
    # The bindings have a class for it in their slow modules only.
    match = _CHANNEL.search(str(op.attributes["channel_handle"])) if "channel_handle" in op.attributes else None
    return int(match[1]) if match else 0


#: The attribute that tells groups, of each op at which devices meet.
GROUPS: Final[Mapping[str, str]] = {
    "stablehlo.all_gather": "replica_groups",
    "stablehlo.all_reduce": "replica_groups",
    "stablehlo.all_to_all": "replica_groups",
    "stablehlo.collective_broadcast": "replica_groups",
    "stablehlo.collective_permute": "source_target_pairs",
    "stablehlo.collective_reduce": "replica_groups",
    "stablehlo.recv": "source_target_pairs",
    "stablehlo.reduce_scatter": "replica_groups",
    "stablehlo.send": "source_target_pairs",
}

#: Ops among replicas or among partitions; the others are among all devices if they have a channel.
_OF_ONE_AXIS: Final = frozenset(
    f"stablehlo.{name}" for name in ("all_to_all", "collective_broadcast", "collective_permute", "recv", "send")
)
_CHANNEL: Final = re.compile(r"handle = (\d+)")


def _strategy(op: Operation) -> Strategy:
    is_channel = channel_of(op) > 0
    if str(op.name) in _OF_ONE_AXIS:
        return "cross_partition" if is_channel else "cross_replica"
    if "use_global_device_ids" in op.attributes:
        return "flattened_ids"
    return "cross_replica_and_partition" if is_channel else "cross_replica"


def _ids(op: Operation, name: str, place: str, mesh: Callable[[str], str | None]) -> Groups:
    attribute = op.attributes[name]
    if (text := str(attribute)).startswith("dense<"):
        # Groups of unlike sizes are filled up with -1.
        return tuple(tuple(int(each) for each in row if each >= 0) for row in np.array(attribute) if len(row))
    symbol = mesh_name(text)
    told = text if symbol is None else mesh(symbol)
    if told is None:
        raise EngineError(f"{place}: there is no mesh @{symbol}, by which its groups are told")
    return mesh_groups(text, told)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _cross_replica(grid: Grid, ids: Sequence[int]) -> Groups:
    return tuple(tuple(grid.device(each, partition) for each in ids) for partition in range(grid.partitions))


def _cross_partition(grid: Grid, ids: Sequence[int]) -> Groups:
    return tuple(tuple(grid.device(replica, each) for each in ids) for replica in range(grid.replicas))


def _cross_both(grid: Grid, ids: Sequence[int]) -> Groups:
    return (tuple(grid.device(each, partition) for partition in range(grid.partitions) for each in ids),)


_STRATEGIES: Final[Mapping[Strategy, Callable[[Grid, Sequence[int]], Groups]]] = {
    "cross_replica": _cross_replica,
    "cross_partition": _cross_partition,
    "cross_replica_and_partition": _cross_both,
    "flattened_ids": lambda _, ids: (tuple(ids),),
}
