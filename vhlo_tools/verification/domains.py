"""Domains of arguments: the values for which the ops that use an argument are intended.

Source of the domains: the semantics of each op in the specification of StableHLO. Outside of them the ops have results
too, but mostly ones that do not distinguish programs: NaN, and indices that are clamped to the last one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, get_args

from vhlo_tools.bindings import Operation
from vhlo_tools.execution import OP_TRAITS, DomainKind, ops_where
from vhlo_tools.records import dataclass

#: In ascending order of precedence: if ops require several domains, the last one applies.
_ORDER: Final[tuple[DomainKind, ...]] = get_args(DomainKind)


@dataclass(frozen=True, slots=True)
class Domain:
    #: shift: below the number of bits; unit: -1 to 1; definite: positive definite matrices; index: 0 to below ``end``
    kind: DomainKind = "any"
    end: int = 0

    def narrowed(self, other: Domain) -> Domain:
        if self.kind == other.kind == "index":
            return self if self.end <= other.end else other
        return max(self, other, key=lambda each: _ORDER.index(each.kind))


_Rule = Callable[[Operation, int], Domain]

_MOST_VALUES: Final = 2000


def domain_of(argument: Any, functions: dict[str, Operation]) -> Domain:
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
    """Derived from the operand, or equal to it."""
    name = str(op.name)
    if name in _KEEP_DOMAINS:
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


_KEEP_DOMAINS: Final = ops_where(lambda traits: traits.keeps_domain)


def _plain(kind: DomainKind) -> _Rule:
    return lambda op, number: Domain(kind)


def _slice_start(first: int, sizes: int | None) -> _Rule:
    """``first`` is the first start; the operand ``sizes`` has the shape of the slice, by default the result has it."""

    def rule(op: Operation, number: int) -> Domain:
        if number < first:
            return Domain()
        whole, part = op.operands[0].type, (op.results[0] if sizes is None else op.operands[sizes]).type
        axis = number - first
        if whole.is_dynamic_dim(axis) or part.is_dynamic_dim(axis):
            return Domain("index", 1)
        return Domain("index", max(1, whole.get_dim_size(axis) - part.get_dim_size(axis) + 1))

    return rule


def _indices(attribute: str, field: str) -> _Rule:
    """Indices into the dimensions that a field of an attribute lists."""
    listed = re.compile(rf"{field} = \[([\d, ]*)\]")

    def rule(op: Operation, number: int) -> Domain:
        type_ = op.operands[0].type
        said = listed.search(str(op.attributes[attribute]))
        axes = [int(each) for each in said[1].split(",") if each.strip()] if said else range(type_.rank)
        sizes = [1 if type_.is_dynamic_dim(axis) else type_.get_dim_size(axis) for axis in axes]
        return Domain("index", max(1, min(sizes, default=1)))

    return rule


def _branches(op: Operation, number: int) -> Domain:
    return Domain("index", len(op.regions))


#: The ranges of indices, by op and operand.
INDEX_RULES: Final[Mapping[tuple[str, int | None], _Rule]] = {
    ("stablehlo.case", 0): _branches,
    ("stablehlo.dynamic_slice", None): _slice_start(1, None),
    ("stablehlo.dynamic_update_slice", None): _slice_start(2, 1),
    ("stablehlo.gather", 1): _indices("dimension_numbers", "start_index_map"),
    ("stablehlo.dynamic_gather", 1): _indices("dimension_numbers", "start_index_map"),
    # With one input; several inputs shift the operand number of the indices.
    ("stablehlo.scatter", 1): _indices("scatter_dimension_numbers", "scatter_dims_to_operand_dims"),
}

#: Rules by op and operand, ``None`` for any operand.
_DOMAINS: Final[Mapping[tuple[str, int | None], _Rule]] = {
    (name, number): INDEX_RULES[name, number] if kind == "index" else _plain(kind)
    for name, traits in OP_TRAITS.items()
    for number, kind in traits.domains.items()
}
