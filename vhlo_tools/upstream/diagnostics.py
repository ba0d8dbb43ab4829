"""Diagnostics: how they are printed, and those that a source expects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from vhlo_tools.bindings import FilePosition, Remark
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.sources import SourceText

# Print MLIR diagnostics, with the source line that they refer to
#
# Source: ``SourceMgrDiagnosticHandler`` in ``mlir/lib/IR/Diagnostics.cpp`` and ``SMDiagnostic::print`` in
# ``llvm/lib/Support/SourceMgr.cpp``, both in llvm/llvm-project.

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
    line = line.rstrip("\r")
    printed = printable(line.expandtabs(_TAB)) + "\n"
    if not line.isascii():
        return printed
    return printed + " " * len(printable(line[: column - 1].expandtabs(_TAB))) + "^\n"


# Expected diagnostics of tests, ``expected-error@+1 {{...}}`` and similar, and their verification
#
# Source: ``SourceMgrDiagnosticVerifierHandler`` in ``mlir/lib/IR/Diagnostics.cpp`` in llvm/llvm-project.

_EXPECTED: Final = re.compile(
    r"expected-(?P<kind>error|note|remark|warning)(?P<re>-re)? *(?:@(?P<where>[+-][0-9]+|above|below|unknown))? *"
    r"\{\{(?P<text>.*)\}\}$"
)

#: Character classes of LLVM's regular expressions that Python lacks.
_CLASSES: Final = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:blank:]": " \\t",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": "\\s",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9a-fA-F",
}


@dataclass(slots=True)
class _Expected:
    kind: str  # the severity
    text: str
    pattern: re.Pattern[str]  # ``text`` as a regular expression
    line: int  # the expected line
    place: FilePosition  # of the expectation itself
    matched: bool = False


class Verifier:
    """``only_expected`` ignores diagnostics that are not expected."""

    def __init__(self, source: SourceText, write: Callable[[str], None], *, only_expected: bool = False) -> None:
        self._printer = DiagnosticPrinter(source, write, shows_ops=False)
        self._only_expected = only_expected
        self._is_good = True
        self._unknown: list[_Expected] = []
        self._files: dict[str, list[_Expected]] = {}
        self._read(source.name, source.text)

    def hear(self, remark: Remark) -> None:
        for each in (remark, *remark.notes):
            if not (each is not remark and each.message.startswith(SEE_CURRENT)):
                self._compare(each)

    def finish(self) -> bool:
        """Report all expected diagnostics that were not emitted; return whether there were no errors."""
        for each in [each for file in self._files.values() for each in file] + self._unknown:
            if not each.matched:
                self._complain(each, f'expected {each.kind} "{each.text}" was not produced')
        return self._is_good

    def _compare(self, said: Remark) -> None:
        near = None
        for each in self._candidates(said.place):
            if each.pattern.search(said.message):
                if each.kind == said.severity:
                    each.matched = True
                    return
                near = each
        if self._only_expected:
            return
        if near is not None:
            self._complain(near, f"'{said.severity}' diagnostic emitted when expecting a '{near.kind}'")
            return
        self._is_good = False
        self._printer.say("error", f"unexpected {said.severity}: {said.message}", said.location, said.place)

    def _candidates(self, place: FilePosition | None) -> Iterator[_Expected]:
        if place is None:
            yield from self._unknown
            return
        if place.file not in self._files:
            self._read(place.file, read_text(place.file))
        yield from (each for each in self._files[place.file] if each.line == place.line)

    def _complain(self, expected: _Expected, message: str) -> None:
        self._is_good = False
        self._printer.say("error", message, "", expected.place)

    def _read(self, name: str, text: str) -> None:
        found = self._files[name] = []
        lines = text.split("\n")
        above = 1
        below: list[_Expected] = []
        for number, line in enumerate(lines, 1):
            match = _EXPECTED.search(line.rstrip())
            if match is None:
                for each in below:
                    each.line = number
                below.clear()
                above = number
                continue
            place = FilePosition(name, number, match.start() + 1)
            pattern = self._pattern(match, place)
            if pattern is None:
                continue
            expected = _Expected(match["kind"], match["text"], pattern, number, place)
            where = match["where"] or "+0"
            if where == "unknown":
                self._unknown.append(expected)
                continue
            if where == "above":
                expected.line = above
            elif where == "below":
                expected.line = len(lines)
                below.append(expected)
            else:
                expected.line = number + int(where)
            found.append(expected)

    def _pattern(self, match: re.Match[str], place: FilePosition) -> re.Pattern[str] | None:
        """Return ``None``, after an error, if the regular expression is not valid."""
        if not match["re"]:
            return re.compile(re.escape(match["text"]))
        parts = match["text"].split("{{")
        pattern = re.escape(parts[0])
        for part in parts[1:]:
            inner, end, rest = part.partition("}}")
            fault = None if end else "found start of regex with no end '}}'"
            try:
                re.compile(_translated(inner))
            except re.error as error:
                fault = fault or f"invalid regex: {error}"
            if fault:
                self._is_good = False
                self._printer.say("error", fault, "", place)
                return None
            pattern += f"({_translated(inner)}){re.escape(rest)}"
        # No multi-line mode: a message may have several lines.
        return re.compile(pattern, re.DOTALL)


def _translated(pattern: str) -> str:
    """Translate a POSIX regular expression, as used by LLVM, to the syntax of Python."""
    for name, characters in _CLASSES.items():
        pattern = pattern.replace(name, characters)
    return pattern
