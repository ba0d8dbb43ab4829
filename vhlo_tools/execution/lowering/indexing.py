"""Slices, indices and scatters for the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from vhlo_tools.bindings import Operation
from vhlo_tools.conversion import Pattern, Rewriter, Tensor, dimension_numbers, select
from vhlo_tools.version import Version

# Indices of types that engines handle incorrectly
#
# The interpreter reads unsigned indices as negative numbers if their highest bit is set, and XLA those of constants.
# XLA in jaxlib 0.10.2 compares narrow ones with the last bits of a size, in ``dynamic_update_slice`` and in a
# ``scatter`` of one window.

_WIDE: Final = 32


def signed_from(first: int, last: int | None = None) -> Callable[[Rewriter], list[Any] | None]:
    """Indices are the operands from ``first`` to before ``last``, by default to the end."""

    def convert(rewriter: Rewriter) -> list[Any] | None:
        operands = list(rewriter.op.operands)
        converted = [signed(Tensor(rewriter, each)).value for each in operands[first:last]]
        if converted == operands[first:last]:
            return None
        operands[first:last] = converted
        return rewriter.make_like(operands, [each.type for each in rewriter.op.results])

    return convert


def signed(indices: Tensor) -> Tensor:
    rewriter, element = indices.rewriter, indices.element
    if not element.is_unsigned:
        return indices if element.width >= _WIDE else indices.convert(rewriter.integer(64))
    # The greatest values of 64 bits are beyond every tensor, and stay so after the limit.
    within = indices.apply("minimum", 2**62) if element.width == 64 else indices
    return within.convert(rewriter.integer(64))


# Slices whose bounds are values, which the interpreter does not support


def real_dynamic_slice(rewriter: Rewriter) -> list[Any] | None:
    """The slice has the size of the result, if that is known.

    Source: ``RealDynamicSliceOp`` in ``stablehlo/dialect/StablehloOps.td`` in openxla/stablehlo, and the StableHLO
    specification, ``slice`` and ``dynamic_slice``.
    """
    operand, starts, _, strides = rewriter.operands()
    result = rewriter.result_type()
    if None in rewriter.shape(result):
        return None
    sizes = rewriter.static(result)
    begins = [_element(rewriter, starts, index) for index in range(len(sizes))]
    is_constant = str(getattr(strides.owner, "name", "")) == "stablehlo.constant"
    if not sizes or (is_constant and all(int(each) == 1 for each in strides.owner.attributes["value"])):
        return [
            rewriter.make("stablehlo.dynamic_slice", [operand, *begins], result, slice_sizes=rewriter.integers(sizes))
        ]
    for index, begin in enumerate(begins):
        operand = _strided(rewriter, operand, index, sizes[index], begin, _element(rewriter, strides, index))
    return [operand]


def _element(rewriter: Rewriter, vector: Any, index: int) -> Any:
    bounds = {"start_indices": [index], "limit_indices": [index + 1], "strides": [1]}
    attributes = {name: rewriter.integers(values) for name, values in bounds.items()}
    part = rewriter.make("stablehlo.slice", [vector], rewriter.tensor((1,), vector.type.element_type), **attributes)
    return rewriter.reshape(part, ())


def _strided(rewriter: Rewriter, operand: Any, axis: int, size: int, begin: Any, stride: Any) -> Any:
    type_ = rewriter.tensor((size,), begin.type.element_type)

    def spread(value: Any) -> Any:
        return rewriter.make("stablehlo.broadcast_in_dim", [value], type_, broadcast_dimensions=rewriter.integers([]))

    steps = rewriter.make("stablehlo.iota", [], type_, iota_dimension=rewriter.number(0))
    offsets = rewriter.make("stablehlo.multiply", [steps, spread(stride)], type_)
    indices = rewriter.make("stablehlo.add", [spread(begin), offsets], type_)
    shape = rewriter.static(operand.type)
    others = [each for each in range(len(shape)) if each != axis]
    fields = f"offset_dims = {others}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}]"
    return rewriter.make(
        "stablehlo.gather",
        [operand, indices],
        rewriter.tensor(_replaced(shape, axis, size), operand.type.element_type),
        dimension_numbers=rewriter.attribute(f"#stablehlo.gather<{fields}, index_vector_dim = 1>"),
        slice_sizes=rewriter.integers(_replaced(shape, axis, 1)),
    )


def _replaced(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return tuple(size if index == axis else each for index, each in enumerate(shape))


# Scatters for the interpreter: windows partly outside, and inputs that it overwrites
#
# A window of updates that is not whole inside of the operand changes nothing in XLA, and so in all programs of JAX; the
# specification of StableHLO, and its interpreter, update the elements that are inside
# (https://github.com/openxla/stablehlo/issues/1931).
#
# Up to StableHLO 1.17, ``evalScatterOp`` in ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo writes its results
# into the memory of its inputs, which other ops may use.

#: What the report of a run says of a program with such a scatter.
PARTIAL_WINDOWS: Final = (
    "a window of a scatter that is partly outside of its operand changes nothing, as in XLA and JAX: by the "
    "specification of StableHLO its elements inside are updated"
)

#: The first version whose interpreter leaves inputs as they are.
SCATTERS_TO_COPIES: Final = Version("1.18.0")


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


def _copy_inputs(rewriter: Rewriter) -> None:
    """The interpreter creates new tensors for a reversal along no dimension."""
    operands = rewriter.op.operands
    for index in range((len(operands) - 1) // 2):
        value = operands[index]
        operands[index] = rewriter.make("stablehlo.reverse", [value], value.type, dimensions=rewriter.integers([]))


#: The pattern for inputs that are overwritten.
SCATTER_PATTERNS: Final = (Pattern("stablehlo.scatter", _copy_inputs, required=True),)
