"""A program: something that gives an MLIR module as often as one is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vhlo_tools.bindings import Operation, Provider
from vhlo_tools.findings import Diagnostic, SourceLocation

__all__ = ["Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program of any accepted kind.

    Attributes:
        name: What to call it in messages.
        provider: The bindings it is loaded with.
        load: Gives the program as a ``builtin.module`` op that belongs to whoever asked, who may rewrite it. It raises
            :class:`InvalidProgramError` or :class:`MalformedArtifactError` where the program is not valid.
        other_dialects: Dialects beside StableHLO that it holds already, and that therefore stay.
    """

    name: str
    provider: Provider
    load: Callable[[], Operation]
    other_dialects: frozenset[str] = field(default=frozenset())

    def place(self, location: SourceLocation | None) -> SourceLocation | None:
        """Return ``location`` with MLIR's name for a nameless input replaced by the name of this one."""
        if location is None or location.file != "-":
            return location
        return SourceLocation(self.name, location.line, location.column)

    def describe(self, diagnostic: Diagnostic) -> str:
        """Return a diagnostic as a line with its place."""
        place = self.place(diagnostic.source)
        return f"{place}: {diagnostic.message}" if place else diagnostic.message
