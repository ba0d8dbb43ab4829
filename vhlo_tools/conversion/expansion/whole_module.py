"""Context of an expansion that rewrites a whole module, because it changes more than the ops with its feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.compat import ExpansionPolicy
from vhlo_tools.conversion.rewriter import Notes
from vhlo_tools.findings import SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class WholeModule:
    provider: Provider
    module: ModuleOp
    target: Version  # its features may remain
    policy: ExpansionPolicy
    notes: Notes
    #: takes the location of a use that remains, if it has one, and the reason
    refused: Callable[[SourceLocation | None, str], None]
    #: types of the values before the first expansion of a whole module, collected once
    types: Callable[[], frozenset[Any]]

    def refuse(self, op: Operation, reason: str) -> None:
        self.refused(source_of(op.location), reason)


#: An expansion of a whole module; it changes nothing if the module does not use its feature.
ModuleExpansion = Callable[[WholeModule], None]
