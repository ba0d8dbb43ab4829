"""Inherent attributes in the properties of ops, from ``dialect_specs/properties.toml`` and the ops of VHLO."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.dialect.ops import find_op_version


class PropertySlot(NamedTuple):
    name: str
    optional: bool


def property_slots(op: str) -> tuple[PropertySlot, ...] | None:
    """Return the slots of ``op``, a name with its dialect, in order; ``None`` if the op is unknown."""
    dialect, _, short = op.partition(".")
    if dialect != "vhlo":
        return _others().get(op)
    version = find_op_version(short)
    return tuple(PropertySlot(name, False) for name in version.attributes) if version else None


@cache
def _others() -> dict[str, tuple[PropertySlot, ...]]:
    return dict(load_entries("properties.toml", "op", _to_slots))


def _to_slots(entry: dict[str, Any]) -> tuple[str, tuple[PropertySlot, ...]]:
    check_entry(entry, name=str, attributes=[str])
    return entry["name"], tuple(
        PropertySlot(each.removesuffix("?"), each.endswith("?")) for each in entry["attributes"]
    )
