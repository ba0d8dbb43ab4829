"""Journal of a migration: an SQLite database of the state of every file, for resuming."""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from vhlo_tools.documents import read_json
from vhlo_tools.errors import MigrationError
from vhlo_tools.files import Kind, is_url, open_regular
from vhlo_tools.records import dataclass
from vhlo_tools.stores.members import Stamp, base_of, resolved
from vhlo_tools.stores.migration_files import FoundFile, Places, remove_parts
from vhlo_tools.stores.migration_records import MigrationRecord
from vhlo_tools.stores.migration_settings import MigrationSettings
from vhlo_tools.version import Version

# Database of a journal: its format, and the handling of files that are damaged or have another format

#: The name of the journal in the store, or in the folder of the results.
NAME: Final = ".vhlo-migration"

# The version of the tables below; journals before 2 have none.
_FORMAT: Final = 3

# SQLite's mark of the application that owns a file: four letters, `vhlo`.
_APPLICATION: Final = int.from_bytes(b"vhlo")

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS header (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY, path BLOB, source BLOB, destination BLOB, kind TEXT, version TEXT,
    size INTEGER, modified INTEGER, inode INTEGER, token TEXT, is_link INTEGER, is_outside INTEGER,
    state INTEGER, run INTEGER, status TEXT, record TEXT,
    UNIQUE (destination, source)
);
CREATE INDEX IF NOT EXISTS outside ON files (source) WHERE is_outside;
"""


# The journals that are open in this process. A lock of POSIX is that of a process, and ends when any descriptor of the
# file is closed in it: so a second migration here must not so much as open the file.
_HELD: Final[set[str]] = set()
_HOLDING: Final = Lock()


class _Database(sqlite3.Connection):
    """What SQLite says of a damaged file may have names of it that are no text: Python then fails to decode that."""

    def execute(self, *given: Any) -> sqlite3.Cursor:
        return _decoded(super().execute, given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        return _decoded(super().executemany, given)

    def executescript(self, *given: Any) -> sqlite3.Cursor:
        return _decoded(super().executescript, given)


def _decoded(method: Callable[..., sqlite3.Cursor], given: tuple[Any, ...]) -> sqlite3.Cursor:
    try:
        return method(*given)
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError(f"names in it are no text: {error}") from error


def prepare(database: sqlite3.Connection) -> None:
    """Initialize a database as a journal, if it is empty or already a journal, and lock it."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    (owner,) = database.execute("PRAGMA application_id").fetchone()
    if owner != _APPLICATION and database.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise sqlite3.DatabaseError("file is a database of another application")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if owner == _APPLICATION and version != _FORMAT and database.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise _OtherFormat(version or 1)
    # Commits survive a crash of the process at once, and a crash of the machine a little later.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    # The lock is acquired by the first transaction that writes.
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {_FORMAT}")
    database.commit()
    database.executescript(_TABLES)


def reset(database: sqlite3.Connection) -> None:
    database.executescript("DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS header;")
    database.executescript(_TABLES)


class _OtherFormat(sqlite3.DatabaseError):
    def __init__(self, version: int) -> None:
        super().__init__(f"it has version {version}")
        self.version = version


def discard_unusable(path: str) -> None:
    """Delete a journal that is damaged or of another version, but nothing that another program may have written."""
    file = Path(path)
    try:
        with open_regular(file) as opened:
            head = opened.read(_HEAD)
    except OSError:
        return  # what SQLite reports
    is_own = head[_APPLICATION_AT : _APPLICATION_AT + 4] == b"vhlo" or (file.name == NAME and bool(head))
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level="IMMEDIATE", factory=_Database)) as database:
            prepare(database)
            database.execute("SELECT count(*) FROM header, files").fetchone()
            if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return
    except sqlite3.Error as error:
        if not is_own or getattr(error, "sqlite_errorname", "") in _IN_USE:
            raise MigrationError(unusable(path, error)) from error
    try:
        _remove(path)
    except OSError as error:
        raise MigrationError(f"the journal {path} cannot be discarded: {error.strerror or error}") from error


