"""Rules for ops of the dialect ``mhlo`` that its own conversion to StableHLO leaves.

Source: ``mhlo/IR/hlo_ops.td`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.portable.rewriting import Rule
from vhlo_tools.portable.site import Site, Unfit

__all__ = ["LEFTOVERS"]

#: Twins in CHLO, which is legalized afterwards.
_CHLO_TWINS: Final = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")


def _same(site: Site) -> Sequence[Any]:
    """A copy says where a value is, and not what it is; a domain says which devices have it."""
    return [site.operand(0)]


def _chlo_twin(site: Site) -> Sequence[Any]:
    name = str(site.op.name).partition(".")[2]
    return [site.make(f"chlo.{name}", site.operands(), site.result_type())]


def _top_k(site: Site) -> Sequence[Any]:
    if "largest" in site.op.attributes and not site.op.attributes["largest"].value:
        raise Unfit("the smallest elements")
    kinds = [site.carrier(result.type) for result in site.op.results]
    return site.make_several("chlo.top_k", site.operands(), kinds, k=site.op.attributes["k"])


def _after_token(site: Site) -> Sequence[Any]:
    """A value that must not be computed before a token is there goes through a barrier with it."""
    operands = list(site.op.operands)
    return site.make_several("stablehlo.optimization_barrier", operands, [each.type for each in operands])[:1]


#: How they are replaced.
LEFTOVERS: Final[dict[str, Rule]] = {
    "mhlo.add_dependency": _after_token,
    "mhlo.copy": _same,
    "mhlo.domain": _same,
    "mhlo.topk": _top_k,
    **{f"mhlo.{name}": _chlo_twin for name in _CHLO_TWINS},
}
