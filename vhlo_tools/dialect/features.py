"""What versions introduced, by name: the features, from ``dialect_specs/vhlo/features.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.findings import FindingKind
from vhlo_tools.version import Version

__all__ = ["Feature", "known_feature", "known_features", "load_features"]


@dataclass(frozen=True, slots=True)
class Feature:
    """The unit of compatibility.

    Attributes:
        id: A stable name.
        title: What it is, in a few words.
        kind: What sort of thing it is.
        introduced: The version that brought it.
        remedy: What to do when a consumer is older.
        ops: The VHLO ops, without their version suffix, on which it occurs; empty if it is not bound to ops.
        expansion: The pass of the library that rewrites it into what is older, if there is one.
        names: The VHLO types, attributes and enums, with their version suffix, that it consists of.
    """

    id: str
    title: str
    kind: FindingKind
    introduced: Version
    remedy: str
    ops: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    expansion: str | None = None


def load_features(specs: Traversable | None = None) -> tuple[Feature, ...]:
    """Return the features of the folder ``specs``, by default of ours."""
    return load_entries("vhlo/features.toml", "feature", _to_feature, specs)


@cache
def known_features() -> tuple[Feature, ...]:
    """Return every feature, oldest first."""
    return load_features()


@cache
def known_feature(identifier: str) -> Feature:
    """Return the feature called ``identifier``, which must be there."""
    return next(feature for feature in known_features() if feature.id == identifier)


def _to_feature(entry: dict[str, Any]) -> Feature:
    check_entry(entry, id=str, title=str, kind=str, introduced=str, remedy=str, ops=[str], names=[str], expansion=str)
    return Feature(
        **{
            **entry,
            "introduced": Version(entry["introduced"]),
            "ops": tuple(entry.get("ops", ())),
            "names": tuple(entry.get("names", ())),
        }
    )
