"""Paths of manifests; atomic writes of a file with its manifest, which never lies beside other bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.files import MANIFEST_SUFFIX, SIGNATURE_SUFFIX, Url, place, write_atomically

if TYPE_CHECKING:
    from vhlo_tools.files import Chunk, Place
    from vhlo_tools.manifests.manifest import Manifest


def manifest_place(path: str | PathLike[str]) -> Place:
    """Beside the file: ``model.mlirbc.manifest.json``."""
    return _beside(place(path), MANIFEST_SUFFIX)


def signature_place(path: str | PathLike[str]) -> Place:
    """Beside the file: ``model.mlirbc.sig``; it signs the file and its manifest."""
    return _beside(place(path), SIGNATURE_SUFFIX)


def find_manifest(path: str | PathLike[str]) -> Path | None:
    """Return the manifest beside a file, or beside a link or its target.

    Behind URLs none is looked for: it would be another request for every object.
    """
    where = place(path)
    if isinstance(where, Url):
        return None
    for each in (os.fspath(where), os.path.realpath(where)):
        found = each + MANIFEST_SUFFIX
        # As text: a store may have very many files.
        if os.path.isfile(found):  # noqa: PTH113
            return Path(found)
    return None


def write_with_manifest(
    path: str | PathLike[str], chunks: Iterable[Chunk], manifest: Manifest, *, force: bool = False
) -> None:
    """Write a file and its manifest, each completely or not at all.

    The old manifest is removed first and the new one is written last, so an interruption leaves a file without a
    manifest, which `require` and `run` can be told to refuse.
    """
    where = place(path)
    write_atomically(where, chunks, force=force)
    write_atomically(manifest_place(where), [manifest.encode()], force=force)


def _beside(where: Place, suffix: str) -> Place:
    if isinstance(where, Url):
        return where.as_object().with_key(where.key + suffix)
    return where.with_name(where.name + suffix)
