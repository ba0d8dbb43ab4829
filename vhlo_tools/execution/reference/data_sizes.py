"""Sizes of bounded dimensions that depend on the values of the inputs, as in ``tf.boolean_mask``.

The interpreter needs all shapes. The inputs are known when a program is prepared for them, so that each such size is
evaluated first, by a program that computes nothing else, and becomes a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Operation, Provider, inline_calls
from vhlo_tools.execution.reference.lowering import fit, lower
from vhlo_tools.execution.reference.preflight import check_runnable
from vhlo_tools.execution.values.arrays import ValueType, parse_value_type
from vhlo_tools.execution.values.main_function import main_of

_SET: Final = "stablehlo.set_dimension_size"


def has_data_sizes(text: str) -> bool:
    return _SET in text


def fix_sizes(
    provider: Provider,
    module: Module,
    arguments: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any]],
    name: str,
) -> None:
    """Sizes become constants in place, except those that are set in regions of ops."""
    inline_calls(provider, module, lambda _: True)
    position = _next(main_of(module, name), 0)
    while position is not None:
        op = _ops(main_of(module, name))[position]
        value = _evaluated(provider, module, position, arguments, inputs, name)
        ir = provider.ir
        with module.context, op.location:
            type_ = op.operands[1].type
            attribute = ir.DenseElementsAttr.get(np.asarray(value), type=type_.element_type, shape=type_.shape)
            constant = ir.Operation.create(
                "stablehlo.constant", results=[type_], attributes={"value": attribute}, ip=ir.InsertionPoint(op)
            )
            op.operands[1] = constant.result
        # The constant was added before it.
        position = _next(main_of(module, name), position + 2)


def _ops(main: Operation) -> list[Operation]:
    return list(main.regions[0].blocks[0].operations)


def _next(main: Operation, start: int) -> int | None:
    for position, op in enumerate(_ops(main)):
        if position >= start and str(op.name) == _SET and _maker(op.operands[1]) != "stablehlo.constant":
            return position
    return None


def _maker(value: Any) -> str | None:
    owner = value.owner
    return str(owner.name) if hasattr(owner, "name") else None


def _evaluated(
    provider: Provider,
    module: Module,
    position: int,
    arguments: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any]],
    name: str,
) -> np.ndarray[Any, Any]:
    copy = provider.as_module(provider.clone(module))
    main = main_of(copy, name)
    ops = _ops(main)
    size = ops[position].operands[1]
    result = parse_value_type(str(size.type))
    ir = provider.ir
    with copy.context, main.location:
        ir.Operation.create("func.return", operands=[size], ip=ir.InsertionPoint(ops[position]))
        for op in reversed(ops[position:]):
            op.operation.erase()
        types = main.attributes["function_type"].value.inputs
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [size.type]))
        if "res_attrs" in main.attributes:
            del main.attributes["res_attrs"]
    fit(provider, copy, arguments, [result], inputs, name)
    lower(provider, copy, name)
    check_runnable(provider, copy, name)
    attributes = [provider.dense_elements(copy.context, array) for array in inputs]
    (value,) = provider.evaluate(copy, attributes)
    return provider.array_of(value)
