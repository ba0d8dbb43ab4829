"""Where a migration may read and write: folders, and prefixes of keys in stores."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.remote import is_url
from vhlo_tools.stores import object_url

__all__ = ["Places", "base_of", "below", "resolved"]


def resolved(path: str) -> str:
    """Return a path with all links resolved; a URL stays."""
    return path if is_url(path) else os.path.realpath(path)


def below(folder: str, path: str, base: str) -> str:
    """Return the place in ``folder`` for a file that has ``path``, which is in ``base``."""
    relative = path[len(base) :].lstrip("/") if is_url(path) else os.path.relpath(path, base)
    if is_url(folder):
        return f"{folder.rstrip('/')}/{relative.replace(os.sep, '/')}"
    return os.path.realpath(os.path.join(folder, relative))  # noqa: PTH118


def base_of(path: str) -> str:
    """Return the folder that the files of a path are relative to: the path itself, its parent, or that of the glob.

    For a URL, it ends with a slash, except for a bucket.
    """
    if is_url(path):
        return _base_of_objects(path)
    if Path(path).is_dir():
        return path
    folder = Path(path).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return str(folder)


def _base_of_objects(path: str) -> str:
    from vhlo_tools.remote import glob_start, is_glob, stamp_of

    url = object_url(path)
    if url.is_prefix:
        return str(url)
    if stamp_of(url) is not None:
        return str(url.parent)
    if is_glob(url):
        start = glob_start(url)
        return str(start if start.is_prefix else start.parent)
    return f"{url}/"


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
            return cls((resolved(settings.output_dir),), False, frozenset())
        return cls(
            tuple(resolved(base_of(path)) for path in settings.paths),
            True,
            frozenset(resolved(path) for path in settings.paths),
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


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)
