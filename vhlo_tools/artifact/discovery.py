"""Programs in folders: which files are meant by the paths that a user names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from vhlo_tools.artifact.jax_export import is_jax_export
from vhlo_tools.artifact.saved_model import is_saved_model
from vhlo_tools.bytecode import MAGIC
from vhlo_tools.mapping import map_file

__all__ = ["programs_at"]

#: What stands in a folder is taken by content, or by these suffixes where content alone does not tell.
_SUFFIXES: Final = (".mlir", ".mlirbc", ".jax_export")

#: A FlatBuffer begins with where its first table stands, which jax.export writes near the beginning.
_ROOT: Final = range(4, 1 << 12)


def programs_at(path: str, exclude: tuple[str, ...] = (), *, ordered: bool = True) -> Iterator[str]:
    """Yield the files that a path means, one folder after the other.

    Args:
        path: A file, or a SavedModel, taken whatever it holds; a folder, of which programs are taken; or a glob.
        exclude: Globs of files and folders in a folder or a glob that are left out, by name or by path from where the
            walk began.
        ordered: Whether each folder is sorted by name. Otherwise the entries of a folder are not even held.

    Yields:
        Paths as they can be opened from here; nothing if there is no such file.
    """
    if Path(path).is_file() or is_saved_model(path):
        yield path
    elif Path(path).is_dir():
        yield from _programs_in(path, path, exclude, ordered=ordered)
    else:
        # Unlike Path.glob they take absolute patterns.
        found = sorted(glob.glob(path, recursive=True)) if ordered else glob.iglob(path, recursive=True)  # noqa: PTH207
        for each in found:
            if Path(each).is_file() and not _is_excluded(each, exclude):
                yield each


def _programs_in(top: str, folder: str, exclude: tuple[str, ...], *, ordered: bool) -> Iterator[str]:
    """Yield the programs in ``folder``, then those in the folders in it; links to folders are not followed."""
    below: list[str] = []
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in sorted(entries, key=lambda each: each.name) if ordered else entries:
            if exclude and _is_excluded(os.path.relpath(entry.path, top), exclude):
                continue
            if entry.is_dir():
                if not entry.is_symlink():
                    below.append(entry.path)
            elif entry.name.endswith(_SUFFIXES) or _holds_program(entry.path):
                yield str(Path(entry.path))  # without the dot of the folder that one is in
    for each in below:
        yield from _programs_in(top, each, exclude, ordered=ordered)


def _is_excluded(path: str, exclude: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(Path(path).name, pattern) for pattern in exclude)


def _holds_program(path: str) -> bool:
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            head = file.read(4)
        if head == MAGIC:
            return True
        return int.from_bytes(head, "little") in _ROOT and len(head) == 4 and is_jax_export(map_file(Path(path)))
    except OSError:
        return False
