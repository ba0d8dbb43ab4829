"""Compatibility windows: until when a file is promised to be read, and which releases read it today.

StableHLO promises five years backward and two years forward between the days on which two of its versions were built
(``docs/compatibility.md`` in openxla/stablehlo); jax.export six months backward (``docs/export/export.md`` in
jax-ml/jax). A file tells the version it was written for, and not the day of the library: windows count from the first
day of that version, and so end rather too early than too late.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final, Literal, get_args

from vhlo_tools.dialect import Release, known_releases, known_versions, newest_version
from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.version import Version

__all__ = ["WINDOWS", "Reader", "WindowName", "ends_of", "horizon_end", "readers_since", "written_on"]

WindowName = Literal["backward", "forward", "jax-export"]
WINDOWS: Final[tuple[WindowName, ...]] = get_args(WindowName)

_MONTHS: Final[dict[WindowName, int]] = {"backward": 5 * 12, "forward": 2 * 12, "jax-export": 6}


@dataclass(frozen=True, slots=True)
class Reader:
    """The releases of a package that read a file.

    Attributes:
        package: The package.
        oldest: The first release that does.
        newest: The last.
    """

    package: str
    oldest: str
    newest: str

    def __str__(self) -> str:
        return f"{self.package} {self.oldest}" + (f" to {self.newest}" if self.newest != self.oldest else "")


def horizon_end(horizon: str, today: date) -> date:
    """Return the last day of a horizon: ``90d``, ``4w``, ``6m`` or ``2y`` from ``today``.

    Raises:
        UnknownTargetError: If it is none.
    """
    match = re.fullmatch(r"([0-9]+)([dwmy])", horizon, re.ASCII)
    if match is None:
        raise UnknownTargetError(f"{horizon!r} is no horizon: expected a number of days, weeks, months or years (90d)")
    number, unit = int(match[1]), match[2]
    try:
        if unit in "dw":
            return today + timedelta(days=number * {"d": 1, "w": 7}[unit])
        return _months_later(today, number * {"m": 1, "y": 12}[unit])
    except (OverflowError, ValueError) as error:
        raise UnknownTargetError(f"the horizon {horizon} reaches behind the end of the calendar") from error


def written_on(version: Version, jax_version: str | None) -> date | None:
    """Return the first day on which a file can have been written; ``None`` if its version is not known.

    Args:
        version: The StableHLO version that it was written for.
        jax_version: The release of jax that wrote it, if it says so.
    """
    for release in known_releases():
        # Releases of jax and jaxlib of one number come together.
        if jax_version is not None and release.package == "jaxlib" and release.release == jax_version:
            return release.date
    return next((each.date for each in known_versions() if each.version == version.minor_release), None)


def ends_of(version: Version, *, jax_version: str | None, is_jax_export: bool) -> dict[WindowName, date]:
    """Return the last days of the windows of a file; nothing of a version that is not known.

    ``backward``: releases made until then are promised to read it. ``forward``: releases made until then are promised
    to write what the readers of its version read. ``jax-export``: of a file of jax.export, releases of jax made until
    then are promised to call it.

    Args:
        version: The StableHLO version that it was written for.
        jax_version: The release of jax that wrote it, if it says so.
        is_jax_export: Whether it is a file of jax.export.
    """
    came = written_on(version, None)
    if came is None:
        return {}
    ends: dict[WindowName, date] = {
        "backward": _months_later(came, _MONTHS["backward"]),
        "forward": _months_later(came, _MONTHS["forward"]),
    }
    if is_jax_export:
        ends["jax-export"] = _months_later(written_on(version, jax_version) or came, _MONTHS["jax-export"])
    return ends


def readers_since(versions: Iterable[Version], today: date) -> tuple[Reader, ...]:
    """Return which releases there were by ``today`` that hold one of some versions.

    Args:
        versions: Minor versions.
        today: The day.
    """
    return _readers(frozenset(versions), today)


@cache
def _readers(versions: frozenset[Version], today: date) -> tuple[Reader, ...]:
    found: dict[str, list[Release]] = {}
    for release in known_releases():
        # One that is newer than the data is one of the newest version in it.
        if release.date <= today and min(release.stablehlo.minor_release, newest_version()) in versions:
            found.setdefault(release.package, []).append(release)
    return tuple(Reader(package, each[0].release, each[-1].release) for package, each in found.items())


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
