"""Files of a migration, and the destinations of their results."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import replace

from vhlo_tools.errors import MigrationError
from vhlo_tools.files import SET_ASIDE, Kind, Url, objects_at, place
from vhlo_tools.migration.places import Places
from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.records import dataclass
from vhlo_tools.stores import RESULT_SUFFIX, Stamp, base_of, below, files_of, look_at, object_url, resolved, result_at
from vhlo_tools.version import Version


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


def found_at(settings: MigrationSettings) -> Iterator[FoundFile]:
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
        to = result_at(below(output, member, base) if output else source, kind)
        yield FoundFile(member, source, to, stamp, kind, version, is_link)


def _objects(path: str, settings: MigrationSettings, output: str | None) -> Iterator[FoundFile]:
    base, is_empty = base_of(path), True
    for listed in objects_at(object_url(path), _exclude(settings)):
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
    return (*SET_ASIDE, *settings.exclude, *([f"*{glob.escape(settings.backup)}"] if settings.backup else []))
