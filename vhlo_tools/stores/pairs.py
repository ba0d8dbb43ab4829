"""Programs of two stores, each with its partner in the other."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Final

from vhlo_tools.errors import MigrationError
from vhlo_tools.files import is_url, place
from vhlo_tools.records import dataclass
from vhlo_tools.stores.members import (
    IN_PLACE,
    RESULT_SUFFIX,
    ListedFile,
    base_of,
    is_store,
    listed_at,
    look_at,
    relative_to,
    resolved,
    result_name,
)

# Of the first store. Names of files are bytes, and not always valid text.
_SCHEMA: Final = (
    "CREATE TABLE files (path BLOB PRIMARY KEY, place BLOB, size INTEGER, paired INTEGER DEFAULT 0) WITHOUT ROWID",
    # The names of results that files have if they are of a kind that is not replaced.
    "CREATE TABLE results (path BLOB, of BLOB, PRIMARY KEY (path, of)) WITHOUT ROWID",
)
_ADD: Final = "INSERT OR IGNORE INTO files (path, place, size) VALUES (?, ?, ?)"
_ADD_RESULT: Final = "INSERT OR IGNORE INTO results VALUES (?, ?)"
_SAME_PATH: Final = "SELECT path, place, size FROM files WHERE path = ?"
_RESULT: Final = "SELECT path, place, size FROM files WHERE path IN (SELECT of FROM results WHERE path = ?)"
_PAIRED: Final = "UPDATE files SET paired = 1 WHERE path = ?"
_LEFT: Final = "SELECT path, place, size FROM files WHERE NOT paired ORDER BY path"


@dataclass(frozen=True, slots=True)
class Pair:
    """A program in one or both of two stores."""

    path: str  # relative to the second store, or to the first if it is only there
    before: str | None
    after: str | None
    old_size: int = 0  # in bytes; 0 if unknown
    new_size: int = 0  # in bytes; 0 if unknown

    @property
    def size(self) -> int:
        return self.old_size + self.new_size


class Pairs:
    """Iterator over the programs of two stores (folders, prefixes of URLs, or globs) in pairs of equal relative paths.

    The result of a migration that does not replace, ``NAME.mlirbc`` for ``NAME.mlir``, is paired with its source. The
    first store is listed at once, on disk as far as it is large, and the second while pairs are taken. Pairs come in
    the order of the second store, then those that are only in the first, by path.
    """

    def __init__(self, before: str, after: str, exclude: tuple[str, ...] = ()) -> None:
        self.number: int = 0  # of pairs found so far
        self.size: int = 0  # in bytes, of the files found so far
        self.others: int = 0  # files so far that are no programs
        self.is_complete: bool = False
        # A URL of a file is its path.
        self._stores = tuple(str(place(each)) for each in (before, after))
        self._bases = tuple(base_of(each) for each in self._stores)
        self._exclude = exclude
        for each, other in zip(self._stores, reversed(self._stores), strict=True):
            if not is_store(each):
                raise MigrationError(
                    f"{each} is not a store as {other} is: expected two folders, prefixes or globs, or two files"
                )
        self._pairs = self._found()

    def __iter__(self) -> Iterator[Pair]:
        return self._pairs

    def _found(self) -> Iterator[Pair]:
        database = sqlite3.connect("")
        try:
            for statement in _SCHEMA:
                database.execute(statement)
            for path, file in self._files(0):
                database.execute(_ADD, (os.fsencode(path), os.fsencode(file.path), file.size))
                if not path.endswith(RESULT_SUFFIX):
                    database.execute(_ADD_RESULT, (os.fsencode(result_name(path)), os.fsencode(path)))
            for path, file in self._files(1):
                partners = _partners(database, path)
                database.executemany(_PAIRED, ([os.fsencode(partner)] for partner, _ in partners))
                for _, before in partners:
                    yield self._counted(Pair(path, before.path, file.path, before.size, file.size))
                if not partners:
                    yield self._counted(Pair(path, None, file.path, new_size=file.size))
            for path, where, size in database.execute(_LEFT):
                yield self._counted(Pair(os.fsdecode(path), os.fsdecode(where), None, size))
            self.is_complete = True
        finally:
            database.close()

    def _counted(self, pair: Pair) -> Pair:
        self.number += 1
        self.size += pair.size
        return pair

    def _count_other(self, _: str) -> None:
        self.others += 1

    def _files(self, which: int) -> Iterator[tuple[str, ListedFile]]:
        """Yield the programs of a store with relative paths, without those of the other store within it."""
        base, inner = self._bases[which], _inside(self._bases[1 - which], self._bases[which])
        is_empty = True
        for file in listed_at(self._stores[which], self._exclude, self._count_other):
            path = relative_to(base, file.path)
            if inner is None or not path.startswith(inner):
                is_empty = False
                yield path, file
        if is_empty:
            raise MigrationError(f"{self._stores[which]}: no folder with programs, and no glob or prefix that has any")


def _inside(inner: str, outer: str) -> str | None:
    """Return the relative path of a folder that is within another, with a slash at its end."""
    if is_url(inner) != is_url(outer):
        return None
    separator = "/" if is_url(inner) else os.sep
    outer, inner = (f"{resolved(each).rstrip(separator)}{separator}" for each in (outer, inner))
    return f"{relative_to(outer, inner).rstrip('/')}/" if inner.startswith(outer) and inner != outer else None


def _partners(database: sqlite3.Connection, path: str) -> list[tuple[str, ListedFile]]:
    """Return possible sources of a program of the second store, each with its relative path."""
    if found := _rows(database, _SAME_PATH, path):
        return found
    return [(of, file) for of, file in _rows(database, _RESULT, path) if look_at(file.path)[0] not in {None, *IN_PLACE}]


def _rows(database: sqlite3.Connection, query: str, path: str) -> list[tuple[str, ListedFile]]:
    rows = database.execute(query, [os.fsencode(path)]).fetchall()
    return [(os.fsdecode(each), ListedFile(os.fsdecode(where), size)) for each, where, size in rows]
