"""What an expansion gets that rewrites a whole module, because it changes more than the ops that use its feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.compat import ExpansionPolicy
from vhlo_tools.findings import SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.rewriting import Notes
from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class WholeModule:
    """A module that an expansion rewrites in place.

    Attributes:
        provider: The bindings.
        module: A module of StableHLO.
        target: The version whose features may remain.
        policy: The expansions that are allowed.
        notes: Takes a note for each op, type or attribute that was rewritten.
        refused: Takes the location of a use that remains, if it has one, and the reason.
        types: Returns the types that values of the module had before the first expansion of a whole module; it is
            collected once.
    """

    provider: Provider
    module: ModuleOp
    target: Version
    policy: ExpansionPolicy
    notes: Notes
    refused: Callable[[SourceLocation | None, str], None]
    types: Callable[[], frozenset[Any]]

    def refuse(self, op: Operation, reason: str) -> None:
        """Record that the use of the feature by ``op`` remains, and why."""
        self.refused(source_of(op.location), reason)


#: An expansion of a whole module; it changes nothing if the module does not use its feature.
ModuleExpansion = Callable[[WholeModule], None]
