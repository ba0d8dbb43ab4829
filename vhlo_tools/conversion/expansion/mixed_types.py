"""Convolutions and reductions of mixed element types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter

# Convolutions of two different 8-bit floating-point types, allowed since 1.20.0
#
# Products and sums have the element type of the result, or a wider one where an implementation chooses so. The
# expansion converts both operands to the type of the result first, which has every value of the 8-bit types if it is
# f16, bf16, f32 or f64, and leaves a convolution of one type::
#
#     convolution(f8E4M3FN, f8E5M2) -> f32  =  convolution(convert(f8E4M3FN), convert(f8E5M2)) : (f32, f32) -> f32
#
# The results are the same bits, in an implementation that sums in the same order. f8E8M0FNU is a special case: its
# powers of two reach from 2 ** -127 to 2 ** 127, which is more than f16 has.
#
# A result of 8 bits is refused: its type does not hold the values of both operands, and with operands of f16, bf16 or
# f32 both engines have other results, because they round at other steps.
#
# Source: the section ``convolution`` in the specification of openxla/stablehlo, whose ``dot_general`` adds in the type
# of the result. That the bits are the same with operands of the type of the result, and not in general with those of
# another type, was found on the reference interpreter and XLA of jaxlib 0.12.0.1. The ranges of the types are those of
# the section "Types".

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


MIXED_CONVOLUTION_EXACT: Final[Mapping[str, Build]] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution,
}


# Reductions that accumulate in a wider type than that of their inputs, allowed since 0.17.0
#
# The results have the element types of the body, to which the inputs, the initial values and the updates of scatter are
# promoted. The expansion converts them first, so that nothing is left to be promoted::
#
#     reduce(a, init) : (bf16, bf16) -> f32  =  reduce(convert(a), convert(init)) : (f32, f32) -> f32
#
# The body and all attributes remain. The results are the same bits, in an implementation that reduces in the same
# order. all_reduce and reduce_scatter exchange the wider type between devices.
#
# The body ``select`` of select_and_scatter compares elements of the operand, and may do so in the type of the operand:
# its arguments are then converted back, which is exact only if the wider type holds every value of the narrower one.
#
# Source: the section of each op in the specification of openxla/stablehlo: the element types ``E`` of the body, with
# ``is_promotable(element_type(inputs[i]), Ei)``, are those of the results.


def _converted(rewriter: Rewriter, groups: int, indices: int = 0) -> Sequence[Any] | None:
    """There are ``groups`` operands for each result; ``indices`` operands after the first group are not converted."""
    types = [result.type for result in rewriter.op.results]
    operands, count = rewriter.operands(), len(types)
    if not _is_mixed(operands, types):
        return None
    if len(operands) != groups * count + indices:
        raise MatchFailure(f"{len(operands)} operands for {count} results")
    for value, type_ in zip(operands, types, strict=False):
        _check(rewriter, value.type, type_)
    targets = [*types, *[None] * indices, *types * (groups - 1)]
    values = [
        value if type_ is None else rewriter.convert(value, type_.element_type)
        for value, type_ in zip(operands, targets, strict=True)
    ]
    return rewriter.make_like(values, types)


def _is_mixed(operands: Sequence[Any], types: Sequence[Any]) -> bool:
    return any(value.type.element_type != type_.element_type for value, type_ in zip(operands, types, strict=False))


def _check(rewriter: Rewriter, *types: Any) -> None:
    """Raises :class:`MatchFailure` unless convert can convert tensors of the types."""
    for type_ in types:
        if not rewriter.is_tensor(type_):
            raise MatchFailure(f"{type_}, whose rank is only known at run time")
        if not rewriter.is_number(type_) and not rewriter.is_complex(type_):
            raise MatchFailure(f"elements of type {type_.element_type}, which convert does not support")


def _select_and_scatter(rewriter: Rewriter) -> Sequence[Any] | None:
    """Operands: the operand, the source that is scattered, and the initial value."""
    narrow, wide = rewriter.op.operands[0].type, rewriter.op.results[0].type
    elements = narrow.element_type, wide.element_type
    if not _is_mixed([rewriter.op.operands[0]], [wide]):
        return None
    _check(rewriter, narrow, wide)
    compared = rewriter.op.regions[0].blocks[0].arguments[0].type.element_type
    fewer, more = (getattr(getattr(each, "element_type", each), "width", 0) for each in elements)
    if compared == elements[0] and (fewer >= more or [*map(str, elements)] == ["f8E8M0FNU", "f16"]):
        raise MatchFailure(f"{elements[1]} does not hold every {elements[0]} that select compares")
    (result,) = _converted(rewriter, 3) or ()
    if compared != wide.element_type:
        rewriter.convert_arguments(result.owner.regions[0].blocks[0], wide.element_type)
    return [result]


_PAIRS: Final = partial(_converted, groups=2)  # operands: inputs, then an initial value for each

MIXED_REDUCTION_EXACT: Final[Mapping[str, Build]] = {
    "stablehlo.all_reduce": partial(_converted, groups=1),
    "stablehlo.reduce": _PAIRS,
    "stablehlo.reduce_scatter": partial(_converted, groups=1),
    "stablehlo.reduce_window": _PAIRS,
    "stablehlo.scatter": partial(_converted, groups=2, indices=1),  # inputs, the indices, updates for each input
    "stablehlo.select_and_scatter": _select_and_scatter,
}