def _remove(path: str) -> None:
    # The write-ahead log after the database.
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(path + ending).unlink(missing_ok=True)


# The header of a file of SQLite, and the place of the application in it.
_HEAD: Final = 100
_APPLICATION_AT: Final = 68
_IN_USE: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")


def damaged(path: str | None, error: Exception) -> str:
    return (
        f"the journal {path} is damaged ({type(error).__name__}: {error}): --restart (restart=True) discards it; every "
        f"file of the store is intact"
    )


def unusable(path: str | None, error: sqlite3.Error) -> str:
    if isinstance(error, _OtherFormat):
        age = "an older" if error.version < _FORMAT else "a newer"
        return (
            f"{path} is a journal of version {error.version}, of {age} vhlo_tools; this one reads version {_FORMAT}: "
            f"end the migration with that vhlo_tools, or discard the journal with --restart (restart=True)"
        )
    if getattr(error, "sqlite_errorname", "") in _IN_USE:
        return _used(path)
    if getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR":
        # A table or a column is missing.
        return damaged(path, error)
    if isinstance(error, sqlite3.OperationalError):
        return f"the journal {path} cannot be written ({error}): --journal FILE (journal=) uses another file"
    if path is not None and Path(path).name == NAME:
        return damaged(path, error)
    return f"{path} is not a journal of a migration ({error}): --journal FILE (journal=) uses another file"


def _used(path: str | None) -> str:
    return f"{path} is in use by another migration: wait until it has ended"


# Journal of a migration: an SQLite database of the state of every file, for resuming an interrupted migration
#
# The state is not kept in memory, so its size is not limited. What SQLite has committed survives a crash of the process
# at any moment; it locks the file for as long as it is open, so that no two migrations use the same journal.

# The states of a file: to be processed; about to be replaced; finished.
_PLANNED, _INTENDED, _FINISHED = range(3)

# Statuses without a result, for which another attempt may succeed.
_WORTH_ANOTHER_ATTEMPT: Final = ("failed", "changed", "unreadable")

_PAGE: Final = 256

# A file that has changed since it was last examined is processed again. Results that a run has written beside other
# files are not processed when the next run finds them.
_ADD: Final = f"""
INSERT INTO files (path, source, destination, kind, version, size, modified, inode, token, is_link, is_outside, state)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, {_PLANNED} WHERE NOT EXISTS
    (SELECT 1 FROM files WHERE destination = ?2 AND source != ?2 AND status = 'moved')
ON CONFLICT (destination, source) DO UPDATE SET
    kind = excluded.kind, version = excluded.version, size = excluded.size, modified = excluded.modified,
    inode = excluded.inode, token = excluded.token, state = {_PLANNED}, run = NULL, status = NULL, record = NULL
WHERE size IS NOT excluded.size OR modified IS NOT excluded.modified OR inode IS NOT excluded.inode
    OR token IS NOT excluded.token
"""

# A file that two paths lead to is in the store if it is by one of them.
_INSIDE: Final = "UPDATE files SET path = ?1, is_link = ?10, is_outside = ?11 WHERE source = ?2 AND is_outside"

_NOTE: Final = """
UPDATE files SET state = ?, run = ?, status = ?, record = ?, size = ?, modified = ?, inode = ?, token = ? WHERE id = ?
"""
_PLANNED_ID: Final = f"SELECT id FROM files WHERE destination = ? AND source = ? AND state = {_PLANNED}"

_AS_INTENDED: Final = "UPDATE files SET state = ?, size = ?, modified = ?, inode = ?, token = ? WHERE id = ?"

# If several results have the same destination none of them is written. A file that is already there keeps its place,
# unless `force` is set: processing finds it there.
_CONFLICTS: Final = f"""
SELECT id, path, destination FROM files AS one WHERE state = {_PLANNED} AND source != destination AND EXISTS
    (SELECT 1 FROM files AS other WHERE other.destination = one.destination AND other.id != one.id
    AND (other.source != other.destination OR :force)) LIMIT {_PAGE}
"""


