"""What a migration knows of every file, on disk: a database of SQLite, from which an interrupted migration goes on.

Nothing of it is held in memory, however many files there are. What SQLite has committed survives the death of the
process at any moment; it locks the file for as long as it is open, so that no two migrations work with one journal.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from vhlo_tools.artifact import Kind
from vhlo_tools.errors import MigrationError
from vhlo_tools.migration.discovery import Found, Stamp, base_of
from vhlo_tools.migration.record import MigrationRecord
from vhlo_tools.migration.settings import Settings
from vhlo_tools.version import Version

__all__ = ["Intent", "Journal", "Task", "journal_path", "part_of", "remove_parts"]

#: The name of the journal in the store, or in the folder of the results.
NAME: Final = ".vhlo-migration"

# The states of a file: to be worked on; about to be replaced; done with.
_PLANNED, _INTENDED, _FINISHED = range(3)

# Of these nothing has come, and another attempt may fare better.
_WORTH_ANOTHER_ATTEMPT: Final = ("failed", "changed", "unreadable")

_PAGE: Final = 256

# How SQLite tells whose file it is: four letters, `vhlo`.
_APPLICATION: Final = int.from_bytes(b"vhlo")

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS header (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY, path BLOB, source BLOB, destination BLOB, kind TEXT, version TEXT,
    size INTEGER, modified INTEGER, inode INTEGER, state INTEGER, status TEXT, record TEXT,
    UNIQUE (destination, source)
);
"""

# A file that is no longer as it was seen last is worked on anew. What a run has written beside others is none of the
# files to work on when it is met by the next run.
_ADD: Final = f"""
INSERT INTO files (path, source, destination, kind, version, size, modified, inode, state)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {_PLANNED} WHERE NOT EXISTS
    (SELECT 1 FROM files WHERE destination = ?2 AND source != ?2 AND status = 'moved')
ON CONFLICT (destination, source) DO UPDATE SET
    kind = excluded.kind, version = excluded.version, size = excluded.size, modified = excluded.modified,
    inode = excluded.inode, state = {_PLANNED}, status = NULL, record = NULL
WHERE size IS NOT excluded.size OR modified IS NOT excluded.modified OR inode IS NOT excluded.inode
"""

_NOTE: Final = """
UPDATE files SET state = ?, status = ?, record = ?, size = ?, modified = ?, inode = ? WHERE id = ?
"""

# Where several results would stand in one place none of them is written. One that stands there already has it, unless
# others shall be replaced: whoever comes to write finds it there.
_CONFLICTS: Final = f"""
SELECT id, path, destination FROM files AS one WHERE state = {_PLANNED} AND source != destination AND EXISTS
    (SELECT 1 FROM files AS other WHERE other.destination = one.destination AND other.id != one.id
    AND (other.source != other.destination OR :force)) LIMIT {_PAGE}
"""


@dataclass(frozen=True, slots=True)
class Task:
    """A file to work on.

    Attributes:
        number: Its number in the journal.
        found: The file, as it was found.
    """

    number: int
    found: Found


@dataclass(frozen=True, slots=True)
class Intent:
    """A file that a migration was about to replace when it ended.

    Attributes:
        task: The file.
        record: What would have become of it.
    """

    task: Task
    record: MigrationRecord


def part_of(task: Task, key: str, run: int) -> str:
    """Return where the result of a file stands before it is put in its place.

    Args:
        task: The file.
        key: The word of the journal.
        run: The number of the run.
    """
    return str(Path(task.found.destination).parent / f".vhlo-{key}-{run}-{task.number}.part")


def remove_parts(task: Task, key: str, run: int) -> None:
    """Remove the results that runs before this one had written when they were killed.

    Raises:
        OSError: If one cannot be removed.
    """
    for earlier in range(1, run):
        Path(part_of(task, key, earlier)).unlink(missing_ok=True)


