"""The devices of a run, and the groups in which they exchange values.

Source: StableHLO specification, sections "Parallel execution" and on each collective (``docs/spec.md`` in
openxla/stablehlo).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Grid", "Groups", "Strategy", "process_groups"]

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

    def __str__(self) -> str:
        return f"{_counted(self.replicas, 'replica')} of {_counted(self.partitions, 'partition')}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def process_groups(grid: Grid, strategy: Strategy, ids: Sequence[Sequence[int]]) -> Groups:
    """Return the devices of each group.

    Args:
        grid: All devices.
        strategy: What ``ids`` are, and what belongs to a group beside.
        ids: The ids of each group; none at all are one group of everything.
    """
    known = ids or [range(grid.extent(strategy))]
    return tuple(group for each in known for group in _STRATEGIES[strategy](grid, each))


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
