"""The ops async_start and async_done, introduced in 1.15.0, as the operation itself where it is started.

Asynchrony is not guaranteed, so that the operation may be performed where it is started, and its value used where it is
awaited. Only ``async_done`` may use the future; every such op is replaced by the value. Custom calls define their own
meaning of a future, and callers of a function that returns one, or takes one, expect a future.

Source: StableHLO specification, ``async_start`` and ``async_done``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, MatchFailure, Rewriter

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


EXACT: Final[Mapping[str, Build]] = {_START: _start, _DONE: _done}
