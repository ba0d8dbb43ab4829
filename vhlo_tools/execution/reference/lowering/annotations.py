"""Ops that specify the placement or sharding of a value; on one device they return their operand.

Sources: ``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for custom calls ``xla/service/sharding_propagation.cc``,
``xla/service/layout_assignment.cc``, ``xla/service/memory_annotations.h`` and
``xla/hlo/transforms/convert_memory_placement_to_internal_annotations.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final

from vhlo_tools.rewriting import Rewriter

#: Targets of custom calls that only place their operand.
_PLACING: Final = frozenset({"LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"})


def annotated(rewriter: Rewriter) -> list[Any]:
    return [rewriter.op.operands[0]]


def declared(_: Rewriter) -> list[Any]:
    """An op that declares that values belong together has no results."""
    return []


def placed_unless(handled: Container[str]) -> Callable[[Rewriter], list[Any] | None]:
    """Calls of targets in ``handled`` are kept, because a handler computes them."""

    def placed(rewriter: Rewriter) -> list[Any] | None:
        op = rewriter.op
        target = str(op.attributes["call_target_name"].value)
        is_same = len(op.operands) == len(op.results) == 1 and op.operands[0].type == op.results[0].type
        return annotated(rewriter) if is_same and target in _PLACING and target not in handled else None

    return placed
