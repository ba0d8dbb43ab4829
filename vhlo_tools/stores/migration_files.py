"""Files of a migration: where it may read and write, temporary files, and the destinations of results."""

from __future__ import annotations

import glob
import os
import re
import secrets
import time
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, Self

from vhlo_tools.errors import MigrationError
from vhlo_tools.files import Kind, Others, Url, nobody, objects_at, opened_folder, place
from vhlo_tools.records import dataclass
from vhlo_tools.stores.members import (
    RESULT_SUFFIX,
    Stamp,
    base_of,
    below,
    files_of,
    look_at,
    object_url,
    resolved,
    result_at,
)
from vhlo_tools.stores.migration_records import MigrationRecord
from vhlo_tools.stores.migration_settings import MigrationSettings
from vhlo_tools.version import Version

# Places where a migration may read and write: folders, and prefixes of keys in stores


@dataclass(frozen=True, slots=True)
class Places:
    """Places where a migration may read and write files, with all links resolved."""

    roots: tuple[str, ...]  # the folder of results, or the folders of the paths
    in_place: bool  # whether results replace files, or are beside them
    named: frozenset[str]  # files that are paths of the migration themselves: migrated wherever they are

    @classmethod
    def of(cls, settings: MigrationSettings) -> Self:
        if settings.output_dir:
            return cls((resolved(settings.output_dir),), False, frozenset())
        return cls(
            tuple(resolved(base_of(path)) for path in settings.paths),
            True,
            frozenset(resolved(path) for path in settings.paths),
        )

    def is_outside(self, source: str, place: str) -> bool:
        """Whether a result, or the file that it replaces, is outside of all these places."""
        return source not in self.named and not any(_is_in(place, each) for each in self.roots)

    def allow(self, source: str, destination: str) -> bool:
        """Whether a migration may read one file and write the other."""
        if not self.in_place:
            return not self.is_outside(source, destination)
        beside = os.path.dirname(source) == os.path.dirname(destination)  # noqa: PTH120
        return not self.is_outside(source, source) and (beside or not self.is_outside("", destination))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


# Temporary files beside the destinations of results, until a result is moved to its destination
#
# Their names tell which migration wrote them, in which run, and for which file; a random end makes that of each attempt
# its own, so that a worker that was given up cannot write into the result of the one that took over.

# Earlier releases wrote names without the random end.
_NAME: Final = re.compile(r"\.vhlo-([0-9a-f]{8})-([0-9]+)-([0-9]+)(?:-[0-9a-f]{8})?\.part")

# No result waits so long, in seconds, for being moved to its destination.
_FORSAKEN: Final = 86400


def part_path(destination: str, key: str, run: int, number: int) -> str:
    folder = os.path.dirname(destination)  # noqa: PTH120 - once for each file
    return f"{folder}/.vhlo-{key}-{run}-{number}-{secrets.token_hex(4)}.part"


def remove_parts(folder: str, key: str, run: int, numbers: Container[int] | None = None) -> None:
    """Remove temporary files of a migration from runs up to ``run``; by default those of all files."""
    for entry, of, in_run, file in _parts_in(folder):
        if of == key and in_run <= run and (numbers is None or file in numbers):
            remove_in(folder, entry.name)


def remove_forsaken(folder: str, key: str, run: int) -> None:
    """Remove the temporary files of killed runs.

    Those are of earlier runs with the same journal, which only one run uses at a time; of other journals after a day.
    """
    for entry, of, in_run, _ in _parts_in(folder):
        if (in_run < run) if of == key else _is_old(entry):
            remove_in(folder, entry.name)


def _parts_in(folder: str) -> Iterator[tuple[os.DirEntry[str], str, int, int]]:
    """Yield the temporary files with the key, the run and the number in each name."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is not None and entry.is_file(follow_symlinks=False):
                yield entry, found[1], int(found[2]), int(found[3])


def _is_old(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _FORSAKEN
    return False


def remove_in(folder: str, name: str) -> None:
    """Remove a file if it is there, and nothing outside of the folder."""
    with suppress(OSError), opened_folder(folder) as at:
        os.unlink(at.at(name), dir_fd=at.handle)


# Files of a migration, and the destinations of their results


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the store, with the data collected when listing it."""

    path: str  # where the file was found
    source: str  # the file itself, with all links resolved
    destination: str  # of the result, with all links resolved
    stamp: Stamp | None = None  # None if the file cannot be examined
    kind: Kind | None = None
    version: Version | None = None  # as the file records it
    is_link: bool = False  # whether a link leads from ``path`` to the file
    is_outside: bool = False  # a link leads outside of all paths of the migration

    @property
    def size(self) -> int:
        return self.stamp.size if self.stamp else 0

    def record(self, target: Version) -> MigrationRecord:
        """Return the record of a file that could not be read."""
        return MigrationRecord(self.path, "unreadable", target, self.kind, self.version, self.size)


def found_at(settings: MigrationSettings, others: Others = nobody) -> Iterator[FoundFile]:
    output = settings.output_dir and resolved(settings.output_dir)
    places = Places.of(settings)
    for path in settings.paths:
        find = _objects if isinstance(place(path), Url) else _files
        for each in find(path, settings, output, others):
            yield replace(each, is_outside=places.is_outside(each.source, each.destination))


def _files(path: str, settings: MigrationSettings, output: str | None, others: Others) -> Iterator[FoundFile]:
    base = base_of(path)
    folders = _Folders(base)
    for member in files_of(path, _exclude(settings), others):
        source, is_link = folders.resolved(member)
        if output and source.startswith(output + os.sep):
            continue
        is_link = is_link and member != path
        if is_link and not settings.follow:
            continue
        kind, version = look_at(source)
        try:
            stamp = Stamp.of(source)
        except OSError:
            stamp = None
        to = result_at(below(output, member, base) if output else source, kind)
        yield FoundFile(member, source, to, stamp, kind, version, is_link)


def _objects(path: str, settings: MigrationSettings, output: str | None, others: Others) -> Iterator[FoundFile]:
    base, is_empty = base_of(path), True
    for listed in objects_at(object_url(path), _exclude(settings), others):
        is_empty = False
        source = str(listed.url)
        if output and source.startswith(f"{output}/"):
            continue
        # A result has the same name whatever such an object holds.
        kind, version = (None, None) if listed.url.suffix == RESULT_SUFFIX else look_at(source)
        to = result_at(below(output, source, base) if output else source, kind)
        yield FoundFile(source, source, to, Stamp.of_object(listed.stamp), kind, version)
    if is_empty:
        raise MigrationError(f"{path}: not an object, and no prefix or glob of objects that are programs")


class _Folders:
    """Resolves the links in paths of files that come folder by folder: those of each folder once."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._root = os.path.realpath(base)
        self._last: str | None = None
        self._real = ""
        self._is_link = False

    def resolved(self, path: str) -> tuple[str, bool]:
        """Return a path with all links resolved, and whether there are any below the base."""
        folder, name = os.path.split(path)
        if folder != self._last:
            self._last, self._real = folder, os.path.realpath(folder)
            inside = os.path.normpath(os.path.join(self._root, os.path.relpath(folder or os.curdir, self._base)))  # noqa: PTH118
            self._is_link = self._real != inside
        if os.path.islink(path):  # noqa: PTH114
            return os.path.realpath(path), True
        return os.path.join(self._real, name), self._is_link  # noqa: PTH118


def _exclude(settings: MigrationSettings) -> tuple[str, ...]:
    return (*settings.exclude, *([f"*{glob.escape(settings.backup)}"] if settings.backup else []))
