"""Input of a program, and its parts if it is split.

Source: ``mlir/lib/Support/ToolUtilities.cpp`` in llvm/llvm-project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import UsageError

#: The default separator of parts, on a line of its own.
DEFAULT_MARKER: Final = "// -----"

#: The name of stdin and of stdout on the command line.
STANDARD: Final = "-"


@dataclass(frozen=True, slots=True)
class SourceText:
    name: str  # in messages and locations
    data: bytes
    path: str | None = None  # the file with exactly these contents, if there is one
    line: int = 1  # the line of the input, from 1, at which the contents begin

    @property
    def title(self) -> str:
        """The name with the line, to distinguish parts of the same name."""
        return self.name if self.line == 1 else f"{self.name}:{self.line}"

    @property
    def is_bytecode(self) -> bool:
        return self.data.startswith(b"ML\xefR")

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


def read_source(path: str, stdin: BinaryIO) -> SourceText:
    try:
        if path == STANDARD:
            return SourceText("<stdin>", stdin.read())
        # MLIR takes no other names.
        name = path.encode(errors="replace").decode()
        return SourceText(name, Path(path).read_bytes(), path if name == path else None)
    except OSError as error:
        raise UsageError(f"cannot open input file '{path}': {error.strerror}") from error


def split_source(source: SourceText, marker: str, *, in_place: bool) -> tuple[list[SourceText], list[tuple[int, int]]]:
    """Return the parts, and the lines and columns, from 1, of text that begins like a marker but is not one.

    Parts ``in_place`` keep the name and the lines of the source, preceded by empty lines; others have lines of their
    own, and a name with the line at which they begin.
    """
    # The shortest markers have no prefix to match.
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
            parts.append(SourceText(source.name, b"\n" * (line - 1) + b" " * (column - 1) + data, line=line))
        else:
            parts.append(SourceText(f"within split at {source.name}:{line} offset ", data))
    return parts, misses


def _place(data: bytes, position: int) -> tuple[int, int]:
    return data.count(b"\n", 0, position) + 1, position - data.rfind(b"\n", 0, position)


@contextmanager
def as_file(source: SourceText, data: bytes | None = None) -> Iterator[str]:
    """Yield a path by which MLIR reads a source, or ``data`` instead of its contents.

    Locations have the name of the source, unless that begins with a slash and ``data`` is given: then they have the
    yielded path. If the source is not a file, the working directory is changed meanwhile: MLIR provides no other way to
    set the name of parsed text.
    """
    if source.path is not None and data is None:
        yield source.path
        return
    # Not imported at the top: the import is slow.
    import tempfile

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        # A name may contain "..", which must stay within the folder.
        base = Path(folder, *["inner"] * source.name.count(".."))
        path = base / source.name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.data if data is None else data)
        os.chdir(base)
        try:
            yield str(path) if source.name.startswith("/") else source.name
        finally:
            os.chdir(before)
