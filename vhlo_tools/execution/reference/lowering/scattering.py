"""Scatters for the interpreter: windows partly outside, and inputs that it overwrites.

A window of updates that is not whole inside of the operand changes nothing in XLA, and so in all programs of JAX; the
specification of StableHLO, and its interpreter, update the elements that are inside
(https://github.com/openxla/stablehlo/issues/1931).

Up to StableHLO 1.17, ``evalScatterOp`` in ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo writes its results into
the memory of its inputs, which other ops may use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import Operation
from vhlo_tools.execution.reference.lowering.indices import signed, signed_from
from vhlo_tools.rewriting import Pattern, Rewriter, Tensor, dimension_numbers, select
from vhlo_tools.version import Version

#: What the report of a run says of a program with such a scatter.
PARTIAL_WINDOWS: Final = (
    "a window of a scatter that is partly outside of its operand changes nothing, as in XLA and JAX: by the "
    "specification of StableHLO its elements inside are updated"
)

_FIXED: Final = Version("1.18.0")


def has_partial_windows(op: Operation) -> bool:
    return any(size != 1 for _, size in _indexed(op))


def _indexed(op: Operation) -> list[tuple[int, int]]:
    """Each indexed dimension of the operand, with the size of windows along it."""
    numbers = dimension_numbers(op.attributes["scatter_dimension_numbers"])
    without = {*numbers.get("inserted_window_dims", ()), *numbers.get("input_batching_dims", ())}
    updates = op.operands[len(op.operands) // 2 + 1].type.shape
    of_window = [each for each in range(len(op.operands[0].type.shape)) if each not in without]
    sizes = dict(zip(of_window, (updates[each] for each in numbers.get("update_window_dims", ())), strict=True))
    return [(each, sizes.get(each, 1)) for each in numbers.get("scatter_dims_to_operand_dims", ())]


def scatter(rewriter: Rewriter) -> Sequence[Any] | None:
    """Windows that are partly outside of the operand are moved wholly outside, where they change nothing."""
    op = rewriter.op
    middle = len(op.operands) // 2
    if not has_partial_windows(op):
        return scatter_as_specified(rewriter)
    (vector,) = dimension_numbers(op.attributes["scatter_dimension_numbers"])["index_vector_dim"]
    sizes, indexed = rewriter.static(op.operands[0].type), _indexed(op)
    indices = signed(Tensor(rewriter, op.operands[middle])).convert(rewriter.integer(64))
    # Index vectors are along a dimension of the indices, or are single numbers.
    along = [each for each in range(len(indices.shape)) if each == vector]
    others = [each for each in range(len(indices.shape)) if each != vector]
    greatest = Tensor(rewriter, rewriter.sizes([sizes[each] - window for each, window in indexed]))
    greatest = (greatest if along else greatest.reshape()).broadcast(indices.shape, along)
    inside = indices.compare("GE", 0) & indices.compare("LE", greatest)
    if along:
        inside = inside.reduce("and", along, 1).broadcast(indices.shape, others)
    operands = list(op.operands)
    operands[middle] = select(inside, indices, max(sizes)).value
    return rewriter.make_like(operands, [each.type for each in op.results])


def scatter_as_specified(rewriter: Rewriter) -> Sequence[Any] | None:
    """A scatter has as many operands before its indices as after them."""
    middle = len(rewriter.op.operands) // 2
    return signed_from(middle, middle + 1)(rewriter)


def writes_over_inputs(library: Version) -> bool:
    return library < _FIXED


def _copy_inputs(rewriter: Rewriter) -> None:
    """The interpreter creates new tensors for a reversal along no dimension."""
    operands = rewriter.op.operands
    for index in range((len(operands) - 1) // 2):
        value = operands[index]
        operands[index] = rewriter.make("stablehlo.reverse", [value], value.type, dimensions=rewriter.integers([]))


#: The pattern for inputs that are overwritten.
SCATTER_PATTERNS: Final = (Pattern("stablehlo.scatter", _copy_inputs, required=True),)
