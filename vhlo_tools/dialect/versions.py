"""Minor versions of StableHLO, from ``dialect_specs/versions.toml``."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from vhlo_tools.dialect.data import COUNTED, check_entry, load_entries
from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class VersionEntry:
    version: Version  # with patch 0
    date: date
    dated_by: str  # upstream's ``tag``, its ``commit``, or the first ``release`` with the version
    bytecode: int  # the version of MLIR bytecode in which its artifacts are written, 0 to 6
    brought: str  # in a sentence
    reads: int | None = None  # the newest bytecode version that its consumers read, where it differs


def load_versions(specs: Traversable | None = None) -> tuple[VersionEntry, ...]:
    return load_entries("versions.toml", "version", _to_entry, specs)


@cache
def known_versions() -> tuple[VersionEntry, ...]:
    return load_versions()


def minimum_version() -> Version:
    """The oldest version with compatibility guarantees."""
    return known_versions()[0].version


def newest_version() -> Version:
    """The installed library may be older or newer."""
    return known_versions()[-1].version


def is_newer_than_data(version: Version) -> bool:
    """The data end before such a version, so that only the library can say what is in it."""
    return version.minor_release > newest_version()


def bytecode_version_of(version: Version) -> int:
    """A version newer than the data is written as the newest version in the data."""
    for entry in reversed(known_versions()):
        if entry.version <= version:
            return entry.bytecode
    raise UnknownTargetError(f"StableHLO {version} is older than {minimum_version()}, the first that can be written")


def _to_entry(entry: dict[str, Any]) -> VersionEntry:
    dated_by = frozenset({"tag", "commit", "release"})
    check_entry(entry, version=str, date=date, dated_by=dated_by, bytecode=COUNTED, brought=str, reads=COUNTED)
    return VersionEntry(**{**entry, "version": Version(entry["version"])})
