"""Preparation of programs for the reference interpreter: types, checks, costs, and sizes that depend on data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import (
    CALLEES,
    Module,
    ModuleOp,
    Operation,
    Provider,
    functions_of,
    inline_calls,
    missing_part,
)
from vhlo_tools.execution.handlers import refusal
from vhlo_tools.execution.lowering.lowering import fit, lower
from vhlo_tools.execution.lowering.shapes import passes_only_tensors
from vhlo_tools.execution.op_traits import OP_TRAITS, Cost, ops_where
from vhlo_tools.execution.values import ValueType, main_of, parse_value_type, retype_main

# Checks for ops that would crash the reference interpreter, before it runs
#
# The interpreter crashes the process on an op that it does not know; an error that names the op is better.

#: Ops that the interpreter evaluates, and ops that it never reaches: meshes, which only attributes refer to.
_EVALUATED: Final = ops_where(lambda traits: traits.reference == "evaluated")

#: The size in bytes of so many elements of the largest types exceeds 63 bits.
_LARGEST: Final = 2**59
_SIZES: Final = re.compile(r"tensor<((?:[0-9?]+x)*)")
#: The reason for refusing a value of that size.
TOO_LARGE: Final = "the size of its result in bytes overflows 63 bits"

#: The reasons for not rewriting ops that another engine runs.
_GAPS: Final = {name: traits.reference_gap for name, traits in OP_TRAITS.items() if traits.reference_gap}


def check_runnable(provider: Provider, module: ModuleOp, name: str) -> None:
    for op in provider.walk(module):
        if reason := _reason(provider, op):
            raise refusal(op, name, reason)


def _reason(provider: Provider, op: Operation) -> str | None:
    name = str(op.name)
    for result in op.results:
        if "?" in str(result.type):
            return f"the inputs do not resolve the shape of its result {result.type}"
        if is_too_large(result):
            return TOO_LARGE
    if name in CALLEES and not passes_only_tensors(op):
        return "it passes tokens or tuples to a recursive function, but the interpreter can only pass tensors"
    if name == "func.func" and not len(op.regions[0].blocks):
        return "the function is declared, but not defined"
    if name not in _EVALUATED:
        dialect = name.partition(".")[0]
        if dialect != "stablehlo":
            return f"it does not support ops of the dialect {dialect}"
        return _GAPS.get(name, "it does not implement this op")
    if (missing := missing_part(provider, name)) is not None:
        return f"{missing}, or run it on the engine xla"
    if name == "stablehlo.constant" and provider.is_in_resource(op):
        return "the program does not contain the bytes of its dense_resource"
    return None


def is_too_large(value: Any) -> bool:
    """The size of the value in bytes overflows, which is an error in either engine."""
    shapes = ([int(size) for size in text.split("x") if size.isdecimal()] for text in _SIZES.findall(str(value.type)))
    # A dimension of size zero does not prevent an overflow of the product of the others.
    return any(math.prod(size or 1 for size in sizes) >= _LARGEST for sizes in shapes)


# Estimate of the work of a program, from its ops

#: The assumed number of iterations of a loop, and size of a dynamic dimension, as both are unknown before the run.
_MANY: Final = 32
#: The greatest nesting depth of regions and calls that is examined.
_DEEPEST: Final = 100


def estimated_steps(module: Module) -> int:
    """Approximate number of operations on elements."""
    return _Estimate(functions_of(module)).of_function("main")


class _Estimate:
    def __init__(self, functions: Mapping[str, Operation]) -> None:
        self._functions = functions
        self._steps: dict[str, int] = {}
        self._depth = 0

    def of_function(self, name: str) -> int:
        """A recursive function counts as one call."""
        if name not in self._steps:
            self._steps[name] = 0
            function = self._functions.get(name)
            self._steps[name] = self._of_regions(function) if function is not None else 0
        return self._steps[name]

    def _of_regions(self, op: Operation) -> int:
        if self._depth == _DEEPEST:
            return 1
        self._depth += 1
        steps = sum(self._of_op(each.operation) for region in op.regions for block in region for each in block)
        self._depth -= 1
        return steps

    def _of_op(self, op: Any) -> int:
        cost = _COSTS.get(str(op.name), "results")
        if cost == "free":
            return 0
        if cost == "callee":
            return self.of_function(str(op.attributes[CALLEES[str(op.name)]].value))
        if cost == "loop":
            return _MANY * self._of_regions(op)
        body = max(self._of_regions(op), 1)
        return body if cost == "branch" else body * FACTORS[cost](op)


def _elements(value: Any) -> int:
    type_ = value.type
    if not hasattr(type_, "shape"):
        return 1
    return math.prod(_MANY if type_.is_dynamic_dim(index) else size for index, size in enumerate(type_.shape))


def _results(op: Any) -> int:
    return sum(map(_elements, op.results)) or 1


def _operands(op: Any) -> int:
    return max(map(_elements, op.operands), default=1)


def _dot_general(op: Any) -> int:
    match = _CONTRACTED.search(str(op.attributes["dot_dimension_numbers"]))
    sizes = op.operands[0].type.shape
    contracted = [sizes[int(each)] for each in match[1].split(",") if each.strip()] if match else []
    # Unknown sizes are negative.
    return _results(op) * math.prod(size if size >= 0 else _MANY for size in contracted)


def _convolution(op: Any) -> int:
    match = _KERNEL.search(str(op.attributes["dimension_numbers"]))
    names = [each.strip() for each in match[1].split(",")] if match else []
    features = op.operands[1].type.shape[names.index("o")] if "o" in names else 1
    return _results(op) * max(_elements(op.operands[1]) // max(features, 1), 1)


def _window(op: Any) -> int:
    return _results(op) * math.prod(int(each) for each in op.attributes["window_dimensions"])


def _sort(op: Any) -> int:
    return _operands(op) * max(_operands(op).bit_length(), 1)


_CONTRACTED: Final = re.compile(r"lhs_contracting_dimensions = \[([0-9, ]*)\]")
_KERNEL: Final = re.compile(r"x\[([^\[\]]*)\]")
#: The number of times that an op performs its operation on elements.
FACTORS: Final[Mapping[Cost, Callable[[Any], int]]] = {
    "contraction": _dot_general,
    "convolution": _convolution,
    "operands": _operands,
    "results": _results,
    "sort": _sort,
    "window": _window,
}
_COSTS: Final[Mapping[str, Cost]] = {name: traits.cost for name, traits in OP_TRAITS.items()}


# Sizes of bounded dimensions that depend on the values of the inputs, as in ``tf.boolean_mask``
#
# The interpreter needs all shapes. The inputs are known when a program is prepared for them, so that each such size is
# evaluated first, by a program that computes nothing else, and becomes a constant.

_SET: Final = "stablehlo.set_dimension_size"
#: The greatest number of iterations of loops that set sizes: each is evaluated before the run.
_MOST_ITERATIONS: Final = 200


def has_data_sizes(text: str) -> bool:
    return _SET in text


def fix_sizes(
    provider: Provider,
    module: Module,
    arguments: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any]],
    name: str,
) -> None:
    """In place, sizes become constants, and loops that set sizes their iterations; branches remain as they are."""
    inline_calls(provider, module, lambda _: True)
    ir, block = provider.ir, main_of(module, name).regions[0].blocks[0]
    condition: Any = None  # of the loop that is next
    iterations = position = 0

    def value_of(number: int) -> np.ndarray[Any, Any]:
        """Of an operand of the op at this position."""
        return _evaluated(provider, module, position, number, arguments, inputs, name)

    def value_before(op: Any, value: Any) -> np.ndarray[Any, Any]:
        with op.location:
            held = ir.Operation.create(
                "stablehlo.optimization_barrier", results=[value.type], operands=[value], ip=ir.InsertionPoint(op)
            )
        found = value_of(0)
        held.operation.erase()
        return found

    ops = list(block.operations)
    while position < len(ops):
        op = ops[position]
        if str(op.name) == _SET and str(getattr(op.operands[1].owner, "name", "")) != "stablehlo.constant":
            with module.context, op.location:
                type_ = op.operands[1].type
                size = np.asarray(value_of(1))
                attribute = ir.DenseElementsAttr.get(size, type=type_.element_type, shape=type_.shape)
                constant = ir.Operation.create(
                    "stablehlo.constant", results=[type_], attributes={"value": attribute}, ip=ir.InsertionPoint(op)
                )
                op.operands[1] = constant.result
            position += 2
        elif str(op.name) != "stablehlo.while" or not any(str(each.name) == _SET for each in provider.walk(op)):
            position += 1
            continue
        elif condition is None:
            (condition,) = _inlined_region(op, 0)
        elif value_before(op, condition):
            condition, iterations = None, iterations + 1
            if iterations > _MOST_ITERATIONS:
                raise refusal(op, name, f"it sets sizes of arrays in more than {_MOST_ITERATIONS} iterations")
            for number, each in enumerate(_inlined_region(op, 1)):
                op.operands[number] = each
        else:
            condition = None
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.operation.erase()
        ops = list(block.operations)


def _inlined_region(op: Any, number: int) -> list[Any]:
    """Return what a region of a loop returns for its operands; its ops stand before the loop."""
    copy = op.operation.clone(ip=False)
    (block,) = copy.regions[number].blocks
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = block.operations
    for each in body:
        each.operation.move_before(op.operation)
    return list(end.operation.operands)


def _evaluated(
    provider: Provider,
    module: Module,
    position: int,
    number: int,
    arguments: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any]],
    name: str,
) -> np.ndarray[Any, Any]:
    copy = provider.as_module(provider.clone(module))
    main = main_of(copy, name)
    block = main.regions[0].blocks[0]
    ops = list(block.operations)
    value = ops[position].operands[number]
    result = parse_value_type(str(value.type))
    ir = provider.ir
    with copy.context, main.location:
        ir.Operation.create("func.return", operands=[value], ip=ir.InsertionPoint(ops[position]))
        for op in reversed(ops[position:]):
            op.operation.erase()
        retype_main(ir, main, block.arguments, [value])
    fit(provider, copy, arguments, [result], inputs, name)
    lower(provider, copy, name)
    check_runnable(provider, copy, name)
    attributes = [provider.dense_elements(copy.context, array) for array in inputs]
    (evaluated,) = provider.evaluate(copy, attributes)
    return provider.array_of(evaluated)
