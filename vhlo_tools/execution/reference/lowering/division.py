"""Division of integers, on which the interpreter crashes if the divisor is zero.

The specification leaves the result open; here it is that of XLA on a CPU: a quotient has all bits set, and a
remainder is the dividend. Source: ``xla/service/elemental_ir_emitter.cc`` in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.bindings import class_of
from vhlo_tools.rewriting import Rewriter, Tensor, select, tensors


def divide(rewriter: Rewriter) -> list[Any] | None:
    if not _may_fail(rewriter):
        return None
    dividend, divisor = tensors(rewriter)
    is_zero = divisor.compare("EQ", 0)
    all_ones = Tensor(rewriter, rewriter.constant(divisor.type, 0)).apply("not")
    return [select(is_zero, all_ones, dividend / select(is_zero, 1, divisor)).value]


def remainder(rewriter: Rewriter) -> list[Any] | None:
    if not _may_fail(rewriter):
        return None
    dividend, divisor = tensors(rewriter)
    is_zero = divisor.compare("EQ", 0)
    return [select(is_zero, dividend, dividend % select(is_zero, 1, divisor)).value]


def _may_fail(rewriter: Rewriter) -> bool:
    divisor = rewriter.op.operands[1]
    return rewriter.is_integer(divisor.type) and not _is_never_zero(divisor)


def _is_never_zero(value: Any) -> bool:
    owner = value.owner
    while str(getattr(owner, "name", None)) == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    if str(getattr(owner, "name", None)) != "stablehlo.constant":
        return False
    elements = owner.attributes["value"]
    return class_of(elements) == "DenseIntElementsAttr" and elements.is_splat and elements.get_splat_value().value != 0
