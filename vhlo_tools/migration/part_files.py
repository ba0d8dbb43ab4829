"""Temporary files beside the destinations of results, until a result is moved to its destination.

Their names tell which migration wrote them, in which run, and for which file; a random end makes that of each attempt
its own, so that a worker that was given up cannot write into the result of the one that took over.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Final

# Earlier releases wrote names without the random end.
_NAME: Final = re.compile(r"\.vhlo-([0-9a-f]{8})-([0-9]+)-([0-9]+)(?:-[0-9a-f]{8})?\.part")

# No result waits so long, in seconds, for being moved to its destination.
_FORSAKEN: Final = 86400


def part_path(destination: str, key: str, run: int, number: int) -> str:
    folder = os.path.dirname(destination)  # noqa: PTH120 - once for each file
    return f"{folder}/.vhlo-{key}-{run}-{number}-{secrets.token_hex(4)}.part"


def remove_parts(folder: str, key: str, run: int, numbers: Container[int] | None = None) -> None:
    """Remove temporary files of a migration from runs up to ``run``; by default those of all files."""
    for entry, of, in_run, file in _parts_in(folder):
        if of == key and in_run <= run and (numbers is None or file in numbers):
            _remove(entry)


def remove_forsaken(folder: str, key: str, run: int) -> None:
    """Remove the temporary files of killed runs.

    Those are of earlier runs with the same journal, which only one run uses at a time; of other journals after a day.
    """
    for entry, of, in_run, _ in _parts_in(folder):
        if (in_run < run) if of == key else _is_old(entry):
            _remove(entry)


def _parts_in(folder: str) -> Iterator[tuple[os.DirEntry[str], str, int, int]]:
    """Yield the temporary files with the key, the run and the number in each name."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is not None and entry.is_file(follow_symlinks=False):
                yield entry, found[1], int(found[2]), int(found[3])


def _is_old(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _FORSAKEN
    return False


def _remove(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        os.unlink(entry.path)  # noqa: PTH108
