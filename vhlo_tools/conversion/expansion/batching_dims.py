"""Batching dimensions of gather, dynamic_gather and scatter, introduced in 1.1.0, as indices.

An index vector gets, in front of its own elements, its position along each batching dimension of the indices: an iota
for each one is concatenated to them. Each batching dimension of the operand is then indexed, and collapsed (in a
scatter: inserted), as the slices have at most one element along it.

The elements that are read and written remain the same. A gather clamps the start of a slice to
``[0, dim(operand, d) - slice_sizes[d]]``, and positions are at most ``dim(operand, d) - 1``, while slices have at most
one element, so that no position is changed. A scatter skips elements that are out of bounds; positions never are.
Indices are converted where positions need a wider type, to one that has all values of the type before. The order in
which a scatter visits its updates does not change, nor does whether its indices are unique.

Indices remain sorted (``indices_are_sorted``) if the batching dimensions of the indices come before all others, in
order, so that positions grow along them, and those of the operand before all others that are indexed. Otherwise that is
no longer said, which promises less, and changes no result.

Source: ``gather`` and ``scatter`` in the StableHLO specification, and ``stablehlo/transforms/
StablehloCompatibilityExpander.cpp`` of openxla/stablehlo, which does it for indices of static sizes; it still says that
indices are sorted where other dimensions come before the batching dimensions, and they no longer are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import DIMENSION_BITS, MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import dimension_numbers, dimension_numbers_text


class _Names(NamedTuple):
    """Names of the parts of the dimension numbers."""

    kind: str
    attribute: str
    window: str
    collapsed: str
    batching: str
    indices_batching: str
    index_map: str


_GATHER: Final = _Names(
    *("gather", "dimension_numbers", "offset_dims", "collapsed_slice_dims"),
    *("operand_batching_dims", "start_indices_batching_dims", "start_index_map"),
)
_SCATTER: Final = _Names(
    *("scatter", "scatter_dimension_numbers", "update_window_dims", "inserted_window_dims"),
    *("input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"),
)


def _expanding(names: _Names, indices_at: Callable[[int], int]) -> Build:
    """``indices_at`` returns the number of the operand with the indices from the number of operands."""

    def expand(rewriter: Rewriter) -> Sequence[Any] | None:
        op = rewriter.op
        numbers = dimension_numbers(op.attributes[names.attribute])
        batching, of_indices = numbers.get(names.batching), numbers.get(names.indices_batching, [])
        if not batching:
            return None
        operands = list(op.operands)
        at = indices_at(len(operands))
        indices = operands[at]
        if indices.type.encoding is not None:
            raise MatchFailure(f"the indices have bounded sizes: {indices.type}")
        # Either size may be the only one that is known.
        of_operand, sizes = rewriter.shape(operands[0].type), rewriter.shape(indices.type)
        counts = [
            sizes[one] if sizes[one] is not None else of_operand[other]
            for one, other in zip(of_indices, batching, strict=True)
        ]
        (vector,) = numbers["index_vector_dim"]
        indices = rewriter.convert(indices, _wide_enough(rewriter, indices.type.element_type, counts))
        operands[at] = _with_positions(rewriter, indices, vector, of_indices)
        index_map = [*batching, *numbers.get(names.index_map, [])]
        collapsed = sorted([*batching, *numbers.get(names.collapsed, [])])
        kept = {
            names.window: numbers.get(names.window, ()),
            names.collapsed: collapsed,
            names.index_map: index_map,
            "index_vector_dim": numbers["index_vector_dim"],
        }
        changed = {names.attribute: rewriter.attribute(dimension_numbers_text(names.kind, kept))}
        places = [each - (each > vector) for each in of_indices]
        if places != list(range(len(places))) or index_map != sorted(index_map):
            changed["indices_are_sorted"] = rewriter.attribute("false")
        return rewriter.make_like(operands, [result.type for result in op.results], **changed)

    return expand


def _wide_enough(rewriter: Rewriter, element: Any, counts: Sequence[int | None]) -> Any:
    """A type that has the values of ``element``, and the numbers up to ``counts``."""
    greatest = max((2**62 if count is None else count for count in counts), default=0)
    digits = element.width if element.is_unsigned else element.width - 1
    if greatest < 2**digits or element.width == DIMENSION_BITS:
        return element
    # A type that has a number beyond all values of `element` has these values too.
    return rewriter.integer(32 if greatest < 2**31 else DIMENSION_BITS)


def _with_positions(rewriter: Rewriter, indices: Any, vector: int, dimensions: Sequence[int]) -> Any:
    """Positions along ``dimensions`` come in front of the index vectors, which are along the dimension ``vector``."""
    shape = list(rewriter.shape(indices.type))
    element = indices.type.element_type
    is_scalar = vector == len(shape)
    of_parts = [*shape, 1] if is_scalar else [1 if index == vector else size for index, size in enumerate(shape)]
    type_ = rewriter.tensor(of_parts, element)
    counts = None
    if None in of_parts:
        ones = rewriter.size(1)
        counts = [ones if index == vector else rewriter.dimension(indices, index) for index in range(len(of_parts))]
    if is_scalar:
        indices = rewriter.reshaped(indices, type_, counts or ())
    parts = [*(_iota(rewriter, type_, dimension, counts) for dimension in dimensions), indices]
    own = 1 if is_scalar else shape[vector]
    of_parts[vector] = None if own is None else own + len(dimensions)
    return rewriter.concatenate(parts, rewriter.tensor(of_parts, element), vector)


def _iota(rewriter: Rewriter, type_: Any, dimension: int, counts: Sequence[Any] | None) -> Any:
    along = rewriter.number(dimension)
    if counts is None:
        return rewriter.make("stablehlo.iota", [], type_, iota_dimension=along)
    sizes = rewriter.joined(counts, rewriter.integer(DIMENSION_BITS))
    return rewriter.make("stablehlo.dynamic_iota", [sizes], type_, iota_dimension=along)


_of_gather: Final = _expanding(_GATHER, lambda count: 1)
EXACT: Final[Mapping[str, Build]] = {
    "stablehlo.gather": _of_gather,
    "stablehlo.dynamic_gather": _of_gather,
    "stablehlo.scatter": _expanding(_SCATTER, lambda count: count // 2),
}
