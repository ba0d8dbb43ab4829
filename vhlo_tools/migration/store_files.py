"""The files of a store: finding them, their kinds, and the destinations of their results."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.formats import (
    ARTIFACT_PRODUCER,
    SET_ASIDE,
    Kind,
    objects_at,
    programs_at,
    read_bytes,
    recognise,
)
from vhlo_tools.mapping import open_regular, view
from vhlo_tools.migration.places import Places, base_of, below, resolved
from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.migration.stamps import Stamp, object_url
from vhlo_tools.remote import Url, is_url, open_object, place
from vhlo_tools.version import Version

__all__ = ["IN_PLACE", "FoundFile", "files_of", "found_at", "look_at"]

#: The kinds that are migrated in place. For any other kind an artifact is written beside the file.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_SUFFIX: Final = ".mlirbc"
_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


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


def found_at(settings: MigrationSettings) -> Iterator[FoundFile]:
    """Yield the files of the migration, with the destinations of their results, path by path.

    Raises:
        MigrationError: If one of the paths matches no file.
    """
    output = settings.output_dir and resolved(settings.output_dir)
    places = Places.of(settings)
    for path in settings.paths:
        found = _objects(path, settings, output) if isinstance(place(path), Url) else _files(path, settings, output)
        for each in found:
            yield replace(each, is_outside=places.is_outside(each.source, each.destination))


def _files(path: str, settings: MigrationSettings, output: str | None) -> Iterator[FoundFile]:
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
        to = _named(below(output, member, base) if output else source, kind)
        yield FoundFile(member, source, to, stamp, kind, version, is_link)


def _objects(path: str, settings: MigrationSettings, output: str | None) -> Iterator[FoundFile]:
    base, is_empty = base_of(path), True
    for listed in objects_at(object_url(path), _exclude(settings)):
        is_empty = False
        source = str(listed.url)
        if output and source.startswith(f"{output}/"):
            continue
        # A result has the same name whatever such an object holds.
        kind, version = (None, None) if listed.url.suffix == _SUFFIX else look_at(source)
        to = _named(below(output, source, base) if output else source, kind)
        yield FoundFile(source, source, to, Stamp.of_object(listed.stamp), kind, version)
    if is_empty:
        raise MigrationError(f"{path}: not an object, and no prefix or glob of objects that are programs")


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


def look_at(path: str) -> tuple[Kind | None, Version | None]:
    """Return the kind and the version of a file, by its head if possible; its processing reports any error."""
    with suppress(OSError, VhloToolsError):
        head = _head_of(path)
        with suppress(InvalidProgramError):
            kind = recognise(head, path)
            if kind is Kind.PORTABLE_ARTIFACT:
                version = head.partition(ARTIFACT_PRODUCER)[2].partition(b"\0")[0]
                return kind, Version(version.decode("ascii", "replace"))
            if kind in _SEEN_FROM_HEAD:
                return kind, None
        data = read_bytes(place(path))
        kind = recognise(data, path)
        return kind, JaxContainer(data, name=path).version if kind is Kind.JAX_EXPORT else None
    return None, None


def _head_of(path: str) -> bytes:
    if is_url(path):
        return bytes(view(open_object(object_url(path), head=_HEAD))[:_HEAD])
    with open_regular(Path(path)) as file:
        return file.read(_HEAD)


def _exclude(settings: MigrationSettings) -> tuple[str, ...]:
    return (*SET_ASIDE, *settings.exclude, *([f"*{glob.escape(settings.backup)}"] if settings.backup else []))


def _named(destination: str, kind: Kind | None) -> str:
    """Return the destination of a file's result, given the destination that an artifact would have."""
    return destination if kind is None or kind in IN_PLACE else str(place(destination).with_suffix(_SUFFIX))
