"""Records of rewrites, as findings of level note."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.findings import Finding, FindingKind, SourceLocation
from vhlo_tools.program import place_of

#: The feature of a finding about an op or attribute that was rewritten into plain StableHLO.
REWRITTEN: Final = "rewritten"


class Notes:
    def __init__(self, program: str) -> None:
        self.program = program
        self.findings: list[Finding] = []

    def add(self, op: Operation, message: str, kind: FindingKind = "op") -> None:
        self.add_at(str(op.name), source_of(op.location), message, kind)

    def add_at(self, op: str, location: SourceLocation | None, message: str, kind: FindingKind = "op") -> None:
        """For an op that no longer exists."""
        self.findings.append(
            Finding(REWRITTEN, "note", kind, message, op=op, location=place_of(location, self.program))
        )
