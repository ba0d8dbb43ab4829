"""Records of rewrites, as findings of level note."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.findings import Finding, FindingKind, SourceLocation
from vhlo_tools.program import place_of

#: The feature of a finding about an op or attribute that was rewritten into plain StableHLO.
REWRITTEN: Final = "rewritten"


class Notes:
    """The findings about a program that is being rewritten.

    Args:
        program: The name of the program.

    Attributes:
        program: The name of the program.
        findings: The findings so far.
    """

    def __init__(self, program: str) -> None:
        self.program = program
        self.findings: list[Finding] = []

    def add(self, op: Operation, message: str, kind: FindingKind = "op") -> None:
        """Record that ``op``, or a part of it, was rewritten."""
        self.add_at(str(op.name), source_of(op.location), message, kind)

    def add_at(self, op: str, location: SourceLocation | None, message: str, kind: FindingKind = "op") -> None:
        """Record that an op, or a part of it, was rewritten, if the op itself no longer exists."""
        self.findings.append(
            Finding(REWRITTEN, "note", kind, message, op=op, location=place_of(location, self.program))
        )
