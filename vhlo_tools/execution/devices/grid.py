"""The devices of a run, and the groups in which they exchange values; used by both engines.

Source: StableHLO specification, section "Parallel execution", and the semantics of each collective (``docs/spec.md`` in
openxla/stablehlo).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from vhlo_tools.bindings import Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.op_traits import OP_TRAITS, ops_where
from vhlo_tools.program import channel_of, ids_of
from vhlo_tools.records import dataclass

Strategy = Literal["cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_ids"]
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Devices are numbered by replica, and within a replica by partition."""

    replicas: int = 1
    partitions: int = 1

    @property
    def size(self) -> int:
        return self.replicas * self.partitions

    def device(self, replica: int, partition: int) -> int:
        return replica * self.partitions + partition

    def place(self, device: int) -> tuple[int, int]:
        return divmod(device, self.partitions)

    def extent(self, strategy: Strategy) -> int:
        """Number of the ids from which groups are formed."""
        return {"cross_partition": self.partitions, "flattened_ids": self.size}.get(strategy, self.replicas)

    def groups(self, strategy: Strategy, ids: Sequence[Sequence[int]]) -> Groups:
        """``ids`` are replicas, partitions or devices, depending on the strategy."""
        return tuple(group for each in ids for group in _STRATEGIES[strategy](self, each))

    def __str__(self) -> str:
        return f"{_counted(self.replicas, 'replica')} of {_counted(self.partitions, 'partition')}"


@dataclass(frozen=True, slots=True)
class Grouping:
    place: str
    strategy: Strategy
    ids: Groups  # groups, or pairs of a source and a target
    is_pairs: bool

    def groups(self, grid: Grid) -> Groups:
        """Without ids all devices form one group; an id out of range, or twice, is an :class:`EngineError`."""
        extent = grid.extent(self.strategy)
        for column in zip(*self.ids, strict=True) if self.is_pairs else [sum(self.ids, ())]:
            for each in column:
                if not 0 <= each < extent or column.count(each) > 1:
                    raise EngineError(
                        f"{self.place}: id {each} ({self.strategy}) is out of range or occurs twice on {grid}; run it "
                        f"with the number of replicas and partitions that it was compiled for{self._advice(grid)}"
                    )
        if not self.ids and not self.is_pairs:
            return self.all(grid)
        return grid.groups(self.strategy, self.ids)

    def _advice(self, grid: Grid) -> str:
        if grid.size > 1:
            return ""
        needed = max((each for group in self.ids for each in group), default=0) + 1
        axis = "replicas" if self.strategy == "cross_replica" else "partitions"
        return f": use run_parallel, with {axis}={needed}"

    def all(self, grid: Grid) -> Groups:
        """Groups of all devices that can exchange values by the strategy."""
        return grid.groups(self.strategy, [range(grid.extent(self.strategy))])


def grouping_of(op: Operation, place: str, mesh: Callable[[str], str | None]) -> Grouping:
    """``mesh`` returns a mesh by its name, as MLIR prints it."""
    attribute = GROUPS[str(op.name)]
    ids = _ids(op, attribute, place, mesh) if attribute in op.attributes else ()
    return Grouping(place, _strategy(op), ids, attribute == "source_target_pairs")


#: The attribute that specifies the groups of each collective op.
GROUPS: Final[Mapping[str, str]] = {name: traits.groups for name, traits in OP_TRAITS.items() if traits.groups}

#: Ops among replicas or among partitions; the other ops are among all devices if they have a channel.
_OF_ONE_AXIS: Final = ops_where(lambda traits: traits.one_axis)


def _strategy(op: Operation) -> Strategy:
    is_channel = channel_of(op) > 0
    if str(op.name) in _OF_ONE_AXIS:
        return "cross_partition" if is_channel else "cross_replica"
    if "use_global_device_ids" in op.attributes:
        return "flattened_ids"
    return "cross_replica_and_partition" if is_channel else "cross_replica"


def _ids(op: Operation, name: str, place: str, mesh: Callable[[str], str | None]) -> Groups:
    try:
        return ids_of(op, name, mesh)
    except LookupError as missing:
        raise EngineError(f"{place}: {missing}") from None


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
