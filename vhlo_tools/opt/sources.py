"""The input of a program, and its parts where it is split.

Source: ``mlir/lib/Support/ToolUtilities.cpp`` in llvm/llvm-project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["DEFAULT_MARKER", "STANDARD", "Source", "as_file", "read_source", "split_source"]

#: What stands between parts, on a line of its own.
DEFAULT_MARKER: Final = "// -----"

#: The name of stdin and of stdout on the command line.
STANDARD: Final = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """Text or bytecode with the name that messages and locations have for it.

    Attributes:
        name: The name.
        data: What it holds.
        path: The file that holds just this, if there is one.
    """

    name: str
    data: bytes
    path: str | None = None

    @property
    def is_bytecode(self) -> bool:
        """Whether it is bytecode."""
        return self.data.startswith(b"ML\xefR")

    @property
    def text(self) -> str:
        """What it holds, as text."""
        return self.data.decode(errors="replace")


def read_source(path: str, stdin: BinaryIO) -> Source:
    """Return what a file holds, or what is on stdin.

    Raises:
        OSError: If it cannot be read.
    """
    if path == STANDARD:
        return Source("<stdin>", stdin.read())
    return Source(path, Path(path).read_bytes(), path)


def split_source(source: Source, marker: str) -> tuple[list[Source], list[int]]:
    """Return the parts of a source, each named by the line at which it begins.

    Args:
        source: The source.
        marker: What stands between parts.

    Returns:
        The parts, and the lines that look like markers but are none.
    """
    head, tail = marker[:-2].encode(), marker[-2:].encode()
    first, *others = source.data.split(head)
    starts: list[tuple[int, bytes]] = [(0, first)]
    misses = []
    position = len(first)
    for each in others:
        position += len(head)
        if each.startswith(tail):
            starts.append((position + len(tail), each[len(tail) :]))
        else:
            misses.append(source.data.count(b"\n", 0, position) + 1)
            begin, before = starts[-1]
            starts[-1] = begin, before + head + each
        position += len(each)
    parts = []
    for begin, data in starts:
        line = source.data.count(b"\n", 0, begin) + 1
        parts.append(Source(f"within split at {source.name}:{line} offset ", data))
    return [part for part in parts if part.data], misses


@contextmanager
def as_file(source: Source, data: bytes | None = None) -> Iterator[str]:
    """Yield a path by which MLIR reads a source.

    Locations have the name of the source, but if that begins with a slash and ``data`` is given: then they have the
    path that is yielded. The working directory is another one meanwhile, if the source is no file: what is parsed can
    be named in no other way.

    Args:
        source: The source.
        data: What to read in its place.
    """
    if source.path is not None and data is None:
        yield source.path
        return
    # Not at the top: it brings much along.
    import tempfile

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        # A name may go up; then it does so from further below.
        base = Path(folder, *["inner"] * source.name.count(".."))
        path = base / source.name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.data if data is None else data)
        os.chdir(base)
        try:
            yield str(path) if source.name.startswith("/") else source.name
        finally:
            os.chdir(before)
