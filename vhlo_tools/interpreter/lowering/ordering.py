"""Comparisons of floats by ``totalOrder``, which the interpreter takes for comparisons of numbers.

There every NaN has a place beside the infinity of its sign, and a negative zero comes before a positive one. It is the
order of the bits as integers, if those of negative floats are turned round. Sorting relies on it. Source: the
specification of StableHLO, ``compare``; ``xla/hlo/transforms/expanders/comparison_expander.cc`` in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, select, tensors
from vhlo_tools.portable.site import Site

__all__ = ["compare"]


def compare(site: Site) -> list[Any] | None:
    """Compare floats by ``totalOrder`` where the op asks for that."""
    attributes = site.op.attributes
    if "compare_type" not in attributes or str(attributes["compare_type"]) != "#stablehlo<comparison_type TOTALORDER>":
        return None
    one, other = (_place(each) for each in tensors(site))
    direction = str(attributes["comparison_direction"]).removeprefix("#stablehlo<comparison_direction ")
    return [one.compare(direction.removesuffix(">"), other).value]


def _place(floats: Tensor) -> Tensor:
    """Return integers in the order of floats."""
    width = floats.element.width
    bits = floats.bits(floats.site.integer(width))
    return select(bits.compare("LT", 0), bits ^ (2 ** (width - 1) - 1), bits)
