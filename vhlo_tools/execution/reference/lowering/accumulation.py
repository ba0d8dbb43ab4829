"""Convolutions whose results are of another type than their operands, such as ``i8`` to ``i32``, or in another order.

The interpreter multiplies and adds in the type of the operands, which overflows for integers, and crashes if the
operands are integers and the result is a float. XLA on a CPU computes in the type of the result, and so does this.

Up to StableHLO 1.17, it crashes if the features of the result come before its batch, as in gradients of kernels.
"""

from __future__ import annotations

import re
from typing import Any, Final

from vhlo_tools.rewriting import Rewriter, tensors

#: The names of the dimensions of the result in dimension numbers.
_OUTPUT: Final = re.compile(r"(?<=->\[)([^\]]*)(?=\])")


def convolution(rewriter: Rewriter) -> list[Any] | None:
    """In the type of the result, or of the operands if that of the result is narrower; zeros for empty sums."""
    one, other = tensors(rewriter)[:2]
    type_ = rewriter.op.results[0].type
    element = type_.element_type
    if 0 in other.shape and 0 not in rewriter.static(type_):
        # The interpreter crashes on empty sums.
        return [rewriter.constant(type_, 0)]
    head, output, tail = _OUTPUT.split(str(rewriter.op.attributes["dimension_numbers"]))
    names, shape = output.split(", "), rewriter.static(type_)
    order = list(range(len(shape)))
    batch, features = names.index("b"), names.index("f")
    if one.element == other.element == element and batch < features:
        return None
    if features < batch:
        order[batch], order[features] = features, batch
    computed = one.element if _is_narrower(rewriter, element, one.element) else element
    # A convolution whose padding is an operand has a third one.
    operands = [*(each.convert(computed).value for each in (one, other)), *list(rewriter.op.operands)[2:]]
    (value,) = rewriter.make_like(
        operands,
        [rewriter.tensor([shape[each] for each in order], computed)],
        dimension_numbers=rewriter.attribute(f"{head}{', '.join(names[each] for each in order)}{tail}"),
    )
    return [rewriter.transpose(rewriter.convert(value, element), order)]


def _is_narrower(rewriter: Rewriter, element: Any, of: Any) -> bool:
    """Whether ``element`` cannot represent all numbers of the float type ``of``."""
    if rewriter.is_integer(of) or rewriter.is_complex(of) or rewriter.is_complex(element):
        return False
    return rewriter.is_integer(element) or bool(element.width < of.width)
