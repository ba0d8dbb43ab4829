"""Indices of types that engines handle incorrectly.

The interpreter reads unsigned indices as negative numbers if their highest bit is set. XLA in jaxlib 0.10.2 compares
narrow ones with the last bits of a size, in ``dynamic_update_slice`` and in a ``scatter`` of one window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vhlo_tools.rewriting import Rewriter, Tensor

_WIDE: Final = 32


def signed_from(first: int, last: int | None = None) -> Callable[[Rewriter], list[Any] | None]:
    """Indices are the operands from ``first`` to before ``last``, by default to the end."""

    def convert(rewriter: Rewriter) -> list[Any] | None:
        operands = list(rewriter.op.operands)
        converted = [signed(Tensor(rewriter, each)).value for each in operands[first:last]]
        if converted == operands[first:last]:
            return None
        operands[first:last] = converted
        return rewriter.make_like(operands, [each.type for each in rewriter.op.results])

    return convert


def signed(indices: Tensor) -> Tensor:
    rewriter, element = indices.rewriter, indices.element
    if not element.is_unsigned:
        return indices if element.width >= _WIDE else indices.convert(rewriter.integer(64))
    # The greatest values of 64 bits are beyond every tensor, and stay so after the limit.
    within = indices.apply("minimum", 2**62) if element.width == 64 else indices
    return within.convert(rewriter.integer(64))
