"""Slices between bounds that are values, which the interpreter does not have."""

from __future__ import annotations

from typing import Any

from vhlo_tools.portable.site import Site, Unfit

__all__ = ["real_dynamic_slice"]


def real_dynamic_slice(site: Site) -> list[Any] | None:
    """Take a slice of the size of the result, where that is known, from where it begins, if its strides are all one.

    Source: StableHLO specification, ``dynamic_slice``, and ``RealDynamicSliceOp`` in
    ``stablehlo/dialect/StablehloOps.td`` in openxla/stablehlo.

    Raises:
        Unfit: If a stride is another number, or known at run time only.
    """
    operand, starts, _, strides = site.operands()
    result = site.result_type()
    if None in site.shape(result):
        return None
    sizes = site.static(result)
    owner = strides.owner
    if sizes and (str(owner.name) != "stablehlo.constant" or any(int(each) != 1 for each in owner.attributes["value"])):
        raise Unfit("strides other than ones")
    kind = starts.type
    one, scalar = site.tensor((1,), kind.element_type), site.tensor((), kind.element_type)
    begins = []
    for index in range(len(sizes)):
        bounds = {"start_indices": [index], "limit_indices": [index + 1], "strides": [1]}
        attributes = {name: site.integers(values) for name, values in bounds.items()}
        part = site.make("stablehlo.slice", [starts], one, **attributes)
        begins.append(site.make("stablehlo.reshape", [part], scalar))
    return [site.make("stablehlo.dynamic_slice", [operand, *begins], result, slice_sizes=site.integers(sizes))]
