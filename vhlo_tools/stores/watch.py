"""Monitoring of a store: when its files leave their compatibility windows."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.artifact import Artifact, JaxContainer, first_writer
from vhlo_tools.errors import UnknownTargetError, VhloToolsError
from vhlo_tools.files import SET_ASIDE, Kind, place, read_bytes, recognise
from vhlo_tools.records import dataclass
from vhlo_tools.spec import WindowName, known_releases, known_versions, newest_version, promised
from vhlo_tools.stores.members import IN_PLACE, files_of
from vhlo_tools.stores.scheduling import work_through
from vhlo_tools.stores.tables import Column, ListOf, StructOf, Table
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.spec import JaxRelease, Release
    from vhlo_tools.stores.workers import Workers

# Compatibility windows: the date until which a file is guaranteed to be readable, and the releases that read it today
#
# StableHLO promises compatibility for a time between the build dates of two of its versions, and jax.export for a time
# between two releases of jax; how long is in ``dialect_specs/promises.toml``, with the sources. A file records the
# version it was written for, but not the build date of the library: windows count from the first day of that version,
# and so are too short rather than too long. The window of a jax.export file is that of the file around the artifact,
# which moving the artifact does not renew: it counts from the release of jax that wrote the file or, where none is
# recorded, from the first that writes such files.


__all__ = [
    "AT_REST",
    "WINDOWS",
    "ReadingReleases",
    "WindowName",
    "ends_of",
    "horizon_end",
    "jax_readers",
    "readers_since",
    "written_on",
]

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


def readers_since(versions: Iterable[Version], today: date) -> tuple[ReadingReleases, ...]:
    """Return the releases until ``today`` that contain one of ``versions``, which are minor."""
    return _readers(frozenset(versions), today)


@cache
def _readers(versions: frozenset[Version], today: date) -> tuple[ReadingReleases, ...]:
    found: dict[str, list[Release]] = {}
    for release in known_releases():
        # A release that is newer than the data is treated as one of the newest version in the data.
        if release.date <= today and min(release.stablehlo.minor_release, newest_version()) in versions:
            found.setdefault(release.package, []).append(release)
    return tuple(ReadingReleases(package, each[0].release, each[-1].release) for package, each in found.items())


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


# Monitoring of a store: when its files leave their compatibility windows, and which releases read them


_BATCH: Final = 64
_DIED: Final = "the process that read it crashed"


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file of a store, with its compatibility windows.

    Attributes:
        path: The path of the file.
        kind: The kind of the file: an artifact or a jax.export file; files of other kinds have no window.
        size: The size of the file in bytes.
        version: The StableHLO version that the file was written for; for a jax.export file the oldest one in it.
        written: The first day on which the file can have been written; for a jax.export file, by jax.
        jax_version: The release of jax that wrote the file, if it is recorded.
        calling_convention: The version of jax's calling convention, for a jax.export file.
        windows: The last day of each window that is considered.
        readable_since: The oldest StableHLO version that reads the file.
        readers: The releases that read it today; for a jax.export file, releases of jax.
        error: The reason why the file could not be read, if so.
    """

    path: str
    kind: str | None = None
    size: int = 0
    version: Version | None = None
    written: date | None = None
    jax_version: str | None = None
    calling_convention: int | None = None
    windows: tuple[tuple[WindowName, date], ...] = ()
    readable_since: Version | None = None
    readers: tuple[ReadingReleases, ...] = ()
    error: str | None = None

    def leaves(self, windows: Sequence[WindowName]) -> tuple[WindowName, date] | None:
        """Return the window of ``windows`` that the file leaves first, and its last day; ``None`` if none is known."""
        ends = [each for each in self.windows if each[0] in windows]
        return min(ends, key=lambda each: each[1], default=None)


@dataclass(frozen=True, slots=True)
class _Reading:
    today: date
    windows: tuple[WindowName, ...]

    def __call__(self, paths: Sequence[str]) -> list[StoreFile]:
        return [self._one(path) for path in paths]

    def _one(self, path: str) -> StoreFile:
        seen = StoreFile(path)
        try:
            data = read_bytes(place(path))
            kind = recognise(data, path)
            seen = replace(seen, kind=kind, size=len(data))
            if kind is Kind.JAX_EXPORT:
                container = JaxContainer(data, name=path)
                said = container.export
                seen = replace(seen, jax_version=said.jax_version, calling_convention=said.calling_convention_version)
                return self._dated(seen, container.artifacts, container)
            return self._dated(seen, [Artifact(data, name=path)]) if kind in IN_PLACE else seen
        except OSError as error:
            return replace(seen, error=error.strerror or str(error))
        except VhloToolsError as error:
            return replace(seen, error=str(error))

    def _dated(
        self, seen: StoreFile, artifacts: Sequence[Artifact], container: JaxContainer | None = None
    ) -> StoreFile:
        version = min(each.version for each in artifacts)
        written = written_on(version)
        if container is not None:
            writer = first_writer(container.export)
            # A file of a release that is not known is dated by its artifact.
            written = writer.date if writer else written
        ends = ends_of(version, jax_export=written if container else None)
        return replace(
            seen,
            version=version,
            written=written,
            windows=tuple((name, end) for name, end in ends.items() if name in self.windows),
            readable_since=max(each.requirements().readable_since for each in artifacts),
            readers=jax_readers(container.readers(), self.today)
            if container
            else readers_since(_reading(artifacts), self.today),
        )


