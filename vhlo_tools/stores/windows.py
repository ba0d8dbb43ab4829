"""Compatibility windows: the date until which a file is guaranteed to be readable, and the releases that read it today.

StableHLO promises compatibility for a time between the build dates of two of its versions, and jax.export for a time
between two releases of jax; how long is in ``dialect_specs/promises.toml``, with the sources. A file records the
version it was written for, but not the build date of the library: windows count from the first day of that version, and
so are too short rather than too long. The window of a jax.export file is that of the file around the artifact, which
moving the artifact does not renew: it counts from the release of jax that wrote the file or, where none is recorded,
from the first that writes such files.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final, get_args

from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import WindowName, known_releases, known_versions, newest_version, promised

if TYPE_CHECKING:
    from vhlo_tools.spec import JaxRelease, Release
    from vhlo_tools.version import Version

WINDOWS: Final[tuple[WindowName, ...]] = get_args(WindowName)
#: The windows that end for a file that nobody touches: the forward window binds those who write for old consumers.
AT_REST: Final[tuple[WindowName, ...]] = ("backward", "jax-export")


@dataclass(frozen=True, slots=True)
class ReadingReleases:
    """The releases of a package that can read a file.

    Attributes:
        package: The package.
        oldest: The oldest of these releases.
        newest: The newest of these releases.
    """

    package: str
    oldest: str
    newest: str

    def __str__(self) -> str:
        return f"{self.package} {self.oldest}" + (f" to {self.newest}" if self.newest != self.oldest else "")


def horizon_end(horizon: str, today: date) -> date:
    """Return the last day of a horizon such as ``90d``, ``4w``, ``6m`` or ``2y``."""
    match = re.fullmatch(r"([0-9]+)([dwmy])", horizon, re.ASCII)
    if match is None:
        raise UnknownTargetError(
            f"{horizon!r} is not a horizon: expected a number of days, weeks, months or years (90d)"
        )
    number, unit = int(match[1]), match[2]
    try:
        if unit in "dw":
            return today + timedelta(days=number * {"d": 1, "w": 7}[unit])
        return _months_later(today, number * {"m": 1, "y": 12}[unit])
    except (OverflowError, ValueError) as error:
        raise UnknownTargetError(f"the horizon {horizon} is beyond the end of the calendar") from error


def written_on(version: Version) -> date | None:
    """Return the first day on which a file of a StableHLO version can have been written."""
    return next((each.date for each in known_versions() if each.version == version.minor_release), None)


def ends_of(version: Version, *, jax_export: date | None = None) -> dict[WindowName, date]:
    """Return the last days of the windows of a file; ``jax_export`` is the first day for a jax.export file.

    Until then, ``backward``: releases read the file; ``forward``: releases can write for readers of its version;
    ``jax-export``: releases of jax call it.
    """
    came = written_on(version)
    begins: dict[WindowName, date | None] = {"backward": came, "forward": came, "jax-export": jax_export}
    return {
        window: _months_later(begin, promise.months)
        for window, begin in begins.items()
        if begin is not None and (promise := promised(window, version)) is not None
    }


def jax_readers(releases: Sequence[JaxRelease], today: date) -> tuple[ReadingReleases, ...]:
    """Return releases until ``today`` as a range."""
    out = [each.release for each in releases if each.date <= today]
    return (ReadingReleases("jax", out[0], out[-1]),) if out else ()


@cache
def readers_since(versions: frozenset[Version], today: date) -> tuple[ReadingReleases, ...]:
    """Return the releases until ``today`` that contain one of ``versions``, which are minor."""
    found: dict[str, list[Release]] = {}
    for release in known_releases():
        # A release that is newer than the data is treated as one of the newest version in the data.
        if release.date <= today and min(release.stablehlo.minor_release, newest_version()) in versions:
            found.setdefault(release.package, []).append(release)
    # A release of an older series may come after one of a newer.
    ranges = {package: sorted(each, key=lambda one: one.stablehlo) for package, each in found.items()}
    return tuple(ReadingReleases(package, each[0].release, each[-1].release) for package, each in ranges.items())


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
