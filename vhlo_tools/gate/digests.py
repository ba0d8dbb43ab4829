"""Digests of the contents of programs, independent of names and dates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from vhlo_tools.files import Url, digest_of, is_saved_model, read_bytes


def digest_at(where: Path | Url) -> bytes:
    """Return SHA-256 of a file or an object; for a SavedModel, of the names and contents of its files."""
    if isinstance(where, Url) or not is_saved_model(where):
        return digest_of(read_bytes(where))
    digest = hashlib.sha256()
    for name in sorted(_files_in(where)):
        digest.update(os.fsencode(name) + b"\0" + digest_of(read_bytes(where / name)))
    return digest.digest()


def _files_in(top: Path) -> Iterator[str]:
    for folder, _, names in os.walk(top, onerror=_refuse):
        yield from (os.path.relpath(os.path.join(folder, name), top) for name in names)  # noqa: PTH118


def _refuse(error: OSError) -> None:
    raise error