class Journal:
    """What a migration knows of every file; as a context, which lets go of it.

    Args:
        path: Where it is kept; ``None`` for a temporary one, from which nothing goes on.
        settings: What the migration is asked to do.
        restart: Whether one that stands there already is thrown away.

    Attributes:
        key: A word that no other journal has.
        run: The number of this run of the migration, from 1.

    Raises:
        MigrationError: If another process works with it; if it is of a migration with other settings; if there is
            something else at ``path``; or if it cannot be written.
    """

    def __init__(self, path: str | None, settings: Settings, *, restart: bool = False) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(path or "", timeout=0, isolation_level="IMMEDIATE")
        except sqlite3.Error as error:
            raise MigrationError(_unusable(path, error)) from error
        try:
            _prepare(self._database)
            # One that has come to its end is a record, until the next begins.
            if restart or self._header("ended"):
                self._forget()
            self._begin(settings)
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.Error):
                raise MigrationError(_unusable(path, error)) from error
            raise

    def _begin(self, settings: Settings) -> None:
        pinned = json.loads(self._header("settings") or "null")
        if pinned is not None and pinned != settings.pinned():
            raise MigrationError(_other_settings(self.path, pinned, settings.pinned()))
        self.key = self._header("key") or secrets.token_hex(4)
        self.run = int(self._header("run") or 0) + 1
        with self._database:
            values = {"settings": json.dumps(settings.pinned()), "key": self.key, "run": str(self.run)}
            self._database.executemany("INSERT OR REPLACE INTO header VALUES (?, ?)", values.items())
            marks = ", ".join("?" * len(_WORTH_ANOTHER_ATTEMPT))
            self._database.execute(
                f"UPDATE files SET state = {_PLANNED} WHERE status IN ({marks})", _WORTH_ANOTHER_ATTEMPT
            )

    def _forget(self) -> None:
        """Forget all, and remove what was written for files that were not put in their places."""
        key, run = self._header("key"), int(self._header("run") or 0)
        for row in self._rows(f"state != {_FINISHED}"):
            with suppress(OSError):
                remove_parts(_task(row), key or "", run + 1)
        self._database.executescript("DELETE FROM files; DELETE FROM header;")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; what it says stays where it is."""
        self._database.close()

    def remove(self) -> None:
        """Throw it away."""
        if self.path is not None:
            # While the lock is held, and what is not yet in it after it.
            Path(self.path).unlink(missing_ok=True)
            Path(f"{self.path}-wal").unlink(missing_ok=True)
        self._database.close()

    def conclude(self) -> None:
        """Keep it as a record of a migration that has come to its end."""
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO header VALUES ('ended', '1')")

    @property
    def is_empty(self) -> bool:
        """Whether it knows of no file."""
        return self._database.execute("SELECT 1 FROM files").fetchone() is None

    def add(self, files: Iterable[Found]) -> None:
        """Take files to work on; those that are known, and have not changed since, stay as they are."""
        with self._database:
            self._database.executemany(_ADD, map(_row, files))

    def conflicts(self, *, force: bool) -> Iterator[list[tuple[Task, str]]]:
        """Yield files whose results would stand in one place, each with another one; they must be finished at once.

        Args:
            force: Whether results replace what stands in their place.
        """
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
        """Yield what there is to work on.

        Args:
            beside: Whether files whose results stand elsewhere, or those that are replaced.
        """
        for row in self._rows(f"(source != destination) = {beside:d} AND state = {_PLANNED}"):
            yield _task(row)

    def intents(self) -> Iterator[Intent]:
        """Yield what an earlier run was about to replace."""
        for row in self._rows(f"state = {_INTENDED}"):
            yield Intent(_task(row), MigrationRecord.from_json(json.loads(row[-1])))

    def plan_again(self, tasks: Sequence[Task]) -> None:
        """Take files back that were not replaced after all."""
        with self._database:
            self._database.executemany(
                f"UPDATE files SET state = {_PLANNED} WHERE id = ?", ((task.number,) for task in tasks)
            )

    def intend(self, records: Iterable[tuple[Task, MigrationRecord]]) -> None:
        """Note what is about to be replaced."""
        self._note(_INTENDED, ((task, None, record) for task, record in records))

    def finish(self, records: Iterable[tuple[Task, Stamp | None, MigrationRecord]]) -> None:
        """Note what has become of files, and what each looks like now."""
        self._note(_FINISHED, records)

    def _note(self, state: int, records: Iterable[tuple[Task, Stamp | None, MigrationRecord]]) -> None:
        with self._database:
            for task, stamp, record in records:
                seen = stamp or task.found.stamp
                values = (state, record.status, json.dumps(record.as_json()), *_stamp(seen), task.number)
                self._database.execute(_NOTE, values)

    def records(self) -> Iterator[MigrationRecord]:
        """Yield what has become of files, by their paths."""
        query = f"SELECT record FROM files WHERE state = {_FINISHED} ORDER BY path"
        for (text,) in self._database.execute(query):
            yield MigrationRecord.from_json(json.loads(text))

    def totals(self) -> tuple[int, int]:
        """Return how many files there are to work on, and how many bytes they have."""
        query = f"SELECT count(*), ifnull(sum(size), 0) FROM files WHERE state = {_PLANNED}"
        files, size = self._database.execute(query).fetchone()
        return files, size

    def _header(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM header WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def _rows(self, condition: str) -> Iterator[tuple[Any, ...]]:
        # By pages, so that rows may be changed meanwhile.
        last = 0
        query = f"SELECT {_COLUMNS} FROM files WHERE {condition} AND id > ? ORDER BY id LIMIT {_PAGE}"
        while rows := self._database.execute(query, (last,)).fetchall():
            yield from rows
            last = rows[-1][0]

    def _task(self, number: int) -> Task:
        return _task(self._database.execute(f"SELECT {_COLUMNS} FROM files WHERE id = ?", (number,)).fetchone())


def _prepare(database: sqlite3.Connection) -> None:
    """Make a database a journal, if it is empty or one already, and lock it."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    (owner,) = database.execute("PRAGMA application_id").fetchone()
    if owner != _APPLICATION and database.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise sqlite3.DatabaseError("file is a database of something else")
    # What is committed is safe from the death of the process at once, and from that of the machine a little later.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    # The lock is taken with the first transaction that writes.
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.commit()
    database.executescript(_TABLES)


