"""Slices whose bounds are values, which the interpreter does not support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.rewriting import Rewriter


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
    if not sizes or _are_ones(strides):
        return [
            rewriter.make("stablehlo.dynamic_slice", [operand, *begins], result, slice_sizes=rewriter.integers(sizes))
        ]
    for index, begin in enumerate(begins):
        operand = _strided(rewriter, operand, index, sizes[index], begin, _element(rewriter, strides, index))
    return [operand]


def _are_ones(strides: Any) -> bool:
    owner = strides.owner
    return str(getattr(owner, "name", "")) == "stablehlo.constant" and all(
        int(each) == 1 for each in owner.attributes["value"]
    )


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