@dataclass(frozen=True, slots=True)
class Task:
    number: int
    found: FoundFile


_KEY: Final = re.compile("[0-9a-f]{8}")
_RUNS: Final = re.compile("[0-9]{1,4}")


class Journal:
    """State of every file of a migration, as a context manager that closes the journal.

    Without a path, it is temporary and cannot be resumed. ``identity`` is the key and the number of the run of a
    temporary journal of a migration that is claimed elsewhere.
    """

    def __init__(
        self,
        path: str | None,
        settings: MigrationSettings,
        *,
        restart: bool = False,
        identity: tuple[str, int] | None = None,
    ) -> None:
        self.path = path
        self._given = identity
        self._places = Places.of(settings)
        self._follows_outside = settings.follow_outside
        self._held = None if path is None else os.path.realpath(path)
        if self._held is not None:
            with _HOLDING:
                if self._held in _HELD:
                    raise MigrationError(_used(path))
                _HELD.add(self._held)
        try:
            self._open(path, settings, restart=restart)
        except BaseException:
            self._let_go()
            raise

    def _open(self, path: str | None, settings: MigrationSettings, *, restart: bool) -> None:
        if path is not None and Path(path).name == NAME and Path(path).is_symlink():
            raise MigrationError(
                f"{path} is a link, which no migration makes: remove it; --journal FILE (journal=) uses another file"
            )
        if restart and path is not None:
            discard_unusable(path)
        self.is_new: bool = path is not None and not os.path.lexists(path)
        try:
            self._database = sqlite3.connect(path or "", timeout=0, isolation_level="IMMEDIATE", factory=_Database)
        except sqlite3.Error as error:
            raise MigrationError(unusable(path, error)) from error
        try:
            prepare(self._database)
            # The journal of a completed migration is kept as a record until the next migration begins.
            if restart or self._header("ended"):
                self._forget()
            self._begin(settings)
        except BaseException as error:
            self._database.close()
            if self.is_new and getattr(error, "sqlite_errorname", "") not in _IN_USE:
                # Such as on a full disk, which leaves an empty file.
                _remove(str(path))
            if isinstance(error, sqlite3.Error):
                raise MigrationError(unusable(path, error)) from error
            if isinstance(error, ValueError | LookupError | TypeError):
                raise MigrationError(damaged(path, error)) from error
            raise

    def _begin(self, settings: MigrationSettings) -> None:
        pinned = read_json(self._header("settings") or "null")
        if pinned is not None and pinned != settings.pinned():
            raise MigrationError(_other_settings(self.path, pinned, settings.pinned()))
        key, run = self._identity()
        self.key: str = key
        self.run: int = run  # number of this run of the migration, from 1
        with self._database:
            values = {"settings": json.dumps(settings.pinned()), "key": self.key, "run": str(self.run)}
            self._database.executemany("INSERT OR REPLACE INTO header VALUES (?, ?)", values.items())
            marks = ", ".join("?" * len(_WORTH_ANOTHER_ATTEMPT))
            self._database.execute(
                f"UPDATE files SET state = {_PLANNED} WHERE status IN ({marks})", _WORTH_ANOTHER_ATTEMPT
            )

    def _identity(self) -> tuple[str, int]:
        """Return the key and the number of this run, of which the names of temporary files are made.

        Invalid values raise ``ValueError``: a key could be a path, and every run costs time.
        """
        if self._given is not None:
            return self._given
        key, runs = self._header("key") or secrets.token_hex(4), self._header("run") or "0"
        if not _KEY.fullmatch(key):
            raise ValueError(f"the key is {key[:60]!r}")
        if not _RUNS.fullmatch(runs):
            raise ValueError(f"the number of runs is {runs[:60]!r}")
        return key, int(runs) + 1

    def _forget(self) -> None:
        """Clear the journal, and remove results that were not moved to their destinations."""
        # What is damaged is forgotten all the same.
        with suppress(ValueError, LookupError, TypeError, sqlite3.DatabaseError):
            key, run = self._identity()
            unfinished = (self._checked(row) for row in self._rows(f"state != {_FINISHED}"))
            places = (task.found.destination for task in unfinished if not self.refuses(task))
            for folder in {os.path.dirname(place) for place in places}:  # noqa: PTH120
                remove_parts(folder, key, run)
        reset(self._database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal; its file is kept."""
        self._database.close()
        self._let_go()

    def _let_go(self) -> None:
        with _HOLDING:
            _HELD.discard(self._held or "")
        self._held = None

    def remove(self) -> None:
        if self.path is not None:
            # While the lock is held.
            _remove(self.path)
        self.close()

    def conclude(self) -> None:
        """Mark the migration as completed, and keep the journal as a record."""
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO header VALUES ('ended', '1')")

    @property
    def is_empty(self) -> bool:
        return self._database.execute("SELECT 1 FROM files").fetchone() is None

    def add(self, files: Sequence[FoundFile]) -> list[Task]:
        """Add files; known files that have not changed keep their state. Return those to process."""
        with self._database:
            rows = [_row(each) for each in files]
            self._database.executemany(_ADD, rows)
            self._database.executemany(_INSIDE, (row for row in rows if not row[-1]))
        tasks = []
        for found, (_, source, destination, *_) in zip(files, rows, strict=True):
            planned = self._database.execute(_PLANNED_ID, (destination, source)).fetchone()
            if planned is not None:
                tasks.append(Task(planned[0], found))
        return tasks

    def conflicts(self, *, force: bool) -> Iterator[list[tuple[Task, str]]]:
        """Yield files whose results have the same destination, with the path of another one; finish them at once."""
        while rows := self._database.execute(_CONFLICTS, {"force": force}).fetchall():
            found = []
            for number, _, destination in rows:
                (other,) = self._database.execute(
                    "SELECT path FROM files WHERE destination = ? AND id != ? ORDER BY source != destination, path",
                    (destination, number),
                ).fetchone()
                found.append((self._task(number), os.fsdecode(other)))
            yield found

    def tasks(self, *, beside: bool) -> Iterator[Task]:
        """``beside`` selects the files with results elsewhere, otherwise those that are replaced."""
        with self._reading():
            for row in self._rows(f"(source != destination) = {beside:d} AND state = {_PLANNED}"):
                yield self._checked(row)

    def intents(self) -> Iterator[tuple[Task, MigrationRecord]]:
        """Yield the files that an earlier run was about to replace, with the records that they would have got."""
        with self._reading():
            for row in self._rows(f"state = {_INTENDED}"):
                yield self._checked(row), MigrationRecord.from_json(read_json(row[-1]))

    def plan_again(self, tasks: Sequence[Task]) -> None:
        """Schedule files again that were not replaced."""
        with self._database:
            self._database.executemany(
                f"UPDATE files SET state = {_PLANNED} WHERE id = ?", ((task.number,) for task in tasks)
            )

    def intend(self, records: Iterable[tuple[Task, MigrationRecord]]) -> None:
        self._note(_INTENDED, ((task, None, record) for task, record in records))

    def finish(self, records: Iterable[tuple[Task, Stamp | None, MigrationRecord | None]]) -> None:
        """Record outcomes, ``None`` for the intended one, and the present stamps of files."""
        self._note(_FINISHED, records)

    def _note(self, state: int, records: Iterable[tuple[Task, Stamp | None, MigrationRecord | None]]) -> None:
        with self._database:
            for task, stamp, record in records:
                seen = _stamp(stamp or task.found.stamp)
                if record is None:
                    self._database.execute(_AS_INTENDED, (state, *seen, task.number))
                else:
                    values = (state, self.run, record.status, json.dumps(record.as_json()), *seen, task.number)
                    self._database.execute(_NOTE, values)

    def records(self, *, earlier: bool = False) -> Iterator[MigrationRecord]:
        """Yield the records of finished files, ordered by path; ``earlier`` selects those of earlier runs."""
        query = f"SELECT record FROM files WHERE state = {_FINISHED} AND run < ? ORDER BY path"
        with self._reading():
            for (text,) in self._database.execute(query, (self.run + (not earlier),)):
                yield MigrationRecord.from_json(read_json(text))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Report content that no run has written as damage."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise MigrationError(damaged(self.path, error)) from error

    def _header(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM header WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def _rows(self, condition: str) -> Iterator[tuple[Any, ...]]:
        # In pages, so that rows may be changed during the iteration.
        last = 0
        query = f"SELECT {_COLUMNS} FROM files WHERE {condition} AND id > ? ORDER BY id LIMIT {_PAGE}"
        while rows := self._database.execute(query, (last,)).fetchall():
            yield from rows
            last = rows[-1][0]

    def refuses(self, task: Task) -> bool:
        """Whether nothing of a file may be read or written: it is outside of the paths of the migration."""
        return task.found.is_outside and not self._follows_outside

    def _checked(self, row: tuple[Any, ...]) -> Task:
        """Return the file of a row, marked as outside of the paths of the migration if its paths are.

        A journal may come with its store: it must not decide what is written where.
        """
        task = _task(row)
        found = task.found
        source = destination = resolved(found.source)
        if found.destination != found.source:
            destination = resolved(found.destination)
        if found.is_outside or self._places.allow(source, destination):
            return task
        return replace(task, found=replace(found, is_outside=True))

    def _task(self, number: int) -> Task:
        return self._checked(self._database.execute(f"SELECT {_COLUMNS} FROM files WHERE id = ?", (number,)).fetchone())


_COLUMNS: Final = (
    "id, path, source, destination, kind, version, size, modified, inode, token, is_link, is_outside, record"
)


def _row(found: FoundFile) -> tuple[Any, ...]:
    # File names are bytes, and not always valid text.
    paths = (os.fsencode(each) for each in (found.path, found.source, found.destination))
    version = found.version and str(found.version)
    kind = found.kind and str(found.kind)
    return (*paths, kind, version, *_stamp(found.stamp), int(found.is_link), int(found.is_outside))


def _stamp(stamp: Stamp | None) -> tuple[int | None, int | None, int | None, str | None]:
    return (stamp.size, stamp.modified, stamp.inode, stamp.token) if stamp else (None, None, None, None)


def _task(row: tuple[Any, ...]) -> Task:
    number, path, source, destination, kind, version, size, modified, inode, token, is_link, is_outside, _ = row
    # One text for equal paths is sent to another process once.
    names = {each: os.fsdecode(each) for each in (path, source, destination)}
    stamp = None if size is None else Stamp(size, modified, inode, token)
    found = FoundFile(
        names[path],
        names[source],
        names[destination],
        stamp,
        kind and Kind(kind),
        version and Version(version),
        bool(is_link),
        bool(is_outside),
    )
    return Task(number, found)


def journal_path(settings: MigrationSettings) -> str:
    """Return the path of a journal: with its results, or in the folder of the first path of the migration.

    For a store behind a URL, it is the URL of the claim: see :class:`~vhlo_tools.stores.claim.StoreLease`.
    """
    folder = settings.output_dir or base_of(settings.paths[0])
    if is_url(folder):
        return f"{folder}{'' if folder.endswith('/') else '/'}{NAME}"
    with suppress(OSError):
        if settings.output_dir:
            Path(folder).mkdir(parents=True, exist_ok=True)
    return str(Path(folder) / NAME)


def _other_settings(path: str | None, begun: dict[str, Any], asked: dict[str, Any]) -> str:
    differing = [
        f"{name} {begun.get(name)!r} instead of {asked[name]!r}" for name in asked if begun.get(name) != asked[name]
    ]
    return (
        f"{path} is the journal of an unfinished migration with {'; '.join(differing)}: resume it with the same "
        f"options, or discard it with --restart (restart=True); --journal FILE uses another journal"
    )
