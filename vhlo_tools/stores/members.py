"""The programs of a store: finding their files, and what the head of each says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.formats import ARTIFACT_PRODUCER, Kind, programs_at, read_bytes, recognise
from vhlo_tools.mapping import open_regular, view
from vhlo_tools.remote import is_url, open_object, place
from vhlo_tools.stores.stamps import object_url
from vhlo_tools.version import Version

__all__ = ["IN_PLACE", "files_of", "look_at"]

#: The kinds that contain artifacts: they are migrated in place, and have windows.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


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
