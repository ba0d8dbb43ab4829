"""Programs with bounded dimensions, which XLA runs as they are: with the memory of the bounds, and sizes beside it.

Results of bounded sizes are returned in full, followed by their sizes, and are cut to these afterwards. Source:
``xla/service/dynamic_padder.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.aliasing import Alias, AliasConfig, Donor
from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.execution.values.arrays import ArgumentType, ValueType
from vhlo_tools.program import read_module_aliases, write_module_aliases

#: The dimensions of each array result whose sizes follow the results.
OpenDimensions = tuple[tuple[int, ...], ...]

_SIGN: Final = "#stablehlo.bounds<"


def runs_bounded(provider: Provider, module: Module, arguments: Iterable[ValueType]) -> bool:
    """Arguments must be static, and each other dimension known or bounded."""
    if any(isinstance(each, ArgumentType) and not each.is_static for each in arguments):
        return False
    ir = provider.ir
    types = (result.type for op in provider.walk(module) for result in op.results)
    return all(_is_bounded(each) for each in types if isinstance(each, ir.RankedTensorType))


def _is_bounded(type_: Any) -> bool:
    if type_.has_static_shape:
        return True
    text = str(type_)
    if _SIGN not in text:
        return False
    bounds = text.partition(_SIGN)[2].partition(">")[0].split(",")
    return all(bound.strip() != "?" for axis, bound in enumerate(bounds) if type_.is_dynamic_dim(axis))


def open_dimensions(results: Iterable[ValueType]) -> OpenDimensions:
    return tuple(
        tuple(axis for axis, size in enumerate(each.shape) if size is None)
        for each in results
        if isinstance(each, ArgumentType)
    )


def return_sizes(provider: Provider, module: Module, main: Operation, results: Sequence[ValueType]) -> None:
    """Bounded results are returned in full, followed by their sizes."""
    arrays = [each for each in results if isinstance(each, ArgumentType)]
    if all(each.is_static for each in arrays):
        return
    ir = provider.ir
    terminator = list(main.regions[0].blocks[0].operations)[-1].operation
    config = read_module_aliases(module.operation).config()
    with main.context, main.location, ir.InsertionPoint(terminator):

        def make(name: str, operands: Sequence[Any], type_: Any, **attributes: Any) -> Any:
            return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).result

        i32 = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        i64 = ir.IntegerType.get_signless(64)
        returned, sizes = [], []
        for value, type_ in zip(terminator.operands, arrays, strict=True):
            shape = [bound if size is None else size for size, bound in zip(type_.shape, type_.bounds, strict=True)]
            for axis in (axis for axis, size in enumerate(type_.shape) if size is None):
                dimension = ir.IntegerAttr.get(i64, axis)
                sizes.append(make("stablehlo.get_dimension_size", [value], i32, dimension=dimension))
                full = ir.DenseElementsAttr.get(np.int32(shape[axis] or 0), type=i32.element_type, shape=[])
                bound = make("stablehlo.constant", [], i32, value=full)
                value = make(
                    "stablehlo.set_dimension_size",
                    [value, bound],
                    _closed(provider, value.type, axis, shape),
                    dimension=dimension,
                )
            returned.append(value)
        ir.Operation.create("func.return", operands=[*returned, *sizes])
        terminator.erase()
        if "res_attrs" in main.attributes:
            del main.attributes["res_attrs"]
        inputs = main.attributes["function_type"].value.inputs
        types = [each.type for each in (*returned, *sizes)]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, types))
    _keep_static_aliases(provider, module, config, open_dimensions(arrays))


def _closed(provider: Provider, type_: Any, axis: int, shape: Sequence[int | None]) -> Any:
    """The type with the bounded dimension ``axis`` at its full size."""
    ir = provider.ir
    sizes = [shape[at] if at == axis else size for at, size in enumerate(type_.shape)]
    left = [at for at, size in enumerate(sizes) if size == ir.ShapedType.get_dynamic_size()]
    if not left:
        return ir.RankedTensorType.get(sizes, type_.element_type)
    bounds = ", ".join(str(shape[at]) if at in left else "?" for at in range(len(sizes)))
    return ir.RankedTensorType.get(sizes, type_.element_type, ir.Attribute.parse(f"#stablehlo.bounds<{bounds}>"))


def _keep_static_aliases(provider: Provider, module: Module, config: AliasConfig, opened: OpenDimensions) -> None:
    """The sizes after the results make one result a list of several, so aliases are written anew."""
    aliases = []
    for each in config.aliases:
        number = each.output_index[0] if each.output_index else 0
        if not opened[number]:
            aliases.append(Alias((number,), each.parameter_number, each.parameter_index, each.kind))
    signature = read_module_aliases(module.operation).signature
    donors: Sequence[Donor] = config.donors
    write_module_aliases(module.operation, AliasConfig(signature, aliases, donors), "module", provider=provider)
