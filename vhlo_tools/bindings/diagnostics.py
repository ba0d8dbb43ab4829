"""What MLIR says, caught before it reaches stderr and turned into plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vhlo_tools.bindings.ir import Context
from vhlo_tools.findings import Diagnostic, SourceLocation

__all__ = ["captured", "source_of", "to_diagnostic"]

# A note may print the whole module, constants included.
_LONGEST = 4096

# The first file, line and column in a printed location: of a call-site location that is where the callee stands, of a
# name or a fused location what is within. `loc("-":1:1)` is a program that had no file.
_FILE_LINE_COLUMN = re.compile(r'"((?:[^"\\]|\\.)*)":([0-9]+):([0-9]+)')


@contextmanager
def captured(context: Context) -> Iterator[list[Diagnostic]]:
    """Collect the diagnostics that ``context`` emits meanwhile; none of them reaches stderr."""
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
    """Return MLIR's ``Diagnostic`` or ``DiagnosticInfo`` as data; MLIR's own is gone when its callback returns."""
    return Diagnostic(
        severity=str(found.severity).rpartition(".")[2].lower(),
        message=_cut(found.message),
        location=_cut(str(found.location)),
        source=source_of(found.location),
        notes=tuple(to_diagnostic(note) for note in found.notes),
    )


def source_of(location: Any) -> SourceLocation | None:
    """Return the first place in a file that an MLIR location names, or ``None`` if it names none."""
    match = _FILE_LINE_COLUMN.search(str(location))
    if match is None or match[2] == "0":
        return None
    return SourceLocation(match[1].replace("\\\\", "\\"), int(match[2]), int(match[3]))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text) - _LONGEST} more characters)"
