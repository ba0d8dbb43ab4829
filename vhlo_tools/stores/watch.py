"""Monitoring of a store: when its files leave their compatibility windows."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.artifact import Artifact, JaxContainer, first_writer
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.files import Kind, Others, is_saved_model, nobody, place, read_bytes, recognise
from vhlo_tools.records import dataclass
from vhlo_tools.spec import WindowName, known_versions, newest_version
from vhlo_tools.stores.members import IN_PLACE, files_of
from vhlo_tools.stores.scheduling import chunked, map_unordered
from vhlo_tools.stores.tables import Column, ListOf, StructOf, Table
from vhlo_tools.stores.windows import ReadingReleases, ends_of, jax_readers, readers_since, written_on
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.compat import Requirements
    from vhlo_tools.stores.workers import Workers

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
        if is_saved_model(path):
            return replace(seen, kind=Kind.SAVED_MODEL)
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
        requirements = [each.requirements() for each in artifacts]
        since = max(each.readable_since for each in requirements)
        written = written_on(version)
        if container is not None:
            writer = first_writer(container.export)
            # A file of a release that is not known is dated by its artifact.
            written = writer.date if writer else written
            readers = jax_readers(container.readers(), self.today)
        else:
            reading = [entry.version for entry in known_versions() if entry.version >= since]
            if any(each.reader_findings(newest_version()) for each in requirements):
                # Features that readers no longer support; otherwise every reader reads what an older one reads.
                reading = [each for each in reading if not any(_refuses(need, each) for need in requirements)]
            readers = readers_since(frozenset(reading), self.today)
        ends = ends_of(version, jax_export=written if container else None)
        windows = tuple((name, end) for name, end in ends.items() if name in self.windows)
        return replace(seen, version=version, written=written, windows=windows, readable_since=since, readers=readers)


def _refuses(requirements: Requirements, version: Version) -> bool:
    return any(each.level == "error" for each in requirements.reader_findings(version))


def watch_store(
    paths: Sequence[str],
    workers: Workers,
    *,
    windows: Sequence[WindowName],
    today: date,
    exclude: tuple[str, ...] = (),
    others: Others = nobody,
) -> Iterator[StoreFile]:
    """Yield programs by the end of the first window that they leave; unreadable ones last.

    Until all files are read, results are stored on disk and not in memory.
    """
    database = sqlite3.connect("")
    try:
        database.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, path BLOB UNIQUE, leaves TEXT, file TEXT)")
        insert = "INSERT OR IGNORE INTO files (path, leaves, file) VALUES (?, ?, ?)"
        members = (each for path in paths for each in files_of(path, exclude, others))
        for some, read in map_unordered(workers, _Reading(today, tuple(windows)), chunked(members, _BATCH)):
            for seen in read if read is not None else [StoreFile(path, error=_DIED) for path in some]:
                leaves = seen.leaves(windows)
                row = (os.fsencode(seen.path), leaves and str(leaves[1]), json.dumps(_as_json(seen)))
                database.execute(insert, row)
        order = "SELECT file FROM files ORDER BY leaves IS NULL, leaves, path"
        for (text,) in database.execute(order):
            yield _from_json(json.loads(text))
    finally:
        database.close()


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
    status: StatusName  # leaves a window within the horizon; left one, and leaves none; within; no window; unreadable
    leaves: tuple[WindowName, date] | None  # that window, or else the one that it leaves first, and its last day

    @classmethod
    def of(cls, file: StoreFile, windows: tuple[WindowName, ...], today: date, end: date) -> FileStatus:
        """``end`` is the last day of the horizon; only ``windows`` count."""
        first = file.leaves(windows)
        if file.error is not None:
            return cls(file, "unreadable", first)
        if first is None:
            return cls(file, "none", first)
        # A window that was over long ago must not hide another that is not.
        leaving = file.leaves([name for name, last in file.windows if name in windows and today <= last <= end])
        if leaving is not None:
            return cls(file, "leaves", leaving)
        return cls(file, "left" if first[1] < today else "within", first)

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
