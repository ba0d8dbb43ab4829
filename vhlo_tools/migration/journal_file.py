"""Database of a journal: its format, and the handling of files that are damaged or have another format."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final

from vhlo_tools.errors import MigrationError
from vhlo_tools.files import open_regular

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


def hold(path: str) -> str:
    """Take a journal for one migration of this process; :func:`let_go` takes the result."""
    held = os.path.realpath(path)
    with _HOLDING:
        if held in _HELD:
            raise MigrationError(_used(path))
        _HELD.add(held)
    return held


def let_go(held: str) -> None:
    with _HOLDING:
        _HELD.discard(held)


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
        with closing(sqlite3.connect(path, timeout=0, isolation_level="IMMEDIATE")) as database:
            prepare(database)
            database.execute("SELECT count(*) FROM header, files").fetchone()
            if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return
    except sqlite3.Error as error:
        if not is_own or getattr(error, "sqlite_errorname", "") in _IN_USE:
            raise MigrationError(unusable(path, error)) from error
    try:
        for each in (file, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal")):
            each.unlink(missing_ok=True)
    except OSError as error:
        raise MigrationError(f"the journal {path} cannot be discarded: {error.strerror or error}") from error


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
