"""Discovery of programs: the files that a path on a command line selects."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from vhlo_tools.bytecode import MAGIC
from vhlo_tools.formats.backups import PROGRAM_SUFFIXES, Backups, backups_in
from vhlo_tools.formats.jax_export.export_file import is_jax_export
from vhlo_tools.formats.saved_model import is_saved_model
from vhlo_tools.mapping import kind_of_file, map_file, open_regular
from vhlo_tools.printable import printable

__all__ = ["SET_ASIDE", "programs_at"]

#: Files that a migration leaves in a store, and that are no programs of it: backups of old files, and temporary files.
#: Backups with other suffixes are left out by their list (vhlo_tools/formats/backups.py).
SET_ASIDE: Final = ("*.orig", ".vhlo-*")

#: The plausible offsets of the first table of a FlatBuffer, with which it begins; jax.export writes a small one.
_ROOT: Final = range(4, 1 << 12)


def programs_at(path: str, exclude: tuple[str, ...] = (), *, ordered: bool = True) -> Iterator[str]:
    """Yield the files that a path selects, one folder after the other.

    Backups that a migration has listed are left out of folders and globs.

    Args:
        path: A file, or a SavedModel, selected whatever its content; a folder, whose programs are selected; or a glob.
        exclude: Globs of files and folders in a folder or a glob to omit, by name or by path relative to the start of
            the search.
        ordered: Whether to sort each folder by name. Otherwise the entries of a folder are not collected in memory.

    Yields:
        Paths that can be opened from the current directory; nothing if there is no such file. What is no regular file,
        such as a FIFO, is left out of folders, with a warning to the log.
    """
    if Path(path).is_file() or is_saved_model(path):
        yield path
    elif Path(path).is_dir():
        yield from _programs_in(path, exclude, ordered=ordered)
    else:
        # Unlike Path.glob, these functions accept absolute patterns.
        found = sorted(glob.glob(path, recursive=True)) if ordered else glob.iglob(path, recursive=True)  # noqa: PTH207
        backups: Backups | None = None
        for each in found:
            if Path(each).is_file() and not _is_excluded(each, exclude):
                folder, name = os.path.split(each)
                if backups is None or backups.folder != folder:
                    backups = backups_in(folder, _is_program)
                if name not in backups:
                    yield each


def _programs_in(top: str, exclude: tuple[str, ...], *, ordered: bool) -> Iterator[str]:
    """Yield the programs in a folder, then those in its subfolders; links to folders are not followed.

    A folder that cannot be read is yielded itself: opening it says why.
    """
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        below: list[str] = []
        try:
            entries = os.scandir(folder)
        except OSError:
            yield folder
            continue
        with entries:
            backups = backups_in(folder, _is_program)
            for entry in sorted(entries, key=lambda each: each.name) if ordered else entries:
                if exclude and _is_excluded(os.path.relpath(entry.path, top), exclude):
                    continue
                kind = _kind_of(entry)
                if kind == "a folder":
                    if not entry.is_symlink():
                        below.append(entry.path)
                elif kind is not None:
                    _say_skipped(entry.path, kind)
                elif entry.name not in backups and _is_program(entry.path):
                    yield str(Path(entry.path))  # without a leading "./"
        waiting.extend(reversed(below))


def _say_skipped(path: str, kind: str) -> None:
    # Imported here because few folders have such entries.
    import logging

    logging.getLogger("vhlo_tools").warning("vhlo: skipped %s: it is %s", printable(path), kind)


def _kind_of(entry: os.DirEntry[str]) -> str | None:
    """Return what an entry of a folder is, with links followed; ``None`` for a file, and for a link to nothing."""
    try:
        return kind_of_file(entry.stat().st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a loop of links"
        # Of a path that is too long, only its folder knows.
        return "a folder" if entry.is_dir(follow_symlinks=False) else None


def _is_excluded(path: str, exclude: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(Path(path).name, pattern) for pattern in exclude)


def _is_program(path: str) -> bool:
    """Return whether a file is a program: by its suffix, or by its content, which alone may be inconclusive."""
    return path.endswith(PROGRAM_SUFFIXES) or _holds_program(path)


def _holds_program(path: str) -> bool:
    try:
        if not Path(path).is_file():
            return False
        with open_regular(Path(path)) as file:
            head = file.read(4)
        if head == MAGIC:
            return True
        return int.from_bytes(head, "little") in _ROOT and len(head) == 4 and is_jax_export(map_file(Path(path)))
    except OSError as error:
        # Opening it says so; another file that cannot be read may be anything.
        return error.errno == errno.ENAMETOOLONG
