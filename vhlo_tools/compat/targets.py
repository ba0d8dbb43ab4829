"""Targets: their grammar, their resolution to versions, and the expansions that a caller allows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import UnknownReleaseWarning, UnknownTargetError
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass
from vhlo_tools.spec import (
    first_release,
    is_newer_than_data,
    known_features,
    known_jax_releases,
    known_releases,
    minimum_version,
    newest_version,
)
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.spec import Effect, Expansion, Feature, Release

# Grammar of targets, and their resolution to versions
#
# A target is written as a version (``1.9.0``); ``current`` or ``minimum``; ``WEEK_4``, ``WEEK_12``, ``MAX`` or
# ``NONE``, which the installed library resolves; a window (``90d``, ``4w``, ``2y``) or a date (``2025-06-01``), which
# resolve to the newest version that a library had by then; a release (``jaxlib==0.4.31``, ``jax==0.7.2``), which
# resolves to the version that it reads, or for a release that is newer than all known ones to that of the newest, with
# a warning; a plugin of PJRT (``plugin:PATH``, ``plugin:NAME``), which says its version; or a comma list of these,
# which resolves to the oldest of them: a fleet is limited by its oldest member.


@dataclass(frozen=True, slots=True)
class Library:
    """The installed StableHLO library.

    Attributes:
        name: The distribution and its version, such as ``jaxlib 0.10.2``.
        current: The StableHLO version that it contains, the newest that it writes.
        minimum: The oldest version that it writes.
        requirements: The versions that it returns for ``NONE``, ``WEEK_4``, ``WEEK_12`` and ``MAX``.
    """

    name: str
    current: Version
    minimum: Version
    requirements: dict[str, Version]


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved target.

    Attributes:
        spelling: The target as given.
        version: The version to which it resolves.
        reason: The reason for this version, in a few words.
        exact: Whether the version itself was given. Otherwise a consumer was, which any older version serves too.
        consumers: The releases that it names, of jax too, or that were the newest of a day.
        assumed: What was assumed of releases that are not known: what each was taken for.
    """

    spelling: str
    version: Version
    reason: str
    exact: bool = False
    consumers: tuple[Release, ...] = ()
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            self.spelling
            if self.exact
            else f"{self.spelling} ({'; '.join([f'StableHLO {self.version}', *self.assumed])})"
        )

    def specified(self, library: Callable[[], Library] | None = None) -> Target:
        """Return the target if its version is in the specification, or one that a library has.

        Args:
            library: Returns the library that does what the specification does not describe; called only for versions
                that are newer than it. By default, there is none.

        Raises:
            UnknownTargetError: If it is neither.
        """
        if minimum_version() <= self.version.minor_release <= newest_version():
            return self
        known = f"StableHLO {minimum_version()} to {newest_version()} are known"
        if library is not None and is_newer_than_data(self.version):
            installed = library()
            if self.version <= installed.current:
                return self
            known += f", and {installed.name} has {installed.current}"
        raise UnknownTargetError(f"target {self} is not specified: {known}")

    def within(self, library: Library) -> Target:
        """Return the target limited to versions that ``library`` can write.

        Raises:
            UnknownTargetError: If the version is older than the library can write, or newer and given by number.
        """
        if self.version < library.minimum:
            raise UnknownTargetError(
                f"target {self} is older than {library.minimum}, the oldest that {library.name} can write"
            )
        if self.version <= library.current:
            return self
        if self.exact:
            first = first_release(library.name.partition(" ")[0], self.version)
            raise UnknownTargetError(
                f"target {self} is newer than {library.current}, the newest that {library.name} can write: a consumer "
                "of it can also read `current`"
                + (f"; the first release that can write it is {first}" if first is not None else "")
            )
        return replace(
            self, version=library.current, reason=f"{self.reason}; {library.name} cannot write a newer version"
        )


def resolve_target(spelling: str, library: Callable[[], Library], *, as_of: date | None = None) -> Target:
    """Resolve a target; ``library`` is called only for targets that the installed library alone can resolve."""
    members = [member.strip() for member in spelling.split(",")]
    targets = [_resolve_one(member, library, as_of or date.today()) for member in members]
    oldest = min(targets, key=lambda target: target.version)
    if len(targets) == 1:
        return oldest
    # A list with a consumer is served by any version that serves the consumer.
    exact = all(target.exact for target in targets)
    consumers = tuple(dict.fromkeys(consumer for target in targets for consumer in target.consumers))
    assumed = tuple(dict.fromkeys(each for target in targets for each in target.assumed))
    return Target(
        spelling, oldest.version, f"the oldest of {len(targets)}: {oldest.spelling}", exact, consumers, assumed
    )


