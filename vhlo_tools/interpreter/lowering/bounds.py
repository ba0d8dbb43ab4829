"""Dimensions with a bound, whose sizes are known once the inputs are: they become plain dynamic ones.

With the shapes of the inputs, StableHLO's own refinement then resolves them. What could make a tensor of bounded size
of one that is not, and has no dynamic form of its own, becomes an op that takes sizes as operands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.interpreter.lowering.retyping import retype
from vhlo_tools.interpreter.lowering.rules import Rule, apply_rules
from vhlo_tools.interpreter.lowering.tensor import spread
from vhlo_tools.portable.site import DIMENSION_BITS, Site, Unfit

__all__ = ["has_bounds", "release_bounds"]

_SIGN: Final = "#stablehlo.bounds<"


def has_bounds(text: str) -> bool:
    """Tell whether a program, which is printed as ``text``, has dimensions with a bound."""
    return _SIGN in text


def release_bounds(provider: Provider, module: ModuleOp, name: str) -> None:
    """Make all bounded dimensions of ``module`` dynamic, in place.

    Args:
        provider: The bindings.
        module: The program.
        name: What to call it in messages.

    Raises:
        EngineError: Naming an op whose result has no size that follows from those of its operands.
        MLIRFailure: If the program has no plain dynamic form.
    """
    apply_rules(provider, module, _RULES, name, valid=False)
    retype(provider, module, lambda kind: _released(provider, kind))
    provider.verify(module)


def _released(provider: Provider, kind: Any) -> Any:
    return provider.ir.RankedTensorType.get(kind.shape, kind.element_type) if _SIGN in str(kind) else kind


def _of_bounded_result(build: Any) -> Rule:
    return lambda site: [build(site, _plain(site))] if _SIGN in str(site.op.results[0].type) else None


def _plain(site: Site) -> Any:
    """Return the type of the result, without its bounds."""
    kind = site.op.results[0].type
    return site.tensor(site.shape(kind), kind.element_type)


def _set_dimension_size(site: Site) -> list[Any]:
    operand, size = site.op.operands
    dimension = int(site.op.attributes["dimension"].value)
    rank = len(site.shape(operand.type))
    limits = [site.dimension(operand, index) for index in range(rank)]
    limits[dimension] = site.convert(size, site.integer(DIMENSION_BITS))
    of_sizes = site.integer(DIMENSION_BITS)
    shape = list(site.shape(operand.type))
    shape[dimension] = None
    return [
        site.make(
            "stablehlo.real_dynamic_slice",
            [operand, site.sizes([0] * rank), site.joined(limits, of_sizes), site.sizes([1] * rank)],
            site.tensor(shape, operand.type.element_type),
        )
    ]


def _reshape(site: Site, kind: Any) -> Any:
    operand = site.op.operands[0]
    known = math.prod(size for size in site.shape(kind) if size is not None)
    if site.shape(kind).count(None) > 1:
        raise Unfit("more than one size that follows from the inputs")
    if not known:
        raise Unfit("a size of a tensor without elements")
    total = site.size(1)
    for index in range(len(site.shape(operand.type))):
        total = site.make("stablehlo.multiply", [total, site.dimension(operand, index)], total.type)
    rest = site.make("stablehlo.divide", [total, site.size(known)], total.type)
    return site.reshaped(operand, kind, [rest if size is None else site.size(size) for size in site.shape(kind)])


def _broadcast(site: Site, kind: Any) -> Any:
    operand = site.op.operands[0]
    along = [int(each) for each in site.op.attributes["broadcast_dimensions"]]
    sizes = []
    for index, size in enumerate(site.shape(kind)):
        if size is None and index not in along:
            raise Unfit("a size that does not follow from those of the operand")
        sizes.append(site.dimension(operand, along.index(index)) if size is None else site.size(size))
    return spread(operand, kind, along, sizes, site)


_RULES: Final[Mapping[str, Rule]] = {
    "stablehlo.broadcast_in_dim": _of_bounded_result(_broadcast),
    "stablehlo.reshape": _of_bounded_result(_reshape),
    "stablehlo.set_dimension_size": _set_dimension_size,
}
