"""Slices between bounds that are values, which the interpreter does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.portable.site import Site

__all__ = ["real_dynamic_slice"]


def real_dynamic_slice(site: Site) -> list[Any] | None:
    """Take a slice of the size of the result, where that is known, from where it begins, in strides.

    Source: ``RealDynamicSliceOp`` in ``stablehlo/dialect/StablehloOps.td`` in openxla/stablehlo, and the StableHLO
    specification, ``slice`` and ``dynamic_slice``.
    """
    operand, starts, _, strides = site.operands()
    result = site.result_type()
    if None in site.shape(result):
        return None
    sizes = site.static(result)
    begins = [_element(site, starts, index) for index in range(len(sizes))]
    if not sizes or _are_ones(strides):
        return [site.make("stablehlo.dynamic_slice", [operand, *begins], result, slice_sizes=site.integers(sizes))]
    for index, begin in enumerate(begins):
        operand = _strided(site, operand, index, sizes[index], begin, _element(site, strides, index))
    return [operand]


def _are_ones(strides: Any) -> bool:
    """Tell whether numbers are known to be ones."""
    owner = strides.owner
    return str(getattr(owner, "name", "")) == "stablehlo.constant" and all(
        int(each) == 1 for each in owner.attributes["value"]
    )


def _element(site: Site, vector: Any, index: int) -> Any:
    bounds = {"start_indices": [index], "limit_indices": [index + 1], "strides": [1]}
    attributes = {name: site.integers(values) for name, values in bounds.items()}
    part = site.make("stablehlo.slice", [vector], site.tensor((1,), vector.type.element_type), **attributes)
    return site.reshape(part, ())


def _strided(site: Site, operand: Any, axis: int, size: int, begin: Any, stride: Any) -> Any:
    """Return so many slices of a tensor along an axis, from where they begin, in strides."""
    kind = site.tensor((size,), begin.type.element_type)

    def spread(value: Any) -> Any:
        return site.make("stablehlo.broadcast_in_dim", [value], kind, broadcast_dimensions=site.integers([]))

    steps = site.make("stablehlo.iota", [], kind, iota_dimension=site.number(0))
    offsets = site.make("stablehlo.multiply", [steps, spread(stride)], kind)
    indices = site.make("stablehlo.add", [spread(begin), offsets], kind)
    shape = site.static(operand.type)
    others = [each for each in range(len(shape)) if each != axis]
    fields = f"offset_dims = {others}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}]"
    return site.make(
        "stablehlo.gather",
        [operand, indices],
        site.tensor(_replaced(shape, axis, size), operand.type.element_type),
        dimension_numbers=site.attribute(f"#stablehlo.gather<{fields}, index_vector_dim = 1>"),
        slice_sizes=site.integers(_replaced(shape, axis, 1)),
    )


def _replaced(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return tuple(size if index == axis else each for index, each in enumerate(shape))