def newest_released_by(day: date) -> Release:
    """Return the release with the newest StableHLO version as of ``day``; plugins, which are ahead, do not count."""
    known = [release for release in known_releases() if not _is_plugin(release.package)]
    released = [release for release in known if release.date <= day]
    if not released:
        first = min(known, key=lambda release: release.date)
        raise UnknownTargetError(f"no release is known by {day}: the first is {first} of {first.date}")
    newest = max(release.stablehlo for release in released)
    # Of several releases with this version, the first, which introduced it.
    return min((each for each in released if each.stablehlo == newest), key=lambda release: release.date)


def _is_plugin(package: str) -> bool:
    """Whether a package is the compiler of an accelerator, a plugin of PJRT."""
    return package == "libtpu" or package.endswith("-pjrt")


_WINDOW: Final = pattern(r"([0-9]+)([dwy])")
_DATE: Final = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: Of a plugin, a device that it compiles for may follow, which does not change what it reads.
_RELEASE: Final = pattern(r"([A-Za-z][\w.-]*)==([\w.+!-]+)(?:@[\w:]+)?", re.ASCII)
#: Begins a target that is a plugin's file, or the name of one.
PLUGIN: Final = "plugin:"
_VERSION: Final = pattern(r"[-+v]?[0-9][0-9.]*")


def _resolve_one(spelling: str, library: Callable[[], Library], today: date) -> Target:
    match spelling:
        case "current":
            installed = library()
            return Target(spelling, installed.current, f"the newest that {installed.name} writes")
        case "minimum":
            return Target(spelling, minimum_version(), "the first version with compatibility guarantees")
        case "NONE" | "WEEK_4" | "WEEK_12" | "MAX":
            installed = library()
            return Target(spelling, installed.requirements[spelling], f"the answer of {installed.name}")
    if window := _WINDOW.fullmatch(spelling):
        try:
            day = _back(today, int(window[1]), window[2])
        except (OverflowError, ValueError) as error:
            raise UnknownTargetError(
                f"the window {spelling} begins before the earliest date of the calendar"
            ) from error
        return _newest(spelling, day)
    if _DATE.fullmatch(spelling):
        try:
            day = date.fromisoformat(spelling)
        except ValueError as error:
            raise UnknownTargetError(f"{spelling} is not a valid date: {error}") from error
        return _newest(spelling, day)
    if release := _RELEASE.fullmatch(spelling):
        return _release(release)
    if spelling.startswith(PLUGIN):
        # Imported here because few targets are plugins.
        from vhlo_tools.compat.plugins import plugin_version

        return Target(spelling, plugin_version(spelling.removeprefix(PLUGIN)), "the version that this plugin reads")
    if _VERSION.fullmatch(spelling):
        return Target(spelling, Version(spelling), "as requested", exact=True)
    raise UnknownTargetError(
        f"{spelling!r} is not a target: expected a version (1.9.0), current, minimum, WEEK_4, WEEK_12, MAX, NONE, "
        "a window (90d, 4w, 2y), a date (2025-06-01), a release (jaxlib==0.4.31), a plugin (plugin:PATH) or a comma "
        "list of these"
    )


def _newest(spelling: str, day: date) -> Target:
    release = newest_released_by(day)
    reason = f"the newest released by {day}, with {release} of {release.date}"
    return Target(spelling, release.stablehlo, reason, consumers=(release,))


def _back(today: date, number: int, unit: str) -> date:
    if unit == "y":
        # The 29th of February counts back to the 28th.
        day = 28 if (today.month, today.day) == (2, 29) else today.day
        return today.replace(year=today.year - number, day=day)
    return today - timedelta(days=number * {"d": 1, "w": 7}[unit])


