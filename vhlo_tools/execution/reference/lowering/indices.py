"""Indices of types that engines handle incorrectly.

The interpreter reads unsigned indices as negative numbers if their highest bit is set. XLA in jaxlib 0.10.2
clamps starts of ``dynamic_update_slice`` of eight bits to the last eight bits of the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vhlo_tools.rewriting import Rewriter, Tensor

__all__ = ["signed", "signed_from"]

_WIDE: Final = 32


def signed_from(first: int, last: int | None = None) -> Callable[[Rewriter], list[Any] | None]:
    """Return a pattern that converts the indices of an op to signed integers of 64 bits.

    Args:
        first: The number of the first operand with indices.
        last: The number of the operand after the last one with indices, by default all following operands are indices.
    """

    def convert(rewriter: Rewriter) -> list[Any] | None:
        operands = list(rewriter.op.operands)
        types = [each.type.element_type for each in operands[first:last]]
        if not any(type_.is_unsigned or type_.width < _WIDE for type_ in types):
            return None
        operands[first:last] = [signed(Tensor(rewriter, each)).value for each in operands[first:last]]
        return rewriter.make_like(operands, [each.type for each in rewriter.op.results])

    return convert


def signed(indices: Tensor) -> Tensor:
    """Return indices as signed integers of 64 bits, those beyond these as ones beyond every tensor."""
    rewriter = indices.rewriter
    if not indices.element.is_unsigned:
        return indices.convert(rewriter.integer(64))
    # The greatest values of 64 bits are beyond every tensor, and stay so after the limit.
    within = indices.apply("minimum", 2**62) if indices.element.width == 64 else indices
    return within.convert(rewriter.integer(64))
