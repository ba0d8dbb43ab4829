"""Convolutions whose results are of another type than their operands, such as ``i8`` to ``i32``.

The interpreter multiplies and adds in the type of the operands, which integers overflow, and ends the process where the
result is a float of integers. XLA on a CPU computes in the type of the result, and so does this.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, tensors
from vhlo_tools.portable.site import Site

__all__ = ["convolution"]


def convolution(site: Site) -> list[Any] | None:
    """Compute in the type of the result, or in that of the operands where that has fewer numbers; zeros of nothing."""
    one, other = tensors(site)[:2]
    kind = site.op.results[0].type
    element = kind.element_type
    if 0 in other.shape and 0 not in site.static(kind):
        # The interpreter dies of sums of nothing.
        return [site.constant(kind, 0)]
    if one.element == other.element == element:
        return None
    computed = one.element if _is_narrower(site, element, one.element) else element
    operands = [each.convert(computed).value for each in (one, other)]
    (value,) = site.make_again(operands, [site.tensor(site.static(kind), computed)])
    return [Tensor(site, value).convert(element).value]


def _is_narrower(site: Site, element: Any, of: Any) -> bool:
    """Tell whether a type cannot hold the numbers of a float type."""
    if site.is_integer(of) or site.is_complex(of) or site.is_complex(element):
        return False
    return site.is_integer(element) or bool(element.width < of.width)
