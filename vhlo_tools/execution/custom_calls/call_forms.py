"""Static form of a custom call, for checks before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, class_of, elements_of, functions_of, named_attributes
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import CustomCall, plain_attribute
from vhlo_tools.execution.values.arrays import (
    ArgumentType,
    TupleType,
    ValueType,
    parse_value_type,
    type_of_array,
)
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class CallForm:
    target: str
    attributes: Mapping[str, Any]  # plain values, as in CustomCall
    operands: tuple[ValueType | str, ...]  # as text where Python cannot represent values of the type
    results: tuple[ValueType | str, ...]  # likewise; the elements of a single tuple separately
    #: (attribute, entry of a dictionary) -> type as MLIR prints it, where it is known
    entry_types: Mapping[tuple[str, str], str]
    is_tuple: bool = False  # the results are the elements of one tuple
    #: per called computation that compares the first two of four arguments: element type, and GT or LT; else None
    comparisons: tuple[tuple[str, str] | None, ...] = ()


def form_of_op(op: Operation) -> CallForm:
    attributes = dict(named_attributes(op.attributes))
    results = tuple(_type(str(each.type)) for each in op.results)
    outer = results[0] if len(results) == 1 else None
    if isinstance(outer, TupleType):
        results = outer.parts
    return CallForm(
        target=str(attributes["call_target_name"].value),
        attributes={name: plain_attribute(each) for name, each in attributes.items() if name != "call_target_name"},
        operands=tuple(_type(str(each.type)) for each in op.operands),
        results=results,
        entry_types={
            (name, entry): str(value.type)
            for name, each in attributes.items()
            if class_of(each) == "DictAttr"
            for entry, value in named_attributes(each)
            if class_of(value) in ("BoolAttr", "FloatAttr", "IntegerAttr")
        },
        is_tuple=isinstance(outer, TupleType),
        comparisons=tuple(_compared(op, str(each.value)) for each in elements_of(attributes["called_computations"]))
        if "called_computations" in attributes
        else (),
    )


def _compared(op: Operation, name: str) -> tuple[str, str] | None:
    """Element type and direction, if a called computation only compares the first two of its four arguments."""
    module: Any = op.operation
    while module.parent is not None:
        module = module.parent
    function = functions_of(module).get(name)
    if function is None or len(function.regions[0].blocks) != 1:
        return None
    block = function.regions[0].blocks[0]
    types = [str(each.type) for each in block.arguments]
    end = block.operations[len(block.operations) - 1]
    if len(types) != 4 or len(set(types[:2])) != 1 or types[2:] != ["tensor<i32>"] * 2 or len(end.operands) != 1:
        return None
    arguments = {each: str(number) for number, each in enumerate(block.arguments)}
    direction = _COMPARISONS.get(_expression(end.operands[0], arguments))
    return None if direction is None else (types[0][len("tensor<") : -1], direction)


def _expression(value: Any, known: dict[Any, str]) -> str:
    """Canonical text of a value in terms of the arguments, independent of the order of the ops."""
    if (found := known.get(value)) is not None:
        return found
    op = value.owner
    operands = [_expression(each, known) for each in op.operands]
    name = str(op.name).removeprefix("stablehlo.")
    if name == "compare":
        name = str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]
    elif name == "constant":
        name = str(op.attributes["value"])
    elif name == "xor":
        operands.sort()
    elif name == "mhlo.bitcast":
        name = "bitcast_convert"  # the values are scalars
    elif name not in ("bitcast_convert", "select"):
        name = f"unknown {name}"
    known[value] = f"{name}({', '.join(operands)})"
    return known[value]


def _ordered(argument: int) -> str:
    """The bits of a float as an integer in its total order, as XLA writes that."""
    bits = f"bitcast_convert({argument})"
    flipped = ", ".join(sorted((bits, "dense<2147483647> : tensor<i32>()")))
    return f"select(LT({bits}, dense<0> : tensor<i32>()), xor({flipped}), {bits})"


#: The direction of a comparison of the first two arguments, by its expression: of floats, and of f32 in total order.
_COMPARISONS: Final = {
    f"{direction}({one}, {other})": direction
    for direction in ("GT", "LT")
    for one, other in (("0", "1"), (_ordered(0), _ordered(1)))
}


def form_of_call(call: CustomCall, arrays: Sequence[np.ndarray[Any, Any]]) -> CallForm:
    """The called computations were checked in the program, which a handler does not have."""
    operands: list[ArgumentType | str] = [type_of_array(each) or str(each.dtype) for each in arrays]
    attributes = {name: each for name, each in call.attributes.items() if name != "called_computations"}
    return CallForm(call.target, attributes, tuple(operands), call.results, {})


def _type(text: str) -> ValueType | str:
    try:
        return parse_value_type(text)
    except EngineError:
        return text
