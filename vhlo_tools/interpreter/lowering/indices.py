"""Indices of types that engines get wrong.

The interpreter takes indices without a sign for negative numbers if their highest bit is set. XLA in jaxlib 0.10.2
clamps starts of eight bits to the last eight bits of the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vhlo_tools.interpreter.lowering.tensor import Tensor
from vhlo_tools.portable.site import Site

__all__ = ["signed_from"]

_WIDE: Final = 32


def signed_from(first: int, last: int | None = None) -> Callable[[Site], list[Any] | None]:
    """Return what gives an op its indices as integers of 64 bits with a sign.

    Args:
        first: The number of the first operand that holds indices.
        last: The number of the operand after the last, by default none is after it.
    """

    def signed(site: Site) -> list[Any] | None:
        operands = list(site.op.operands)
        kinds = [each.type.element_type for each in operands[first:last]]
        if not any(kind.is_unsigned or kind.width < _WIDE for kind in kinds):
            return None
        operands[first:last] = [_signed(Tensor(site, each)).value for each in operands[first:last]]
        return site.make_again(operands, [each.type for each in site.op.results])

    return signed


def _signed(indices: Tensor) -> Tensor:
    site = indices.site
    if not indices.element.is_unsigned:
        return indices.convert(site.integer(64))
    # The largest of 64 bits are beyond every tensor, and stay so.
    within = indices.apply("minimum", 2**62) if indices.element.width == 64 else indices
    return within.convert(site.integer(64))
