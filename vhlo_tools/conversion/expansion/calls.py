"""Composites and asynchronous ops, as calls of functions and ops that run where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter

# The op composite, introduced in 0.19.0, and its regions, introduced in 1.14.0, as calls of decompositions
#
# A composite has the semantics of its decomposition, so that a call of that function is equal to it. The name, the
# version and the attributes of a composite serve consumers that have an implementation of their own. Its regions do the
# same, and are ignored where the decomposition is used instead. Such consumers would misread a composite without its
# regions, so that a composite with regions becomes a call too.
#
# Source: ``composite`` in the StableHLO specification, and
# ``stablehlo/transforms/StablehloLegalizeCompositeToCall.cpp`` of openxla/stablehlo.


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


COMPOSITES_EXACT: Final[Mapping[str, Build]] = {"stablehlo.composite": composite}


# The regions of the op composite, introduced in 1.14.0: a composite that has some becomes a call


def _with_regions(rewriter: Rewriter) -> Sequence[Any] | None:
    return composite(rewriter) if len(rewriter.op.regions) else None


COMPOSITE_REGIONS_EXACT: Final[Mapping[str, Build]] = {"stablehlo.composite": _with_regions}


# The ops async_start and async_done, introduced in 1.15.0, as the operation itself where it is started
#
# Asynchrony is not guaranteed, so that the operation may be performed where it is started, and its value used where it
# is awaited. Only ``async_done`` may use the future; every such op is replaced by the value. Custom calls define their
# own meaning of a future, and callers of a function that returns one, or takes one, expect a future.
#
# Source: StableHLO specification, ``async_start`` and ``async_done``.

_START: Final = "stablehlo.async_start"
_DONE: Final = "stablehlo.async_done"


def _start(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    (future,) = op.results
    for use in future.uses:
        name = str(use.owner.name)
        if name != _DONE:
            raise MatchFailure(f"its future is used by {name}{_target(use.owner)}, and not only awaited by {_DONE}")
    values = rewriter.body(list(op.operands))
    # The region has one op, which takes the place of this one, with its attributes.
    rewriter.made += [each.owner for each in values]
    return values


def _done(rewriter: Rewriter) -> Sequence[Any] | None:
    (future,) = rewriter.op.operands
    if rewriter.is_converted(future):
        return [rewriter.converted(future)]
    name = getattr(future.owner, "name", None)
    if name is None:
        raise MatchFailure("its future is an argument of a function or a block, not started in sight")
    if str(name) != _START:
        raise MatchFailure(f"its future is the result of {name}{_target(future.owner)}, not of {_START}")
    # What keeps the start is said there.
    return None


def _target(op: Any) -> str:
    held = op.attributes
    return f" @{held['call_target_name'].value}" if "call_target_name" in held else ""


ASYNCHRONY_EXACT: Final[Mapping[str, Build]] = {_START: _start, _DONE: _done}
