"""What values suit an argument: those that the ops it comes to are made for.

Source of the domains: the semantics of each op in the specification of StableHLO. Out of them the ops have results too,
but mostly none that tell programs apart: what is no number, and indices that are clamped to the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from vhlo_tools.bindings import Operation

__all__ = ["Domain", "domain_of"]

Kind = Literal["any", "shift", "nonzero", "positive", "above-one", "unit", "definite", "index"]

#: The narrower, the later: of several that ops ask for, the last is taken.
_ORDER: Final = ("any", "shift", "nonzero", "positive", "above-one", "unit", "definite", "index")


@dataclass(frozen=True, slots=True)
class Domain:
    """Values that suit an argument.

    Attributes:
        kind: ``shift`` is below the number of bits, ``unit`` from -1 to 1, ``definite`` positive definite matrices,
            ``index`` from 0 to below ``end``.
        end: The end of indices.
    """

    kind: Kind = "any"
    end: int = 0

    def narrowed(self, other: Domain) -> Domain:
        """Return the narrower of two."""
        if self.kind == other.kind == "index":
            return self if self.end <= other.end else other
        return max(self, other, key=lambda each: _ORDER.index(each.kind))


_MOST_VALUES: Final = 2000


def domain_of(argument: Any, functions: dict[str, Operation]) -> Domain:
    """Return what suits an argument of a block.

    Args:
        argument: The argument.
        functions: The functions of its module, by name.
    """
    domain, seen = Domain(), {argument}
    pending = [argument]
    while pending and len(seen) < _MOST_VALUES:
        for use in pending.pop().uses:
            op, number = use.owner.operation, use.operand_number
            if (rule := _DOMAINS.get((str(op.name), number))) or (rule := _DOMAINS.get((str(op.name), None))):
                domain = domain.narrowed(rule(op, number))
            for value in _same_values(op, number, functions):
                if value not in seen:
                    seen.add(value)
                    pending.append(value)
    return domain


def _same_values(op: Operation, number: int, functions: dict[str, Operation]) -> Iterator[Any]:
    """Yield values that are made of those of an operand, or are them."""
    name = str(op.name)
    if name in _MOVING:
        yield op.results[0]
    elif name == "stablehlo.optimization_barrier":
        yield op.results[number]
    elif name == "stablehlo.while":
        for region in op.regions:
            yield region.blocks[0].arguments[number]
        yield op.results[number]
    elif name == "func.call":
        called = functions.get(op.attributes["callee"].value)
        if called is not None and len(called.regions[0].blocks):
            yield called.regions[0].blocks[0].arguments[number]


_MOVING: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast_in_dim", "concatenate", "convert", "dynamic_broadcast_in_dim", "dynamic_reshape", "reshape"),
        *("dynamic_slice", "gather", "pad", "real_dynamic_slice", "reverse", "select", "slice", "transpose"),
    )
) | {"mhlo.copy"}


def _plain(kind: Kind) -> Callable[[Operation, int], Domain]:
    return lambda op, number: Domain(kind)


def _slice_start(first: int, sizes: int | None) -> Callable[[Operation, int], Domain]:
    """Return the rule for starts of slices.

    Args:
        first: The number of the operand that is the first start.
        sizes: The number of the operand that has the shape of the slice; the result has it if there is none.
    """

    def rule(op: Operation, number: int) -> Domain:
        if number < first:
            return Domain()
        whole, part = op.operands[0].type, (op.results[0] if sizes is None else op.operands[sizes]).type
        axis = number - first
        if whole.is_dynamic_dim(axis) or part.is_dynamic_dim(axis):
            return Domain("index", 1)
        return Domain("index", max(1, whole.get_dim_size(axis) - part.get_dim_size(axis) + 1))

    return rule


def _indices(attribute: str, field: str) -> Callable[[Operation, int], Domain]:
    """Return the rule for indices into the dimensions that a field of an attribute names."""
    listed = re.compile(rf"{field} = \[([\d, ]*)\]")

    def rule(op: Operation, number: int) -> Domain:
        kind = op.operands[0].type
        said = listed.search(str(op.attributes[attribute]))
        axes = [int(each) for each in said[1].split(",") if each.strip()] if said else range(kind.rank)
        sizes = [1 if kind.is_dynamic_dim(axis) else kind.get_dim_size(axis) for axis in axes]
        return Domain("index", max(1, min(sizes, default=1)))

    return rule


def _branches(op: Operation, number: int) -> Domain:
    return Domain("index", len(op.regions))


def _named(kinds: dict[Kind, tuple[str, ...]]) -> dict[tuple[str, int | None], Callable[[Operation, int], Domain]]:
    return {(name, None): _plain(kind) for kind, names in kinds.items() for name in names}


#: By op and operand, ``None`` for any operand.
_DOMAINS: Final[dict[tuple[str, int | None], Callable[[Operation, int], Domain]]] = {
    **_named(
        {
            "positive": (
                *("stablehlo.log", "stablehlo.sqrt", "stablehlo.rsqrt", "chlo.digamma", "chlo.lgamma", "chlo.zeta"),
                *("chlo.polygamma", "stablehlo.log_plus_one"),
            ),
            "unit": ("chlo.acos", "chlo.asin", "chlo.atanh", "chlo.erf_inv"),
            "above-one": ("chlo.acosh",),
            "definite": ("stablehlo.cholesky",),
        }
    ),
    ("stablehlo.power", 0): _plain("positive"),
    ("stablehlo.divide", 1): _plain("nonzero"),
    ("stablehlo.remainder", 1): _plain("nonzero"),
    ("stablehlo.triangular_solve", 0): _plain("definite"),
    **{
        (f"stablehlo.{name}", 1): _plain("shift")
        for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    ("stablehlo.case", 0): _branches,
    ("stablehlo.dynamic_slice", None): _slice_start(1, None),
    ("stablehlo.dynamic_update_slice", None): _slice_start(2, 1),
    ("stablehlo.gather", 1): _indices("dimension_numbers", "start_index_map"),
    ("stablehlo.dynamic_gather", 1): _indices("dimension_numbers", "start_index_map"),
    # One operand at the least, which its indices follow.
    ("stablehlo.scatter", 1): _indices("scatter_dimension_numbers", "scatter_dims_to_operand_dims"),
}
