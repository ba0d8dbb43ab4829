"""Ops that say where a value is or how it is cut, and not what it is: on one device they give what they are given.

Sources: ``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for custom calls ``xla/service/sharding_propagation.cc``,
``xla/service/layout_assignment.cc``, ``xla/service/memory_annotations.h`` and
``xla/hlo/transforms/convert_memory_placement_to_internal_annotations.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final

from vhlo_tools.portable.site import Site

__all__ = ["annotated", "declared", "placed_unless"]

#: Targets of custom calls that only place their operand.
_PLACING: Final = frozenset({"LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"})


def annotated(site: Site) -> list[Any]:
    """Return the operand."""
    return [site.op.operands[0]]


def declared(_: Site) -> list[Any]:
    """Return nothing: what declares that values belong together has no results."""
    return []


def placed_unless(handled: Container[str]) -> Callable[[Site], list[Any] | None]:
    """Return what gives the operand of a custom call that only places it.

    Args:
        handled: The targets of calls that stay as they are: something else computes them.
    """

    def placed(site: Site) -> list[Any] | None:
        op = site.op
        target = str(op.attributes["call_target_name"].value)
        is_same = len(op.operands) == len(op.results) == 1 and op.operands[0].type == op.results[0].type
        return annotated(site) if is_same and target in _PLACING and target not in handled else None

    return placed
