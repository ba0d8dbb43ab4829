"""Programs of a store: their files, and what the head of each says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.files import (
    ARTIFACT_PRODUCER,
    Kind,
    Url,
    is_url,
    objects_at,
    open_regular,
    place,
    programs_at,
    read_bytes,
    recognise,
    view,
)
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

#: The kinds that contain artifacts: they are migrated in place, and have windows.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


@dataclass(frozen=True, slots=True)
class ListedFile:
    path: str  # Path or URL as the user named it, or as found below that; relative to the working directory.
    size: int = 0  # in bytes; 0 if it is unknown


def listed_at(path: str, exclude: tuple[str, ...]) -> Iterator[ListedFile]:
    """Yield the files that a path selects, in the order of their names, each with its size."""
    where = place(path)
    if isinstance(where, Url):
        # Their listing says how large objects are.
        return (ListedFile(str(each.url), each.stamp.size) for each in objects_at(where, exclude))
    return (ListedFile(each, _size_of(each)) for each in programs_at(path, exclude))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - for each file
    except OSError:
        return 0  # whoever reads it says why


def files_of(path: str, exclude: tuple[str, ...]) -> Iterator[str]:
    """In no particular order; ``MigrationError`` if the path matches nothing."""
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
        if kind is not Kind.JAX_EXPORT:
            return kind, None
        # Imported here because few stores have such files.
        from vhlo_tools.artifact import JaxContainer

        return kind, JaxContainer(data, name=path).version
    return None, None


def _head_of(path: str) -> bytes:
    if is_url(path):
        # Imported here because files need none of it.
        from vhlo_tools.files import open_object
        from vhlo_tools.stores.stamps import object_url

        return bytes(view(open_object(object_url(path), head=_HEAD))[:_HEAD])
    with open_regular(Path(path)) as file:
        return file.read(_HEAD)
