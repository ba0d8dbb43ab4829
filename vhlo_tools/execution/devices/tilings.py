"""Split values into parts of equal size on devices, and join them.

Sources: for shardings of Shardy ``docs/sharding_representation.md`` and ``shardy/dialect/sdy/ir/attrs.td`` in
openxla/shardy; for those of GSPMD ``xla/hlo/ir/hlo_sharding.h`` and ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.execution.devices.grid import Groups
from vhlo_tools.program import groups_along, sizes_along
from vhlo_tools.records import dataclass

_VALUE: Final = re.compile(
    r'<(?:@(?P<name>"[^"]*"|[\w.$-]+)|(?P<mesh>mesh<[^>]*>)), \[(?P<dimensions>(?:\{[^}]*\}(?:p\d+)?(?:, )?)*)\]'
)
_DIMENSION: Final = re.compile(r"\{([^}]*)\}")
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
        tiled = np.stack(parts).reshape(*self.counts, *sizes)
        order = [axis for dimension in range(rank) for axis in (dimension, rank + dimension)]
        shape = [count * size for count, size in zip(self.counts, sizes, strict=True)]
        return np.ascontiguousarray(tiled.transpose(order)).reshape(shape)


def shardy_tilings(shardings: str, manual: Collection[str], mesh: Callable[[str], str | None]) -> list[Tiling] | None:
    """Splits along axes that are not manual are ignored; ``None`` if a mesh does not exist."""
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
        tilings.append(Tiling(counts, groups_along(told, [axis for each in dimensions for axis in each])))
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
    ids = np.array(_numbers(match["ids"])) if match["ids"] else _counted_off(match["sizes"], match["order"])
    if ids.size != math.prod(tiles):
        return None
    groups = ids.reshape(math.prod(tiles[:rank]), -1).T
    return Tiling(tuple(tiles[:rank]), tuple(tuple(map(int, group)) for group in groups))


def _counted_off(sizes: str, order: str | None) -> np.ndarray[Any, Any]:
    """Devices in the order of a transposed array of them."""
    shape = _numbers(sizes)
    return np.arange(math.prod(shape)).reshape(shape).transpose(_numbers(order) if order else None).reshape(-1)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]