def _release(match: re.Match[str]) -> Target:
    # A build of a release for some machine is that release.
    package, number = match[1].lower().replace("_", "-"), match[2].partition("+")[0]
    of_package = _releases_of(package)
    if not of_package:
        packages = sorted({"jax", *(release.package for release in known_releases())})
        # Imported here because few names are misspelt.
        from difflib import get_close_matches

        near = get_close_matches(package, packages, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known packages: {', '.join(packages)}"
        raise UnknownTargetError(f"no releases of {match[1]} are known: {hint}")
    for release in of_package:
        if release.release == number:
            reason = f"the version that {release} of {release.date} reads"
            return Target(match[0], release.stablehlo, reason, consumers=(release,))
    # The nearest before it, and the nearest after it, as far as there are any.
    in_order = sorted(of_package, key=lambda release: _order(release.release))
    below = [release for release in in_order if _order(release.release) < _order(number)][-1:]
    above = [release for release in in_order if _order(release.release) >= _order(number)][:1]
    named = " and ".join(f"{each} (StableHLO {each.stablehlo})" for each in (*below, *above))
    unknown = f"{package}=={number} is not a known release: the nearest known are {named}"
    if above:
        # There is none, or it was withdrawn; those of nightly builds have no promise.
        raise UnknownTargetError(f"{unknown}; give one of these")
    # What an older consumer reads, a newer one reads too.
    (older,) = below
    assumed = f"{package}=={number} is not known, and taken for {older}"
    warnings.warn(
        f"{unknown}; taken for {older}. `python scripts/releases.py {package}=={number} --write` in a clone of this "
        f"project asks the release itself, and adds it",
        UnknownReleaseWarning,
        stacklevel=4,
    )
    reason = f"the version that {older} of {older.date} reads, the newest known release before {number}"
    return Target(match[0], older.stablehlo, reason, consumers=(older,), assumed=(assumed,))


def _releases_of(package: str) -> list[Release]:
    if package != "jax":
        return [release for release in known_releases() if release.package == package]
    # jax reads what its jaxlib does.
    libraries = {release.release: release for release in known_releases() if release.package == "jaxlib"}
    return [
        replace(libraries[each.jaxlib], package="jax", release=each.release, date=each.date)
        for each in known_jax_releases()
    ]


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", number))


# Expansions that a caller allows, by feature

#: Which exact expansions are allowed: all, none, or those of features.
Expand = bool | Iterable[str]
#: The features whose relaxed expansions are allowed; ``all`` for those of all features.
AllowRelaxed = Iterable[str]

_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class ExpansionPolicy:
    """The expansions that are allowed.

    Attributes:
        exact: The features whose exact expansions are.
        relaxed: The features whose relaxed expansions are.
        signature_change: Whether expansions may change the types of arguments and results of public functions.
    """

    exact: frozenset[str] = frozenset()
    relaxed: frozenset[str] = frozenset()
    signature_change: bool = False

    def __bool__(self) -> bool:
        return bool(self.exact or self.relaxed)

    def of(self, effect: Effect) -> frozenset[str]:
        """Return the features whose expansions of an effect are allowed."""
        return self.exact if effect == "exact" else self.relaxed

    def without(self, features: Iterable[str]) -> ExpansionPolicy:
        """Return the policy without the expansions of ``features``."""
        gone = frozenset(features)
        return ExpansionPolicy(self.exact - gone, self.relaxed - gone, self.signature_change)

    def allowed(self, target: Version) -> list[tuple[Feature, Expansion]]:
        """Return the expansions that are allowed, of features newer than ``target``, the newest features first.

        An exact expansion of a feature comes before its relaxed one, which applies to what the first has left.
        """
        newer = [feature for feature in reversed(known_features()) if feature.introduced > target.minor_release]
        return [(each, by) for each in newer for by in each.expansions if each.id in self.of(by.effect)]


#: The policy without any expansion.
NO_EXPANSIONS: Final = ExpansionPolicy()


def expansion_policy(
    expand: Expand = False, allow_relaxed: AllowRelaxed = (), allow_signature_change: bool = False
) -> ExpansionPolicy:
    """Return the allowed expansions: ``True`` or ``all`` for every feature, otherwise ids of features."""
    if not expand and not allow_relaxed:
        return NO_EXPANSIONS
    return ExpansionPolicy(
        _known("exact", (_ALL,) if expand is True else expand or ()),
        _known("relaxed", allow_relaxed),
        allow_signature_change,
    )


def _known(effect: Effect, ids: Iterable[str]) -> frozenset[str]:
    wanted = frozenset((ids,) if isinstance(ids, str) else ids)
    there = frozenset(feature.id for feature in known_features() if feature.expansion(effect))
    if unknown := sorted(wanted - there - {_ALL}):
        raise ValueError(
            f"{unknown[0]!r} has no {effect} expansion: expected {_ALL}, or some of {', '.join(sorted(there))}"
        )
    return there if _ALL in wanted else wanted


def expansion_flag(feature: Feature, expansion: Expansion) -> str:
    return "--expand" if expansion.effect == "exact" else f"--allow-relaxed {feature.id}"
