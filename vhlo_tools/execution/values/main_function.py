"""The entry function of a program."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Module, Operation, functions_of
from vhlo_tools.errors import EngineError, InvalidProgramError
from vhlo_tools.program import Program, explain_failure

#: The greatest depth of tuples, as they are processed recursively.
_DEEPEST: Final = 100


def valid_module(program: Program) -> Module:
    """A module from the caller may be unverified."""
    provider = program.provider
    module = provider.as_module(program.load())
    try:
        provider.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics) from failure
    for symbol, op in functions_of(module).items():
        if (depth := _depth(str(op.attributes["function_type"]))) > _DEEPEST:
            raise EngineError(
                f"{program.name}: the tuples of @{symbol} are nested {depth} deep: the limit is {_DEEPEST}"
            )
    return module


def _depth(text: str) -> int:
    starts_and_ends = (1 if each == "<" else -1 for each in text.replace("->", "") if each in "<>")
    return max(accumulate(starts_and_ends), default=0)


def bind_first_argument(program: Program, number: int) -> Module:
    """``number`` becomes a constant in the place of the first argument."""
    module = program.provider.as_module(program.load())
    main, ir = main_of(module, program.name), program.provider.ir
    function_type, block = main.attributes["function_type"].value, main.regions[0].blocks[0]
    with module.context, main.location:
        if not function_type.inputs or str(type_ := function_type.inputs[0]) not in ("tensor<i32>", "tensor<i64>"):
            raise InvalidProgramError(f"{program.name} does not take a number as its first argument")
        value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, number))
        at = ir.InsertionPoint.at_block_begin(block)
        constant = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value}, ip=at)
        block.arguments[0].replace_all_uses_with(constant.result)
        block.erase_argument(0)
        types = function_type.inputs[1:], function_type.results
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        if "arg_attrs" in main.attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(list(main.attributes["arg_attrs"])[1:])
    return module


def main_of(module: Module, name: str) -> Operation:
    functions = functions_of(module)
    if "main" in functions:
        return functions["main"]
    names = [f"@{each}" for each in functions]
    has = f"it has {', '.join(names[:5])}" if names else "it has no functions"
    raise InvalidProgramError(f"{name} has no function @main to run: {has}")
