"""Released packages and the StableHLO each of them holds, from ``dialect_specs/releases.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

from vhlo_tools.dialect.data import load_entries
from vhlo_tools.version import Version

__all__ = ["Release", "known_releases", "load_releases"]


@dataclass(frozen=True, slots=True)
class Release:
    """A released package that reads or writes portable artifacts.

    Attributes:
        package: Its name on the package index.
        release: Its version there.
        date: When it was released.
        stablehlo: The newest StableHLO version it reads.
        minimum: The oldest it reads.
        python: The Python versions it supports, as a version specifier.
        week_4: Its own answer for ``WEEK_4``, if it has one.
        week_12: Its own answer for ``WEEK_12``, if it has one.
        probed: Whether ``stablehlo`` was found by trying, because the release does not tell.
    """

    package: str
    release: str
    date: date
    stablehlo: Version
    minimum: Version
    python: str
    week_4: Version | None = None
    week_12: Version | None = None
    probed: bool = False

    def __str__(self) -> str:
        return f"{self.package}=={self.release}"


_VERSIONS = ("stablehlo", "minimum", "week_4", "week_12")


def load_releases(specs: Traversable | None = None) -> tuple[Release, ...]:
    """Return the releases of the folder ``specs``, by default of ours."""
    return load_entries("releases.toml", "release", _to_release, specs)


@cache
def known_releases() -> tuple[Release, ...]:
    """Return every release, grouped by package and oldest first."""
    return load_releases()


def _to_release(entry: dict[str, Any]) -> Release:
    return Release(**(entry | {key: Version(entry[key]) for key in _VERSIONS if key in entry}))
