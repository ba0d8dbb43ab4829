"""What MLIR says, printed with the line of the source that it is about.

Source: ``SourceMgrDiagnosticHandler`` in ``mlir/lib/IR/Diagnostics.cpp`` and ``SMDiagnostic::print`` in
``llvm/lib/Support/SourceMgr.cpp``, both in llvm/llvm-project.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from vhlo_tools.bindings.toolbox import Place, Remark
from vhlo_tools.opt.sources import Source

__all__ = ["SEE_CURRENT", "DiagnosticPrinter", "read_text"]

#: How a note begins that shows the op that a remark is about.
SEE_CURRENT: Final = "see current operation: "

_TAB: Final = 8

#: How many calls are shown that lead to a place.
_CALLS: Final = 10


class DiagnosticPrinter:
    """Prints what is said of a source.

    Args:
        source: The source.
        write: Where text goes.
        shows_ops: Whether to print notes that show the op at fault.
    """

    def __init__(self, source: Source, write: Callable[[str], None], *, shows_ops: bool = True) -> None:
        self._write = write
        self._shows_ops = shows_ops
        self._source = source
        # Taken apart only once something is said.
        self._lines: dict[str, list[str]] = {}

    def hear(self, remark: Remark) -> None:
        """Print what was said, where it was called from, and the notes on it."""
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

    def say(self, severity: str, message: str, location: str, place: Place | None, *, with_line: bool = True) -> None:
        """Print a message.

        Args:
            severity: Of what kind it is.
            message: The message.
            location: What it is about, as MLIR prints it.
            place: Where that is in a file, if it is in one.
            with_line: Whether to print the line of the file too.
        """
        if place is None:
            # MLIR has no place, and LLVM's printer says so.
            about = "" if location == "loc(unknown)" else f"{location}: "
            self._write(f"<unknown>:0: {severity}: {about}{message}\n")
            return
        text = f"{place.file}:{place.line}:{place.column}: {severity}: {message}\n"
        line = self.line(place) if with_line else None
        self._write(text if line is None else text + _shown(line, place.column))

    def line(self, place: Place) -> str | None:
        """Return the line of a file that a place is on; ``None`` if there is no such file, line or column."""
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
    """Return the text of a file that a location names; none if it cannot be read, or is none that ends."""
    try:
        return Path(path).read_bytes().decode(errors="replace") if Path(path).is_file() else ""
    except (OSError, ValueError):
        return ""


def _shown(line: str, column: int) -> str:
    """Return a line with a caret below a column."""
    line = line.rstrip("\r")
    printed = line.expandtabs(_TAB) + "\n"
    if not line.isascii():
        return printed
    return printed + " " * len(line[: column - 1].expandtabs(_TAB)) + "^\n"
