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

from vhlo_tools.opt.arguments import UsageError

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
        line: The line of the input at which it begins, from one.
    """

    name: str
    data: bytes
    path: str | None = None
    line: int = 1

    @property
    def title(self) -> str:
        """What to call it where there are others of its name."""
        return self.name if self.line == 1 else f"{self.name}:{self.line}"

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
        UsageError: If it cannot be read.
    """
    try:
        return Source("<stdin>", stdin.read()) if path == STANDARD else Source(path, Path(path).read_bytes(), path)
    except OSError as error:
        raise UsageError(f"cannot open input file '{path}': {error.strerror}") from error


def split_source(source: Source, marker: str, *, in_place: bool) -> tuple[list[Source], list[tuple[int, int]]]:
    """Return the parts of a source.

    Args:
        source: The source.
        marker: What stands between parts.
        in_place: Whether parts have the name of the source and its lines, those before them being empty; otherwise each
            has lines of its own, and is named by the line at which it begins.

    Returns:
        The parts, and the lines and columns, from one, of what begins like a marker but is none.
    """
    # Of the shortest markers, nothing is a beginning.
    cut = len(marker) - 2 if len(marker) > 2 else len(marker)
    head, tail = marker[:cut].encode(), marker[cut:].encode()
    first, *others = source.data.split(head)
    starts: list[tuple[int, bytes]] = [(0, first)]
    misses = []
    position = len(first)
    for each in others:
        position += len(head)
        if each.startswith(tail):
            starts.append((position + len(tail), each[len(tail) :]))
        else:
            misses.append(_place(source.data, position))
            begin, before = starts[-1]
            starts[-1] = begin, before + head + each
        position += len(each)
    if len(starts) == 1:
        return [source] if source.data else [], misses
    parts = []
    for begin, data in starts:
        line, column = _place(source.data, begin)
        if not data:
            continue
        if in_place:
            parts.append(Source(source.name, b"\n" * (line - 1) + b" " * (column - 1) + data, line=line))
        else:
            parts.append(Source(f"within split at {source.name}:{line} offset ", data))
    return parts, misses


def _place(data: bytes, position: int) -> tuple[int, int]:
    return data.count(b"\n", 0, position) + 1, position - data.rfind(b"\n", 0, position)


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
