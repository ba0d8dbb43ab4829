"""Versions of StableHLO, the releases that have them, and what upstream promises and releases confirmed."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.findings import Level
from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import COUNTED, NUMBERED, check_entry, load_entries
from vhlo_tools.spec.features import known_feature
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.spec.data import Kind
    from vhlo_tools.spec.features import Effect

# Minor versions of StableHLO, from ``dialect_specs/versions.toml``


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


# Released packages and the StableHLO version in each of them, from ``dialect_specs/releases.toml``


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
        loses: What its MLIR loses where entries nest deep: ``types``, or ``properties`` too; ``None`` if nothing.
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
    loses: str | None = None

    def __str__(self) -> str:
        return f"{self.package}=={self.release}"


_VERSIONS = ("stablehlo", "minimum", "week_4", "week_12")
_KINDS: dict[str, Kind] = dict.fromkeys(("package", "release", "python", *_VERSIONS), str)
_KINDS |= {"date": date, "probed": bool, "loses": frozenset({"types", "properties"})}


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


# Upstream's promises of compatibility for files, from ``dialect_specs/promises.toml``

WindowName = Literal["backward", "forward", "jax-export"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of compatibility: of new readers for old files, of new writers for old consumers, or of jax.export."""

    window: WindowName  # ``backward``, ``forward`` or ``jax-export``
    months: int  # how far apart the writing and the reading release may have been made
    source: str  # the document, with its repository and revision
    since: Version | None = None  # the first version of StableHLO that it covers; None if all


@cache
def known_promises() -> tuple[Promise, ...]:
    return load_entries("promises.toml", "promise", _to_promise)


def promised(window: WindowName, version: Version) -> Promise | None:
    """Return the promise for files of ``version``; ``None`` if there was none yet."""
    held = [each for each in known_promises() if each.window == window]
    return next((each for each in reversed(held) if each.since is None or each.since <= version), None)


def _to_promise(entry: dict[str, Any]) -> Promise:
    check_entry(entry, window=frozenset(get_args(WindowName)), months=NUMBERED, source=str, since=str)
    since = entry.get("since")
    return Promise(entry["window"], entry["months"], entry["source"], since and Version(since))


# Releases that read and ran expanded programs, from ``dialect_specs/vhlo/expansions_confirmed.toml``


@dataclass(frozen=True, slots=True)
class ExpansionConfirmation:
    """An expanded program that a release of jaxlib older than the feature read."""

    feature: str
    effect: Effect
    release: str
    written: Version  # the version of StableHLO that the program was written for
    not_run: str | None = None  # why it was not run; None if it ran with the right results


_CONFIRMATION_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("feature", "release", "written", "not_run"), str),
    "effect": frozenset({"exact", "relaxed"}),
}


@cache
def known_confirmations() -> tuple[ExpansionConfirmation, ...]:
    return load_entries("vhlo/expansions_confirmed.toml", "confirmation", _to_confirmation)


def _to_confirmation(entry: dict[str, Any]) -> ExpansionConfirmation:
    check_entry(entry, **_CONFIRMATION_KINDS)
    if known_feature(entry["feature"]).expansion(entry["effect"]) is None:
        raise ValueError(f"{entry['feature']} has no {entry['effect']} expansion")
    if not any(each.package == "jaxlib" and each.release == entry["release"] for each in known_releases()):
        raise ValueError(f"release is {entry['release']!r}: expected a release of jaxlib in releases.toml")
    return ExpansionConfirmation(**{**entry, "written": Version(entry["written"])})


# Parts of jax.export files that each release of jax writes and reads, from ``dialect_specs/jax_export/``


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
    return load_entries("jax_export/releases.toml", "release", _to_jax_export_release, specs)


@cache
def known_jax_export_parts(specs: Traversable | None = None) -> tuple[JaxExportPart, ...]:
    return load_entries("jax_export/parts.toml", "part", _to_part, specs)


def _to_jax_export_release(entry: dict[str, Any]) -> JaxRelease:
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


# Explanations of findings that concern no feature of a VHLO version, from ``dialect_specs/findings.toml``


@dataclass(frozen=True, slots=True)
class Explanation:
    id: str  # a final ``*`` matches all ids with this prefix
    level: str  # the highest level of such a finding
    text: str


@cache
def known_explanations() -> tuple[Explanation, ...]:
    return tuple(sorted(load_entries("findings.toml", "finding", _to_explanation), key=lambda each: each.id))


def explanation_of(finding: str) -> Explanation | None:
    for each in known_explanations():
        if finding == each.id or (each.id.endswith("*") and finding.startswith(each.id[:-1])):
            return each
    return None


def _to_explanation(entry: dict[str, Any]) -> Explanation:
    check_entry(entry, id=str, level=frozenset(get_args(Level)), text=str)
    return Explanation(**entry)
