"""Capture MLIR's diagnostics before they reach stderr, and convert them to plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vhlo_tools.bindings.mlir import Context
from vhlo_tools.findings import Diagnostic, SourceLocation

# A note may print the whole module, constants included.
_LONGEST = 4096

# The first file, line and column in a printed location: for a call-site location the location of the callee, for a
# name or a fused location a nested location. `loc("-":1:1)` is a program that was not read from a file.
_FILE_LINE_COLUMN = re.compile(r'"((?:[^"\\]|\\.)*)"?(?::([0-9]+):([0-9]+))?')


@contextmanager
def silenced(context: Context) -> Iterator[None]:
    """Drop the diagnostics that ``context`` emits in the meantime, unread.

    The bindings end the process where they read a text that is not UTF-8: a name, or an op that a failed conversion has
    left half rewritten. Without ``emit_error_diagnostics`` they read errors themselves.
    """
    emitted, context.emit_error_diagnostics = context.emit_error_diagnostics, True
    handler = context.attach_diagnostic_handler(lambda _: True)
    try:
        yield
    finally:
        handler.detach()
        context.emit_error_diagnostics = emitted


@contextmanager
def captured(context: Context) -> Iterator[list[Diagnostic]]:
    """Collect the diagnostics that ``context`` emits in the meantime; none of them reaches stderr."""
    seen: list[Diagnostic] = []

    def collect(diagnostic: Any) -> bool:
        seen.append(to_diagnostic(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        yield seen
    finally:
        handler.detach()


def to_diagnostic(found: Any) -> Diagnostic:
    """Convert at once: MLIR's object is invalid after its callback."""
    return Diagnostic(
        severity=str(found.severity).rpartition(".")[2].lower(),
        message=_cut(found.message),
        location=_cut(str(found.location)),
        source=source_of(found.location),
        notes=tuple(to_diagnostic(note) for note in found.notes),
    )


def source_of(location: Any) -> SourceLocation | None:
    """Return the first file location within an MLIR location."""
    match = next((each for each in _FILE_LINE_COLUMN.finditer(str(location)) if each[2]), None)
    if match is None or match[2] == "0":
        return None
    return SourceLocation(match[1].replace("\\\\", "\\"), int(match[2]), int(match[3]))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text) - _LONGEST} more characters)"