_COLUMNS: Final = "id, path, source, destination, kind, version, size, modified, inode, record"


def _row(found: Found) -> tuple[Any, ...]:
    # Names of files are bytes, and not always text.
    paths = (os.fsencode(each) for each in (found.path, found.source, found.destination))
    version = found.version and str(found.version)
    return (*paths, found.kind and str(found.kind), version, *_stamp(found.stamp))


def _stamp(stamp: Stamp | None) -> tuple[int | None, int | None, int | None]:
    return (stamp.size, stamp.modified, stamp.inode) if stamp else (None, None, None)


def _task(row: tuple[Any, ...]) -> Task:
    number, path, source, destination, kind, version, size, modified, inode, _ = row
    stamp = None if size is None else Stamp(size, modified, inode)
    found = Found(
        os.fsdecode(path),
        os.fsdecode(source),
        os.fsdecode(destination),
        stamp,
        kind and Kind(kind),
        version and Version(version),
    )
    return Task(number, found)


def journal_path(settings: Settings) -> str:
    """Return where a migration keeps its journal: with its results, or in the folder of its first path."""
    folder = settings.output_dir or base_of(settings.paths[0])
    with suppress(OSError):
        if settings.output_dir:
            Path(folder).mkdir(parents=True, exist_ok=True)
    return str(Path(folder) / NAME)


def _other_settings(path: str | None, begun: dict[str, Any], asked: dict[str, Any]) -> str:
    differing = [
        f"{name} {begun.get(name)!r} and not {asked[name]!r}" for name in asked if begun.get(name) != asked[name]
    ]
    return (
        f"{path} is the journal of a migration that did not come to its end, begun with {'; '.join(differing)}: "
        "finish it with the same options, or give --restart (restart=True) to begin anew; "
        "--journal FILE keeps this one's journal elsewhere"
    )


def _unusable(path: str | None, error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorname", "") in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return f"{path} is in use: another migration works with this journal; wait until it has ended"
    if isinstance(error, sqlite3.OperationalError):
        return f"the journal {path} cannot be written ({error}): --journal FILE (journal=) keeps it elsewhere"
    return f"{path} is no journal of a migration ({error}): --journal FILE (journal=) keeps one elsewhere"
