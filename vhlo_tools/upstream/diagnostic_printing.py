"""Print MLIR diagnostics, with the source line that they refer to.

Source: ``SourceMgrDiagnosticHandler`` in ``mlir/lib/IR/Diagnostics.cpp`` and ``SMDiagnostic::print`` in
``llvm/lib/Support/SourceMgr.cpp``, both in llvm/llvm-project.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from vhlo_tools.bindings import FilePosition, Remark
from vhlo_tools.printable import printable
from vhlo_tools.upstream.sources import SourceText

#: The prefix of a note that shows the op of a diagnostic.
SEE_CURRENT: Final = "see current operation: "

_TAB: Final = 8

#: The limit of printed call sites of a location.
_CALLS: Final = 10


class DiagnosticPrinter:
    """``shows_ops`` prints notes that show the op at fault."""

    def __init__(self, source: SourceText, write: Callable[[str], None], *, shows_ops: bool = True) -> None:
        self._write = write
        self._shows_ops = shows_ops
        self._source = source
        # Files are split into lines only when a diagnostic refers to them.
        self._lines: dict[str, list[str]] = {}

    def hear(self, remark: Remark) -> None:
        """Print a diagnostic, its call sites, and its notes."""
        self.say(remark.severity, remark.message, remark.location, remark.place)
        location = remark.location
        for caller, place in remark.callers[:_CALLS]:
            self.say("note", "called from", caller, place)
            location = caller
        for note in remark.notes:
            if note.message.startswith(SEE_CURRENT) and not self._shows_ops:
                continue
            self.say(note.severity, note.message, note.location, note.place, with_line=note.location != location)
            location = note.location

    def say(
        self, severity: str, message: str, location: str, place: FilePosition | None, *, with_line: bool = True
    ) -> None:
        if place is None:
            # MLIR has no position, and LLVM's printer prints this.
            about = "" if location == "loc(unknown)" else f"{location}: "
            self._write(f"<unknown>:0: {severity}: {about}{message}\n")
            return
        text = f"{place.file}:{place.line}:{place.column}: {severity}: {message}\n"
        line = self.line(place) if with_line else None
        self._write(text if line is None else text + _shown(line, place.column))

    def line(self, place: FilePosition) -> str | None:
        """Return the line of a position; ``None`` if there is no such file, line or column."""
        if not place.line or not place.column:
            return None
        lines = self._lines.get(place.file)
        if lines is None:
            text = self._source.text if place.file == self._source.name else read_text(place.file)
            lines = self._lines[place.file] = text.split("\n") if text else []
        if place.line > len(lines) or place.column - 1 > len(lines[place.line - 1]):
            return None
        return lines[place.line - 1]


def read_text(path: str) -> str:
    """Return an empty string if the file cannot be read, or is not a regular file."""
    try:
        return Path(path).read_bytes().decode(errors="replace") if Path(path).is_file() else ""
    except (OSError, ValueError):
        return ""


def _shown(line: str, column: int) -> str:
    """Return a line with a caret below a column."""
    line = line.rstrip("\r")
    printed = printable(line.expandtabs(_TAB)) + "\n"
    if not line.isascii():
        return printed
    return printed + " " * len(printable(line[: column - 1].expandtabs(_TAB))) + "^\n"
