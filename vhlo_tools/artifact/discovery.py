"""Programs in folders: which files are meant by the paths that a user names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from vhlo_tools.artifact.saved_model import is_saved_model
from vhlo_tools.bytecode import MAGIC

__all__ = ["programs_at"]

#: What stands in a folder is taken by content, or by these suffixes where content alone does not tell.
_SUFFIXES: Final = (".mlir", ".mlirbc", ".jax_export")


def programs_at(path: str, exclude: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the files that a path means, one folder after the other, each sorted by name.

    Args:
        path: A file, or a SavedModel, taken whatever it holds; a folder, of which programs are taken; or a glob.
        exclude: Globs of files and folders in a folder or a glob that are left out, by name or by path from where the
            walk began.

    Yields:
        Paths as they can be opened from here; nothing if there is no such file.
    """
    if Path(path).is_file() or is_saved_model(path):
        yield path
    elif Path(path).is_dir():
        yield from _programs_in(path, exclude)
    else:
        # Unlike Path.glob it takes absolute patterns.
        for each in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207
            if Path(each).is_file() and not _is_excluded(each, exclude):
                yield each


def _programs_in(top: str, exclude: tuple[str, ...]) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        below = Path(folder).relative_to(top)
        folders[:] = sorted(each for each in folders if not _is_excluded(str(below / each), exclude))
        for name in sorted(names):
            path = Path(folder, name)
            if not _is_excluded(str(below / name), exclude) and (path.suffix in _SUFFIXES or _starts_as_bytecode(path)):
                yield str(path)


def _is_excluded(path: str, exclude: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(Path(path).name, pattern) for pattern in exclude)


def _starts_as_bytecode(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
