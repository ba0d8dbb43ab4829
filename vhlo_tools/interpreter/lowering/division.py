"""Division of integers, which the interpreter dies of where the divisor is zero.

The specification leaves the result open; what stands here is XLA's on a CPU: a quotient has all bits set, and a
remainder is the dividend. Source: ``xla/service/elemental_ir_emitter.cc`` in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.bindings import class_of
from vhlo_tools.interpreter.lowering.tensor import Tensor, select, tensors
from vhlo_tools.portable.site import Site

__all__ = ["divide", "remainder"]


def divide(site: Site) -> list[Any] | None:
    """Guard ``divide`` of integers."""
    if not _may_fail(site):
        return None
    dividend, divisor = tensors(site)
    is_zero = divisor.compare("EQ", 0)
    all_ones = Tensor(site, site.constant(divisor.kind, 0)).apply("not")
    return [select(is_zero, all_ones, dividend / select(is_zero, 1, divisor)).value]


def remainder(site: Site) -> list[Any] | None:
    """Guard ``remainder`` of integers."""
    if not _may_fail(site):
        return None
    dividend, divisor = tensors(site)
    is_zero = divisor.compare("EQ", 0)
    return [select(is_zero, dividend, dividend % select(is_zero, 1, divisor)).value]


def _may_fail(site: Site) -> bool:
    """Tell whether the op divides integers, and not by a constant other than zero."""
    divisor = site.op.operands[1]
    return site.is_integer(divisor.type) and not _is_never_zero(divisor)


def _is_never_zero(value: Any) -> bool:
    owner = value.owner
    while str(getattr(owner, "name", None)) == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    if str(getattr(owner, "name", None)) != "stablehlo.constant":
        return False
    elements = owner.attributes["value"]
    return class_of(elements) == "DenseIntElementsAttr" and elements.is_splat and elements.get_splat_value().value != 0
