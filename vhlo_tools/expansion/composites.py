"""The op composite, introduced in 0.19.0, and its regions, introduced in 1.14.0, as calls of decompositions.

A composite has the semantics of its decomposition, so that a call of that function is equal to it. The name, the
version and the attributes of a composite serve consumers that have an implementation of their own. Its regions do the
same, and are ignored where the decomposition is used instead. Such consumers would misread a composite without its
regions, so that a composite with regions becomes a call too.

Source: ``composite`` in the StableHLO specification, and ``stablehlo/transforms/StablehloLegalizeCompositeToCall.cpp``
of openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, MatchFailure, Rewriter


def composite(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    types = [result.type for result in op.results]
    callee = op.attributes["decomposition"]
    _check_callee(rewriter, str(callee.value), [value.type for value in op.operands], types)
    rewriter.without += _identity(op)
    return rewriter.make_several("func.call", list(op.operands), types, callee=callee)


def _check_callee(rewriter: Rewriter, name: str, takes: Sequence[Any], gives: Sequence[Any]) -> None:
    """A module that a caller built may not have been verified."""
    function = rewriter.function(name)
    if function is None:
        raise MatchFailure(f"the module has no function @{name}, which is the decomposition")
    type_: Any = function.attributes["function_type"].value
    for what, own, others in (("operands", takes, type_.inputs), ("results", gives, type_.results)):
        if list(own) != list(others):
            raise MatchFailure(f"the {what} have the types {_shown(own)}, but those of @{name} have {_shown(others)}")


def _shown(types: Sequence[Any]) -> str:
    return f"({', '.join(map(str, types))})"


def _identity(op: Any) -> list[str]:
    """Attributes by which consumers recognize a composite, where they are not the default."""
    held = [f"name {op.attributes['name'].value}"]
    held += ["version"] if "version" in op.attributes and op.attributes["version"].value else []
    held += [name for name in ("composite_attributes",) if name in op.attributes and len(op.attributes[name])]
    return [*held, "regions"] if len(op.regions) else held


EXACT: Final[Mapping[str, Build]] = {"stablehlo.composite": composite}
