"""Parts of jax.export files that each release of jax writes and reads, from ``dialect_specs/jax_export/``."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.dialect.data import Kind


@dataclass(frozen=True, slots=True)
class JaxRelease:
    """A release of jax.

    Attributes:
        release: Its version.
        date: Its release date.
        jaxlib: The newest release of jaxlib that it accepts, whose StableHLO it uses.
        serialization_version: The version of the format that it records in its files.
        calling_convention: The version of the calling convention that it writes by default.
        always: Parts that all its files have, or may have because of what they describe, among those that tell
            releases apart (see :class:`JaxExportPart`).
    """

    release: str
    date: date
    jaxlib: str
    serialization_version: int
    calling_convention: int
    always: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"jax=={self.release}"


@dataclass(frozen=True, slots=True)
class JaxExportPart:
    """A part of jax.export files that not every release reads."""

    id: str
    title: str
    step: Literal["load", "call"]  # what fails in a release that does not read it
    value: str = ""  # a type or a version, if releases differ in the values that they read
    since: str | None = None  # the first release that reads it; None if all known ones do
    until: str | None = None  # the last release that reads it; None if no later one refuses it


_RELEASE: dict[str, Kind] = {
    **dict.fromkeys(("release", "jaxlib"), str),
    **dict.fromkeys(("serialization_version", "calling_convention"), int),
    "date": date,
    "always": [str],
}
_PART: dict[str, Kind] = {
    **dict.fromkeys(("id", "value", "title", "since", "until"), str),
    "step": frozenset({"load", "call"}),
}


@cache
def known_jax_releases(specs: Traversable | None = None) -> tuple[JaxRelease, ...]:
    return load_entries("jax_export/releases.toml", "release", _to_release, specs)


@cache
def known_jax_export_parts(specs: Traversable | None = None) -> tuple[JaxExportPart, ...]:
    return load_entries("jax_export/parts.toml", "part", _to_part, specs)


def _to_release(entry: dict[str, Any]) -> JaxRelease:
    check_entry(entry, **_RELEASE)
    return JaxRelease(**{"jaxlib": entry["release"], **entry, "always": tuple(entry.get("always", ()))})


def _to_part(entry: dict[str, Any]) -> JaxExportPart:
    check_entry(entry, **_PART)
    if "since" not in entry and "until" not in entry:
        raise ValueError("expected since or until")
    known = {release.release for release in known_jax_releases()}
    for key in ("since", "until"):
        if key in entry and entry[key] not in known:
            raise ValueError(f"{key} is {entry[key]!r}: expected a release of releases.toml")
    return JaxExportPart(**entry)
