"""Groups of devices told by the axes of a mesh, and values cut up over such groups.

The bindings have no classes for these attributes, so they are read as MLIR prints them. Source: StableHLO
specification, section "Replica groups" (``docs/spec.md`` in openxla/stablehlo); sub-axes as in Shardy
(``shardy/dialect/sdy/ir/attrs.td`` in openxla/shardy).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from vhlo_tools.bindings import ModuleOp

__all__ = ["groups_along", "mesh_groups", "mesh_name", "meshes_of", "sizes_along"]

_NAME: Final = re.compile(r"mesh = @(\"[^\"]*\"|[\w.$-]+)")
#: Axes of a mesh: in StableHLO a name and a size, in Shardy `"x"=2`.
_AXIS: Final = re.compile(r'name = "([^"]*)", size = (\d+)|"([^"]*)"=(\d+)')
_DEVICES: Final = re.compile(r"device_ids\s*=\s*(?:dense<|array<i64: )?\[?([-\d, ]*)")
_REFERENCE: Final = re.compile(r'axis_ref<name = "([^"]*)"(?:, sub_axis_info = \((\d+)\)(\d+))?>')


def meshes_of(module: ModuleOp) -> dict[str, str]:
    """Return the meshes of a program as MLIR prints them, by name."""
    ops = [each.operation for each in module.operation.regions[0].blocks[0].operations]
    return {
        str(op.attributes["sym_name"].value): str(op.attributes["mesh"])
        for op in ops
        if str(op.name) in ("sdy.mesh", "stablehlo.mesh")
    }


def mesh_name(groups: str) -> str | None:
    """Return the name of the mesh that groups refer to; ``None`` if they hold the mesh itself.

    Args:
        groups: A ``#stablehlo.replica_group_mesh_axes<...>``.
    """
    match = _NAME.search(groups)
    return match[1].strip('"') if match else None


def mesh_groups(groups: str, mesh: str) -> tuple[tuple[int, ...], ...]:
    """Return the ids of the devices of each group.

    Args:
        groups: A ``#stablehlo.replica_group_mesh_axes<...>``.
        mesh: The mesh, which is an attribute of StableHLO or of Shardy.
    """
    return groups_along(mesh, _REFERENCE.findall(groups))


def groups_along(mesh: str, along: Sequence[tuple[str, str, str]]) -> tuple[tuple[int, ...], ...]:
    """Return the ids of the devices that differ only in where they are along some axes, group by group.

    Args:
        mesh: The mesh, which is an attribute of StableHLO or of Shardy.
        along: The axes, the first of which changes least often within a group: the name of each, and of a part of one
            the product of the sizes of the parts before it and its own size, or else two empty strings.
    """
    axes = _axes(mesh)
    wanted = [(name, int(before or 1), int(size or axes[name])) for name, before, size in along]
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
    ids = [int(each) for each in told[1].split(",")] if told else range(math.prod(axes.values()))
    devices = np.reshape(ids, [size for _, _, size in parts]).transpose([*others, *grouped])
    count = math.prod(parts[number][2] for number in grouped)
    return tuple(tuple(map(int, row)) for row in devices.reshape(-1, count))


def sizes_along(mesh: str, along: Sequence[tuple[str, str, str]]) -> list[int]:
    """Return how many devices there are along each of some axes, which are told as for :func:`groups_along`."""
    axes = _axes(mesh)
    return [int(size) if size else axes[name] for name, _, size in along]


def _axes(mesh: str) -> dict[str, int]:
    return {name or shardy: int(size or size_) for name, size, shardy, size_ in _AXIS.findall(mesh)}


def _split(whole: int, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sub-axes of an axis, each with the product of the sizes of those before it, and its own size."""
    cuts = sorted({1, whole, *(before for before, _ in wanted), *(before * size for before, size in wanted)})
    return [(start, end // start) for start, end in pairwise(cuts)]
