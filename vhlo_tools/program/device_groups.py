"""Groups of devices of a collective, its channel, and the number of devices along each axis of a mesh.

The bindings have no classes for meshes and channels, so they are read as MLIR prints them. Source: StableHLO
specification, section "Replica groups" (``docs/spec.md`` in openxla/stablehlo); sub-axes as in Shardy
(``shardy/dialect/sdy/ir/attrs.td`` in openxla/shardy).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from vhlo_tools.bindings import ModuleOp, Operation

_CHANNEL: Final = re.compile(r"handle = (\d+)")
_NAME: Final = re.compile(r"mesh = @(\"[^\"]*\"|[\w.$-]+)")
#: Axes of a mesh: in StableHLO a name and a size, in Shardy `"x"=2`.
_AXIS: Final = re.compile(r'name = "([^"]*)", size = (\d+)|"([^"]*)"=(\d+)')
_DEVICES: Final = re.compile(r"device_ids\s*=\s*(?:dense<|array<i64: )?\[?([-\d, ]*)")
#: More devices than any system has.
_MOST: Final = 1 << 20
_REFERENCE: Final = re.compile(r'axis_ref<name = "([^"]*)"(?:, sub_axis_info = \((\d+)\)(\d+))?>')


def channel_of(op: Operation) -> int:
    """Zero if the op has none."""
    # The bindings have a class for this attribute only in modules that are slow to import.
    match = _CHANNEL.search(str(op.attributes["channel_handle"])) if "channel_handle" in op.attributes else None
    return int(match[1]) if match else 0


def ids_of(op: Operation, name: str, mesh: Callable[[str], str | None]) -> tuple[tuple[int, ...], ...]:
    """:class:`LookupError` if the groups refer to a mesh that does not exist."""
    attribute = op.attributes[name]
    if (text := str(attribute)).startswith("dense<"):
        # Groups of different sizes are padded with -1.
        return tuple(tuple(int(each) for each in row if each >= 0) for row in np.array(attribute) if len(row))
    # Without a symbol it contains the mesh itself.
    symbol = match[1].strip('"') if (match := _NAME.search(text)) else None
    told = text if symbol is None else mesh(symbol)
    if told is None:
        raise LookupError(f"its groups refer to mesh @{symbol}, which does not exist")
    return groups_along(told, _REFERENCE.findall(text))


def meshes_of(module: ModuleOp) -> dict[str, str]:
    """Meshes as MLIR prints them, by name."""
    ops = [each.operation for each in module.operation.regions[0].blocks[0].operations]
    return {
        str(op.attributes["sym_name"].value): str(op.attributes["mesh"])
        for op in ops
        if str(op.name) in ("sdy.mesh", "stablehlo.mesh")
    }


def groups_along(mesh: str, along: Sequence[tuple[str, str, str]]) -> tuple[tuple[int, ...], ...]:
    """Devices of a group differ only in their position along the axes, of which the first one changes least often.

    An axis has a name, and for a sub-axis the product of the sizes of the sub-axes before it and its own size,
    otherwise two empty strings. :class:`ValueError` if the mesh has no such axes.
    """
    axes = _axes(mesh)
    if not 0 < (size_of_mesh := math.prod(axes.values())) <= _MOST:
        raise ValueError(f"its mesh has {size_of_mesh} devices, expected 1 to {_MOST}")
    wanted = [(name, int(before or 1), int(size or axes.get(name, 0))) for name, before, size in along]
    for name, before, size in wanted:
        if before * size < 1 or axes.get(name, 0) % (before * size):
            raise ValueError(f"its mesh has no axis {name!r} with a part of size {size} after one of {before}")
    parts = [
        (name, before, size)
        for name, whole in axes.items()
        for before, size in _split(whole, [(before, size) for each, before, size in wanted if each == name])
    ]
    grouped = [
        number
        for name, before, size in wanted
        for number, (each, start, _) in enumerate(parts)
        if each == name and before <= start < before * size
    ]
    others = [number for number in range(len(parts)) if number not in grouped]
    told = _DEVICES.search(mesh)
    ids = [int(each) for each in told[1].split(",")] if told else range(size_of_mesh)
    if len(ids) != size_of_mesh:
        raise ValueError(f"its mesh has {len(ids)} device ids, expected {size_of_mesh}")
    devices = np.reshape(ids, [size for _, _, size in parts]).transpose([*others, *grouped])
    count = math.prod(parts[number][2] for number in grouped)
    return tuple(tuple(map(int, row)) for row in devices.reshape(-1, count))


def sizes_along(mesh: str, along: Sequence[tuple[str, str, str]]) -> list[int]:
    """Axes are given as for :func:`groups_along`."""
    axes = _axes(mesh)
    return [int(size) if size else axes.get(name, 0) for name, _, size in along]


def mesh_size(mesh: str) -> int:
    return math.prod(_axes(mesh).values())


def _axes(mesh: str) -> dict[str, int]:
    return {name or shardy: int(size or size_) for name, size, shardy, size_ in _AXIS.findall(mesh)}


def _split(whole: int, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The product of the sizes of the sub-axes before each, and its own size."""
    cuts = sorted({1, whole, *(before for before, _ in wanted), *(before * size for before, size in wanted)})
    return [(start, end // start) for start, end in pairwise(cuts)]
