"""Devices of a run: the grid of replicas and partitions, and the parts of values on them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from vhlo_tools.bindings import Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.op_traits import OP_TRAITS, ops_where
from vhlo_tools.program import channel_of, groups_along, ids_of, sizes_along
from vhlo_tools.records import dataclass

# The devices of a run, and the groups in which they exchange values; used by both engines
#
# Source: StableHLO specification, section "Parallel execution", and the semantics of each collective (``docs/spec.md``
# in openxla/stablehlo).

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
        replicas, partitions = range(self.replicas), range(self.partitions)
        match strategy:
            case "cross_replica":
                return tuple(tuple(self.device(each, at) for each in group) for group in ids for at in partitions)
            case "cross_partition":
                return tuple(tuple(self.device(at, each) for each in group) for group in ids for at in replicas)
            case "cross_replica_and_partition":
                return tuple(tuple(self.device(each, at) for at in partitions for each in group) for group in ids)
        return tuple(map(tuple, ids))

    def __str__(self) -> str:
        counts = (self.replicas, "replica"), (self.partitions, "partition")
        return " of ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in counts)


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
    try:
        ids = ids_of(op, attribute, mesh) if attribute in op.attributes else ()
    except (LookupError, ValueError) as wrong:
        raise EngineError(f"{place}: {wrong}") from None
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


# Split values into parts of equal size on devices, and join them
#
# Sources: for shardings of Shardy ``docs/sharding_representation.md`` and ``shardy/dialect/sdy/ir/attrs.td`` in
# openxla/shardy; for those of GSPMD ``xla/hlo/ir/hlo_sharding.h`` and ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla.

_VALUE: Final = re.compile(
    r'<(?:@(?P<name>"[^"]*"|[\w.$-]+)|(?P<mesh>mesh<[^>]*>)), \[(?P<dimensions>(?:\{[^}]*\}(?:p\d+)?(?:, )?)*)\]'
)
_DIMENSION: Final = re.compile(r"\{([^{}]*)\}")
_AXIS: Final = re.compile(r'"([^"]*)"(?::\((\d+)\)(\d+))?')
#: `devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate`, or with the devices listed.
_DEVICES: Final = re.compile(
    r"devices=\[(?P<tiles>[\d,]+)\](?:<=\[(?P<sizes>[\d,]+)\](?:T\((?P<order>[\d,]+)\))?|(?P<ids>[\d,]+))"
    r"(?: (?P<replicated>last_tile_dim_replicate)| last_tile_dims=\{(?P<last>[\w, ]+)\})?"
)


@dataclass(frozen=True, slots=True)
class Tiling:
    counts: tuple[int, ...]  # number of parts along each dimension
    groups: Groups  # each has all parts: the position in a group is the number of the part, the last dimension fastest

    def part(self, whole: np.ndarray[Any, Any], device: int) -> np.ndarray[Any, Any] | None:
        """``None`` if the device has no part, or parts would differ in size."""
        place = next((group.index(device) for group in self.groups if device in group), None)
        if place is None or len(self.counts) != whole.ndim:
            return None
        if any(size % count for size, count in zip(whole.shape, self.counts, strict=True)):
            return None
        sizes = [size // count for size, count in zip(whole.shape, self.counts, strict=True)]
        at = np.unravel_index(place, self.counts) if self.counts else ()
        return whole[tuple(slice(i * size, (i + 1) * size) for i, size in zip(at, sizes, strict=True))]

    def joined(self, parts: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        sizes = parts[0].shape
        rank = len(sizes)
        tiled = np.stack(parts).reshape((*self.counts, *sizes))
        order = [axis for dimension in range(rank) for axis in (dimension, rank + dimension)]
        shape = [count * size for count, size in zip(self.counts, sizes, strict=True)]
        return np.ascontiguousarray(tiled.transpose(order)).reshape(shape)


def shardy_tilings(shardings: str, manual: Collection[str], mesh: Callable[[str], str | None]) -> list[Tiling] | None:
    """Splits along axes that are not manual are ignored; ``None`` if a mesh does not exist, or lacks axes."""
    tilings = []
    for value in _VALUE.finditer(shardings):
        told = value["mesh"] or mesh(value["name"].strip('"'))
        if told is None:
            return None
        dimensions = [
            [axis for axis in _AXIS.findall(each) if axis[0] in manual]
            for each in _DIMENSION.findall(value["dimensions"])
        ]
        counts = tuple(math.prod(sizes_along(told, each)) for each in dimensions)
        try:
            groups = groups_along(told, [axis for each in dimensions for axis in each])
        except ValueError:
            return None
        tilings.append(Tiling(counts, groups))
    return tilings


def gspmd_tiling(sharding: str, rank: int) -> Tiling | None:
    """``None`` if the sharding splits nothing, or not all devices in the same way."""
    match = _DEVICES.search(sharding)
    if match is None:
        return None
    tiles = _numbers(match["tiles"])
    # Along these trailing dimensions devices have the same part, or an enclosing computation distinguishes them.
    last = match["last"].split(",") if match["last"] else ["replicated"] if match["replicated"] else []
    if len(tiles) != rank + len(last):
        return None
    if match["ids"]:
        ids = np.array(_numbers(match["ids"]))
    else:
        # In the order of a transposed array of all devices.
        shape, order = _numbers(match["sizes"]), _numbers(match["order"]) if match["order"] else None
        ids = np.arange(math.prod(shape)).reshape(shape).transpose(order).reshape(-1)
    if ids.size != math.prod(tiles):
        return None
    groups = ids.reshape(math.prod(tiles[:rank]), -1).T
    return Tiling(tuple(tiles[:rank]), tuple(tuple(map(int, group)) for group in groups))


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]
