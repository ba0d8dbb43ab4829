"""The results about the files of a store as tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from vhlo_tools.dialect import WindowName
from vhlo_tools.migration.file_record import MigrationRecord
from vhlo_tools.migration.store_watch import StoreFile
from vhlo_tools.migration.windows import ReadingReleases
from vhlo_tools.tables import FINDINGS, Column, ListOf, StructOf, Table

__all__ = ["MIGRATION_TABLE", "STATUS_TABLE", "FileStatus", "StatusName"]

StatusName = Literal["left", "leaves", "within", "none", "unreadable"]


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file of a store on a day.

    Attributes:
        file: The file.
        status: Whether it has left a window (``left``), leaves one within the horizon (``leaves``) or stays longer
            (``within``); ``none`` if no window is known, ``unreadable`` if it could not be read.
        leaves: The window that it leaves first, and its last day.
    """

    file: StoreFile
    status: StatusName
    leaves: tuple[WindowName, date] | None

    @classmethod
    def of(cls, file: StoreFile, windows: tuple[WindowName, ...], today: date, end: date) -> FileStatus:
        """Return the status of a file.

        Args:
            file: The file.
            windows: The windows that count.
            today: The day.
            end: The last day of the horizon.
        """
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

#: What ``vhlo migrate`` says of files.
MIGRATION_TABLE: Final[Table[MigrationRecord]] = Table(
    "migration",
    (
        Column("path", "text", "path of the file", lambda row: row.path),
        Column("ok", "flag", "whether it is, or can be, at the target", lambda row: row.ok),
        Column("status", "text", "what became of it", lambda row: row.status),
        Column("kind", "text", "kind of the file", lambda row: row.kind),
        Column("version", "text", "StableHLO version before", lambda row: row.version),
        Column("target", "text", "StableHLO version after", lambda row: row.target),
        Column("size", "integer", "size before, in bytes", lambda row: row.size),
        Column("digest", "text", "SHA-256 before", lambda row: row.digest),
        Column("output", "text", "path of the result, if it is another", lambda row: row.output),
        Column("new_size", "integer", "size after, in bytes", lambda row: row.new_size),
        Column("new_digest", "text", "SHA-256 after", lambda row: row.new_digest),
        Column("backup", "text", "path at which the old file is kept", lambda row: row.backup),
        Column("old_version", "text", "version under which a store keeps the old object", lambda row: row.old_version),
        Column("leads_to", "text", "path of the file itself, if a link leads to it", lambda row: row.leads_to),
        Column("verified", "text", "proof that both compute the same", lambda row: row.verified),
        Column("reason", "text", "why it was not migrated", lambda row: row.reason),
        Column("findings", FINDINGS, "findings about the program", lambda row: row.findings),
        Column("seconds", "seconds", "time of processing", lambda row: row.seconds),
    ),
)
