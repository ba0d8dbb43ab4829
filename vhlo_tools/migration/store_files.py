"""The files of a store: finding them, their kinds, and the destinations of their results."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.formats import (
    ARTIFACT_PRODUCER,
    SET_ASIDE,
    Kind,
    programs_at,
    read_bytes,
    recognise,
)
from vhlo_tools.mapping import open_regular
from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.version import Version

__all__ = [
    "IN_PLACE",
    "FoundFile",
    "Places",
    "Stamp",
    "base_of",
    "files_of",
    "found_at",
    "hash_at",
    "look_at",
]

#: The kinds that are migrated in place. For any other kind an artifact is written beside the file.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_SUFFIX: Final = ".mlirbc"
_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of a file's content: size, modification time and inode.

    Attributes:
        size: The size in bytes.
        modified: The modification time in nanoseconds.
        inode: The inode number.
    """

    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the stamp of a file.

        Raises:
            OSError: If the file does not exist.
        """
        found = os.stat(path)  # noqa: PTH116 - for each file, several times
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the store, with the data collected when listing it.

    Attributes:
        path: The path at which the file was found.
        source: The path of the file itself, with all links resolved.
        destination: The path for its result, with all links resolved.
        stamp: The stamp of the file; ``None`` if it cannot be examined.
        kind: The kind of the file, if known.
        version: The version that the file records, if any.
        is_link: Whether a link leads from the path to the file.
        is_outside: Whether a link leads from one of the paths of the migration to a destination outside of all of them.
    """

    path: str
    source: str
    destination: str
    stamp: Stamp | None = None
    kind: Kind | None = None
    version: Version | None = None
    is_link: bool = False
    is_outside: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """Where a migration may read and write files, with all links resolved.

    Attributes:
        roots: The folder of results, or the folders of the paths.
        in_place: Whether results replace files, or stand beside them.
        named: The files that are paths of the migration themselves: they are migrated wherever they are.
    """

    roots: tuple[str, ...]
    in_place: bool
    named: frozenset[str]

    @classmethod
    def of(cls, settings: MigrationSettings) -> Self:
        """Return the places of a migration."""
        if settings.output_dir:
            return cls((os.path.realpath(settings.output_dir),), False, frozenset())
        return cls(
            tuple(os.path.realpath(base_of(path)) for path in settings.paths),
            True,
            frozenset(os.path.realpath(path) for path in settings.paths),
        )

    def is_outside(self, source: str, place: str) -> bool:
        """Return whether a result, or the file that it replaces, is outside of all these places."""
        return source not in self.named and not any(_is_in(place, each) for each in self.roots)

    def allow(self, source: str, destination: str) -> bool:
        """Return whether a migration with these places may read one file and write the other."""
        if not self.in_place:
            return not self.is_outside(source, destination)
        beside = os.path.dirname(source) == os.path.dirname(destination)  # noqa: PTH120
        return not self.is_outside(source, source) and (beside or not self.is_outside("", destination))


def found_at(settings: MigrationSettings) -> Iterator[FoundFile]:
    """Yield the files of the migration, with the destinations of their results, path by path.

    Raises:
        MigrationError: If one of the paths matches no file.
    """
    output = settings.output_dir and os.path.realpath(settings.output_dir)
    places = Places.of(settings)
    for path in settings.paths:
        base = base_of(path)
        folders = _Folders(base)
        for member in files_of(path, _exclude(settings)):
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
            place = os.path.realpath(os.path.join(output, os.path.relpath(member, base))) if output else source  # noqa: PTH118
            is_outside = places.is_outside(source, place)
            yield FoundFile(member, source, _named(place, kind), stamp, kind, version, is_link, is_outside)


class _Folders:
    """Resolves the links in paths of files that come folder by folder: those of each folder once.

    Args:
        base: The folder that the paths are relative to.
    """

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


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def files_of(path: str, exclude: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that a path matches, in no particular order.

    Raises:
        MigrationError: If the path matches none.
    """
    members = programs_at(path, exclude, ordered=False)
    first = next(members, None)
    if first is None:
        if os.path.lexists(path) and not Path(path).is_dir():
            yield path  # a dangling link, which is reported as unreadable later
            return
        raise MigrationError(f"{path}: not a file, not a folder with programs, and not a glob that matches a file")
    yield first
    yield from members


def base_of(path: str) -> str:
    """Return the folder that the files of a path are relative to: the path itself, its parent, or that of the glob."""
    if Path(path).is_dir():
        return path
    folder = Path(path).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return str(folder)


def look_at(path: str) -> tuple[Kind | None, Version | None]:
    """Return the kind and the version of a file, by its head if possible; its processing reports any error."""
    with suppress(OSError, VhloToolsError):
        with open_regular(Path(path)) as file:
            head = file.read(_HEAD)
        with suppress(InvalidProgramError):
            kind = recognise(head, path)
            if kind is Kind.PORTABLE_ARTIFACT:
                version = head.partition(ARTIFACT_PRODUCER)[2].partition(b"\0")[0]
                return kind, Version(version.decode("ascii", "replace"))
            if kind in _SEEN_FROM_HEAD:
                return kind, None
        data = read_bytes(Path(path))
        kind = recognise(data, path)
        return kind, JaxContainer(data, name=path).version if kind is Kind.JAX_EXPORT else None
    return None, None


def hash_at(path: str) -> str | None:
    """Return the SHA-256 of a file, or ``None`` if it does not exist or cannot be read."""
    import hashlib

    with suppress(OSError), open_regular(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def _exclude(settings: MigrationSettings) -> tuple[str, ...]:
    return (*SET_ASIDE, *settings.exclude, *([f"*{glob.escape(settings.backup)}"] if settings.backup else []))


def _named(place: str, kind: Kind | None) -> str:
    """Return the destination of a file's result, given the destination that an artifact would have."""
    return place if kind is None or kind in IN_PLACE else str(Path(place).with_suffix(_SUFFIX))
