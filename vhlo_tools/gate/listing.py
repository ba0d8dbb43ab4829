"""Files of a run of the gate, found while the first of them are already examined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import SettingsError
from vhlo_tools.files import Others, nobody
from vhlo_tools.stores import ListedFile, listed_at

if TYPE_CHECKING:
    from vhlo_tools.gate.settings import Settings

#: The path that stands for standard input.
STANDARD: Final = "-"
#: A store of no more files is known as a whole before its report begins.
_HEAD: Final = 1000


class Listing:
    """Iterator over the files that paths select, each once, in order; memory does not grow with their number.

    Only the names of one folder, which are sorted, are held at once. A path that selects nothing raises
    ``SettingsError``.
    """

    def __init__(self, paths: Sequence[str], settings: Settings, others: Others = nobody) -> None:
        self.number: int = 0  # of files found so far
        self.size: int = 0  # in bytes, of the files found so far
        self.is_complete: bool = False
        self.others: int = 0  # files of folders so far that are no programs, and that no pattern excludes

        def other(path: str) -> None:
            if not settings.is_excluded(path):
                self.others += 1
                others(path)

        # Whoever misspells the last path learns it at once.
        found = [_members(path, settings, other) for path in paths]
        several = len(found) > 1 or any(each.count("**") > 1 for each in paths)
        chosen = chain.from_iterable(found)
        self._files = self._counted(_once(chosen) if several else chosen)
        self._head: list[ListedFile] = []

    def head(self) -> list[ListedFile]:
        """Return the first files, at most a thousand; they come from the iterator all the same."""
        if not self._head:
            self._head = list(islice(self._files, _HEAD))
            self._files = chain(self._head, self._files)
        return self._head

    def __iter__(self) -> Iterator[ListedFile]:
        return self._files

    def _counted(self, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
        for file in files:
            self.number += 1
            self.size += file.size
            yield file
        self.is_complete = True


def _members(path: str, settings: Settings, others: Others) -> Iterator[ListedFile]:
    if path == STANDARD:
        return iter([ListedFile(path)])
    members = listed_at(path, settings.pruned, others)
    first = next(members, None)
    if first is None:
        raise SettingsError(f"{path}: not a file, not a folder with programs, and not a glob that matches a file")
    # A file named explicitly is included although excluded by a pattern, unless `force_exclude` is set.
    if first.path == path and not settings.force_exclude:
        return chain([first], members)
    return (each for each in chain([first], members) if not settings.is_excluded(each.path))


def _once(files: Iterable[ListedFile]) -> Iterator[ListedFile]:
    """Yield each path once; the seen paths are on disk, as far as they are many."""
    # Imported here because most runs are given one path.
    import sqlite3

    database = sqlite3.connect("")
    try:
        database.execute("CREATE TABLE seen (path BLOB PRIMARY KEY) WITHOUT ROWID")
        for file in files:
            if database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (os.fsencode(file.path),)).rowcount:
                yield file
    finally:
        database.close()
