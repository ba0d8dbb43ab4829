"""Patterns for ops of the dialect ``mhlo`` that its own conversion to StableHLO does not convert.

Source: ``mhlo/IR/hlo_ops.td`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, MatchFailure, Rewriter

#: Ops with an equivalent in CHLO, which is legalized afterwards.
_CHLO_TWINS: Final = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")


def _same(rewriter: Rewriter) -> Sequence[Any]:
    """A copy affects only the location of a value, a domain only the devices that have it."""
    return [rewriter.operand(0)]


def _chlo_twin(rewriter: Rewriter) -> Sequence[Any]:
    name = str(rewriter.op.name).partition(".")[2]
    return [rewriter.make(f"chlo.{name}", rewriter.operands(), rewriter.result_type())]


def _top_k(rewriter: Rewriter) -> Sequence[Any]:
    if "largest" in rewriter.op.attributes and not rewriter.op.attributes["largest"].value:
        raise MatchFailure("the smallest elements")
    types = [rewriter.converted_type(result.type) for result in rewriter.op.results]
    return rewriter.make_several("chlo.top_k", rewriter.operands(), types, k=rewriter.op.attributes["k"])


def _after_token(rewriter: Rewriter) -> Sequence[Any]:
    """A barrier with the token, because the value must not be computed before the token exists."""
    operands = list(rewriter.op.operands)
    return rewriter.make_several("stablehlo.optimization_barrier", operands, [each.type for each in operands])[:1]


def _fusion(rewriter: Rewriter) -> Sequence[Any]:
    """A fusion only groups ops for code generation."""
    return rewriter.body(rewriter.operands())


def _bitcast(rewriter: Rewriter) -> Sequence[Any]:
    """The order in memory is kept; layouts name dimensions from minor to major (``xla/layout.h`` in openxla/xla)."""
    operand, result = rewriter.operand(0), rewriter.result_type()
    if operand.type.element_type != result.element_type:
        # Of another width it is not valid, and no pattern for it.
        shape = rewriter.tensor(rewriter.static(operand.type), result.element_type)
        operand = rewriter.make("stablehlo.bitcast_convert", [operand], shape)
    sizes = rewriter.static(result)
    source = _major_to_minor(rewriter, "source_layout", len(rewriter.static(operand.type)))
    target = _major_to_minor(rewriter, "result_layout", len(sizes))
    in_memory = rewriter.reshape(rewriter.transpose(operand, source), [sizes[at] for at in target])
    return [rewriter.transpose(in_memory, sorted(range(len(sizes)), key=target.__getitem__))]


def _major_to_minor(rewriter: Rewriter, name: str, rank: int) -> list[int]:
    order = list(range(rank))
    if name in rewriter.op.attributes:
        order = [int(each) for each in rewriter.op.attributes[name]][::-1]
    if sorted(order) != list(range(rank)):
        raise MatchFailure(f"{name} is not a permutation of {rank} dimensions")
    return order


#: The patterns for ops of `mhlo`.
MHLO: Final[dict[str, Build]] = {
    "mhlo.add_dependency": _after_token,
    "mhlo.bitcast": _bitcast,
    "mhlo.copy": _same,
    "mhlo.domain": _same,
    "mhlo.fusion": _fusion,
    "mhlo.topk": _top_k,
    **{f"mhlo.{name}": _chlo_twin for name in _CHLO_TWINS},
}
