"""The regions of reductions."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import Operation

#: Ops that combine two values into one.
_COMBINING: Final = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)


def single_op(op: Operation) -> str:
    """An empty string if the region is not a single op."""
    block = op.regions[0].blocks[0]
    ops = list(block.operations)
    if len(ops) != 2 or str(ops[0].operation.name) not in _COMBINING:
        return ""
    return str(ops[0].operation.name) if set(ops[0].operands) == set(block.arguments) else ""
