"""Status of the files of a store on a day, as a table."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.records import dataclass
from vhlo_tools.tables import Column, ListOf, StructOf, Table

if TYPE_CHECKING:
    from vhlo_tools.spec import WindowName
    from vhlo_tools.stores.watch import StoreFile
    from vhlo_tools.stores.windows import ReadingReleases

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
