"""Convolutions of two different 8-bit floating-point types, allowed since 1.20.0.

Products and sums have the element type of the result, or a wider one where an implementation chooses so. The expansion
converts both operands to the type of the result first, which has every value of the 8-bit types if it is f16, bf16, f32
or f64, and leaves a convolution of one type::

    convolution(f8E4M3FN, f8E5M2) -> f32  =  convolution(convert(f8E4M3FN), convert(f8E5M2)) : (f32, f32) -> f32

The results are the same bits, in an implementation that sums in the same order. f8E8M0FNU is a special case: its powers
of two reach from 2 ** -127 to 2 ** 127, which is more than f16 has.

A result of 8 bits is refused: its type does not hold the values of both operands, and with operands of f16, bf16 or f32
both engines have other results, because they round at other steps.

Source: the section ``convolution`` in the specification of openxla/stablehlo, whose ``dot_general`` adds in the type
of the result. That the bits are the same with operands of the type of the result, and not in general with those of
another type, was found on the reference interpreter and XLA of jaxlib 0.12.0.1. The ranges of the types are those of
the section "Types".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, MatchFailure, Rewriter

_WIDE: Final = ("f16", "bf16", "f32", "f64")


def _convolution(rewriter: Rewriter) -> Sequence[Any] | None:
    lhs, rhs, *others = rewriter.op.operands
    elements = [str(value.type.element_type) for value in (lhs, rhs)]
    if elements[0] == elements[1] or not all(each.startswith("f8") for each in elements):
        return None
    type_ = rewriter.op.results[0].type
    element = type_.element_type
    if str(element) not in _WIDE:
        raise MatchFailure(f"a result of {element}, which is not computed the same from operands of another type")
    if str(element) == "f16" and "f8E8M0FNU" in elements:
        raise MatchFailure("f16 does not hold every f8E8M0FNU")
    return rewriter.make_like([*(rewriter.convert(each, element) for each in (lhs, rhs)), *others], [type_])


EXACT: Final[Mapping[str, Build]] = {"stablehlo.convolution": _convolution, "stablehlo.dynamic_conv": _convolution}
