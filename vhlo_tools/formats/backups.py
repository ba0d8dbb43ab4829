"""Backups of a migration, which discovery skips: old files beside their replacements.

A migration lists the backups that it makes in the file :data:`BACKUPS` of their folder, one name per line, and appends
only. A list may come with a store that nobody trusts. It must not hide a program that somebody loads by its own name,
so a listed file is a backup only if its original is beside it (:meth:`Backups.__contains__`).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from vhlo_tools.mapping import kind_of_file
from vhlo_tools.records import dataclass
from vhlo_tools.system import BINARY, NO_BLOCKING, NO_LINKS, read_at

BACKUPS: Final = ".vhlo-backups"
#: Suffixes of names of programs.
PROGRAM_SUFFIXES: Final = (".mlir", ".mlirbc", ".jax_export")

#: What a line cannot hold as it is; any other byte of a name stands for itself.
_ESCAPED: Final = re.compile(rb"[%\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")
_LINE: Final = re.compile(rb"(?:[^%]|%[0-9A-F]{2})+")
#: Ends a line that was cut short: not an escape, so that the line is no name.
_CUT: Final = b"%\n"
#: The largest list that is read, in bytes: millions of names. No list of ours is larger by mistake.
_MOST: Final = 1 << 28
# A link could lead anywhere, and opening a FIFO would wait.
_SAFELY: Final = NO_LINKS | NO_BLOCKING | BINARY


@dataclass(frozen=True, slots=True)
class Backups:
    folder: str
    listed: frozenset[str]
    is_program: Callable[[str], bool]  # whether a file is a program, by its name or its content

    def __contains__(self, name: str) -> bool:
        """Whether a file is a backup: it is listed, and named as a program beside it with a suffix.

        The name of a program has another beginning, or another ending: ``net.mlirbc`` is no backup of ``net.mlir``.
        """
        if name not in self.listed:
            return False
        ending = _ending(name)
        # As text: a folder may have very many backups.
        path = os.path.join(self.folder, name)  # noqa: PTH118
        return any(
            ending in ("", _ending(original)) and os.path.isfile(original) and self.is_program(original)  # noqa: PTH113
            for original in (path[:-length] for length in range(1, len(name)))
        )


def backups_in(folder: str, is_program: Callable[[str], bool]) -> Backups:
    """Return none if the list cannot be read, so that all files count."""
    # What follows the last line end is a line that was cut short.
    lines = _content(Path(folder) / BACKUPS).split(b"\n")[:-1]
    names = (_name(line) for line in lines if _LINE.fullmatch(line))
    return Backups(folder, frozenset(names), is_program)


def list_backups(folder: str, names: Iterable[str]) -> None:
    """Append names to the list of backups in a folder, and wait until they are on disk.

    Called before the backups are made: a name without a file does no harm. Other processes may append too.
    """
    path = os.path.join(folder, BACKUPS)  # noqa: PTH118
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFELY, 0o666)
    try:
        found = os.fstat(handle)
        if (kind := kind_of_file(found.st_mode)) is not None:
            raise OSError(errno.EINVAL, f"it is {kind}", path)
        is_whole = not found.st_size or read_at(handle, 1, found.st_size - 1) == b"\n"
        # One write, which no other process can come between.
        lines = (b"" if is_whole else _CUT) + b"".join(map(_line, names))
        if os.write(handle, lines) < len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        os.fsync(handle)
    finally:
        os.close(handle)


def _content(path: Path) -> bytes:
    """Return nothing if the list cannot be read or is no regular file of a possible size."""
    try:
        handle = os.open(path, os.O_RDONLY | _SAFELY)
    except OSError:
        return b""
    try:
        found = os.fstat(handle)
        if kind_of_file(found.st_mode) is not None or found.st_size > _MOST:
            return b""
        with open(handle, "rb", closefd=False) as file:
            return file.read(_MOST)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _ending(name: str) -> str:
    return next((suffix for suffix in PROGRAM_SUFFIXES if name.endswith(suffix)), "")


def _line(name: str) -> bytes:
    return _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], os.fsencode(name)) + b"\n"


def _name(line: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), line))
