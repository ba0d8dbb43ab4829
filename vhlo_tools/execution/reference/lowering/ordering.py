"""Comparisons of floats by ``totalOrder``, which the interpreter treats as comparisons of numbers.

In this order every NaN is next to the infinity of its sign, and a negative zero comes before a positive one. It is the
order of the bits as integers, if those of negative floats are inverted except the sign. Sorting relies on it. Source:
the specification of StableHLO, ``compare``; ``xla/hlo/transforms/expanders/comparison_expander.cc`` in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.rewriting import Rewriter, Tensor, select, tensors


def compare(rewriter: Rewriter) -> list[Any] | None:
    attributes = rewriter.op.attributes
    if "compare_type" not in attributes or str(attributes["compare_type"]) != "#stablehlo<comparison_type TOTALORDER>":
        return None
    one, other = (_place(each) for each in tensors(rewriter))
    direction = str(attributes["comparison_direction"]).removeprefix("#stablehlo<comparison_direction ")
    return [one.compare(direction.removesuffix(">"), other).value]


def _place(floats: Tensor) -> Tensor:
    width = floats.element.width
    bits = floats.bits(floats.rewriter.integer(width))
    return select(bits.compare("LT", 0), bits ^ (2 ** (width - 1) - 1), bits)
