"""Released packages and the StableHLO version in each of them, from ``dialect_specs/releases.toml``."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.dialect.data import Kind


@dataclass(frozen=True, slots=True)
class Release:
    """A released package that reads or writes portable artifacts.

    Attributes:
        package: Its name on the package index.
        release: Its version there.
        date: Its release date.
        stablehlo: The newest StableHLO version that it reads.
        minimum: The oldest StableHLO version that it reads.
        python: The Python versions that it supports, as a version specifier.
        week_4: The version that it returns for ``WEEK_4``, if it has such a function.
        week_12: The version that it returns for ``WEEK_12``, if it has such a function.
        probed: Whether ``stablehlo`` was determined by probing, because the release does not report it.
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
_KINDS: dict[str, Kind] = dict.fromkeys(("package", "release", "python", *_VERSIONS), str)
_KINDS |= {"date": date, "probed": bool}


def load_releases(specs: Traversable | None = None) -> tuple[Release, ...]:
    return load_entries("releases.toml", "release", _to_release, specs)


@cache
def known_releases() -> tuple[Release, ...]:
    return load_releases()


def first_release(package: str, version: Version) -> Release | None:
    """Return the first release of ``package`` that reads programs of ``version``; ``None`` if none is known."""
    have = (each for each in known_releases() if each.package == package and each.stablehlo >= version)
    # Not by date: a release of an older series may come after one of a newer.
    return min(have, key=lambda each: tuple(map(int, each.release.split("."))), default=None)


def _to_release(entry: dict[str, Any]) -> Release:
    check_entry(entry, **_KINDS)
    if ("week_4" in entry) != ("week_12" in entry):
        raise ValueError("expected week_4 and week_12, or neither")
    return Release(**(entry | {key: Version(entry[key]) for key in _VERSIONS if key in entry}))
