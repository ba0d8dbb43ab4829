"""The files of a store: which are meant, what each is, and where its result shall stand."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from vhlo_tools.artifact import JaxContainer, Kind, programs_at, read_bytes, recognise
from vhlo_tools.artifact.content import ARTIFACT_PRODUCER
from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.migration.settings import Settings
from vhlo_tools.version import Version

__all__ = ["IN_PLACE", "SET_ASIDE", "Found", "Stamp", "base_of", "files_of", "found_at", "hash_at", "look_at"]

#: What a migration leaves in a store, and no migration and no watch takes for a part of it: old files that are kept,
#: and what is being written.
SET_ASIDE: Final = ("*.orig", ".vhlo-*")

#: The kinds that stay what they are at every version. Of any other kind an artifact is made, beside it.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_SUFFIX: Final = ".mlirbc"
_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what it is seen that a file is still the same.

    Attributes:
        size: Its bytes.
        modified: When it was last written, in nanoseconds.
        inode: Which file it is.
    """

    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the stamp of a file.

        Raises:
            OSError: If there is none.
        """
        found = Path(path).stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the store, as it was found.

    Attributes:
        path: As it was found.
        source: The file itself, at the end of all links.
        destination: Where its result shall stand, at the end of all links.
        stamp: What it looked like; ``None`` if it cannot be looked at.
        kind: What it is, if that is known.
        version: The version that it says, if it says one.
    """

    path: str
    source: str
    destination: str
    stamp: Stamp | None = None
    kind: Kind | None = None
    version: Version | None = None


def found_at(settings: Settings) -> Iterator[Found]:
    """Yield the files that are meant, and where their results shall stand, path by path.

    Raises:
        MigrationError: If one of the paths means no file.
    """
    output = settings.output_dir and os.path.realpath(settings.output_dir)
    for path in settings.paths:
        base = base_of(path)
        for member in files_of(path, _exclude(settings)):
            source = os.path.realpath(member)
            if output and source.startswith(output + os.sep):
                continue
            kind, version = look_at(source)
            try:
                stamp = Stamp.of(source)
            except OSError:
                stamp = None
            place = os.path.realpath(os.path.join(output, os.path.relpath(member, base))) if output else source  # noqa: PTH118
            yield Found(member, source, _named(place, kind), stamp, kind, version)


def files_of(path: str, exclude: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that a path means, in no order.

    Raises:
        MigrationError: If it means none.
    """
    members = programs_at(path, exclude, ordered=False)
    first = next(members, None)
    if first is None:
        if os.path.lexists(path) and not Path(path).is_dir():
            yield path  # a link to nothing, which cannot be read
            return
        raise MigrationError(f"{path}: no file, no folder with programs, and no glob that any file fits")
    yield first
    yield from members


def base_of(path: str) -> str:
    """Return the folder below which the files of a path keep their places: itself, or what holds it, or the glob."""
    if Path(path).is_dir():
        return path
    folder = Path(path).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return str(folder)


def look_at(path: str) -> tuple[Kind | None, Version | None]:
    """Return what a file is and which version it says, as far as a glance tells; whoever works on it tells the rest."""
    with suppress(OSError, VhloToolsError):
        with Path(path).open("rb") as file:
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
    """Return the SHA-256 of a file, or ``None`` if there is none that can be read."""
    import hashlib

    with suppress(OSError), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def _exclude(settings: Settings) -> tuple[str, ...]:
    return (*SET_ASIDE, *settings.exclude, *([f"*{settings.backup}"] if settings.backup else []))


def _named(place: str, kind: Kind | None) -> str:
    """Return where the result of a file stands that, were it an artifact, would stand at ``place``."""
    return place if kind is None or kind in IN_PLACE else str(Path(place).with_suffix(_SUFFIX))