def _reading(artifacts: Sequence[Artifact]) -> list[Version]:
    """Return the versions whose readers accept all of ``artifacts``."""
    since = max(each.requirements().readable_since for each in artifacts)
    versions = [entry.version for entry in known_versions() if entry.version >= since]
    if any(each.requirements().reader_findings(newest_version()) for each in artifacts):
        # Features that readers no longer support; otherwise every reader reads what an older one reads.
        return [version for version in versions if not any(_refuses(each, version) for each in artifacts)]
    return versions


def _refuses(artifact: Artifact, version: Version) -> bool:
    return any(each.level == "error" for each in artifact.requirements().reader_findings(version))


def watch_store(
    paths: Sequence[str], workers: Workers, *, windows: Sequence[WindowName], today: date, exclude: tuple[str, ...] = ()
) -> Iterator[StoreFile]:
    """Yield programs by the end of the first window that they leave; unreadable ones last.

    Until all files are read, results are stored on disk and not in memory.
    """
    database = sqlite3.connect("")
    try:
        database.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, path BLOB UNIQUE, leaves TEXT, file TEXT)")
        insert = "INSERT OR IGNORE INTO files (path, leaves, file) VALUES (?, ?, ?)"
        members = (each for path in paths for each in files_of(path, (*SET_ASIDE, *exclude)))
        for some, read in work_through(workers, _Reading(today, tuple(windows)), _in_batches(members)):
            for seen in read if read is not None else [StoreFile(path, error=_DIED) for path in some]:
                leaves = seen.leaves(windows)
                row = (os.fsencode(seen.path), leaves and str(leaves[1]), json.dumps(_as_json(seen)))
                database.execute(insert, row)
        order = "SELECT file FROM files ORDER BY leaves IS NULL, leaves, path"
        for (text,) in database.execute(order):
            yield _from_json(json.loads(text))
    finally:
        database.close()


def _in_batches(paths: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(paths, _BATCH)):
        yield some


def _as_json(seen: StoreFile) -> dict[str, Any]:
    values = {name: getattr(seen, name) for name in seen.__slots__}
    values["windows"] = [(name, str(end)) for name, end in seen.windows]
    values["readers"] = [(each.package, each.oldest, each.newest) for each in seen.readers]
    return {**values, **{name: values[name] and str(values[name]) for name in ("version", "written", "readable_since")}}


def _from_json(values: dict[str, Any]) -> StoreFile:
    versions = {name: values[name] and Version(values[name]) for name in ("version", "readable_since")}
    return StoreFile(
        **{
            **values,
            **versions,
            "written": values["written"] and date.fromisoformat(values["written"]),
            "windows": tuple((name, date.fromisoformat(end)) for name, end in values["windows"]),
            "readers": tuple(ReadingReleases(*each) for each in values["readers"]),
        }
    )


# Status of the files of a store on a day, as a table


StatusName = Literal["left", "leaves", "within", "none", "unreadable"]


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file of a store on a day."""

    file: StoreFile
    status: StatusName  # left a window, leaves one within the horizon, stays longer; no window, unreadable
    leaves: tuple[WindowName, date] | None  # the window that it leaves first, and its last day

    @classmethod
    def of(cls, file: StoreFile, windows: tuple[WindowName, ...], today: date, end: date) -> FileStatus:
        """``end`` is the last day of the horizon; only ``windows`` count."""
        leaves = file.leaves(windows)
        if file.error is not None:
            return cls(file, "unreadable", leaves)
        if leaves is None:
            return cls(file, "none", leaves)
        return cls(file, "left" if leaves[1] < today else "leaves" if leaves[1] <= end else "within", leaves)

    def end_of(self, window: WindowName) -> date | None:
        """Return the last day of a window; ``None`` if the file has none, or it does not count."""
        return dict(self.file.windows).get(window)


_RELEASE_COLUMNS: Final[tuple[Column[ReadingReleases], ...]] = (
    Column("package", "text", "package", lambda each: each.package),
    Column("oldest", "text", "oldest release of it", lambda each: each.oldest),
    Column("newest", "text", "newest release of it", lambda each: each.newest),
)
_RELEASES: Final = ListOf(StructOf(_RELEASE_COLUMNS))

#: What ``vhlo store status`` says of files.
STATUS_TABLE: Final[Table[FileStatus]] = Table(
    "store-status",
    (
        Column("path", "text", "path of the file", lambda row: row.file.path),
        Column("status", "text", "left, leaves, within, none or unreadable", lambda row: row.status),
        Column(
            "leaves", "day", "last day of the first window that it leaves", lambda row: row.leaves and row.leaves[1]
        ),
        Column("window", "text", "that window", lambda row: row.leaves and row.leaves[0]),
        Column("kind", "text", "kind of the file", lambda row: row.file.kind),
        Column("size", "integer", "size in bytes", lambda row: row.file.size),
        Column("version", "text", "StableHLO version it was written for", lambda row: row.file.version),
        Column("written", "day", "first day on which it can have been written", lambda row: row.file.written),
        Column("jax_version", "text", "release of jax that wrote it", lambda row: row.file.jax_version),
        Column("calling_convention", "integer", "calling convention of jax", lambda row: row.file.calling_convention),
        Column("backward", "day", "last day of the window backward", lambda row: row.end_of("backward")),
        Column("forward", "day", "last day of the window forward", lambda row: row.end_of("forward")),
        Column("jax_export", "day", "last day of the window jax-export", lambda row: row.end_of("jax-export")),
        Column("readable_since", "text", "oldest StableHLO version that reads it", lambda row: row.file.readable_since),
        Column("readers", _RELEASES, "releases that read it", lambda row: row.file.readers),
        Column("error", "text", "why it could not be read", lambda row: row.file.error),
    ),
)
