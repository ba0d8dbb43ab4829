"""The function of a program that is run."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Module, Operation
from vhlo_tools.errors import EngineError, InvalidProgramError
from vhlo_tools.program import Program, explain_failure

__all__ = ["main_of", "valid_module"]

#: Values are taken apart by functions that call themselves.
_DEEPEST: Final = 100


def valid_module(program: Program) -> Module:
    """Return a program as a module, which was verified; one of the caller's perhaps never was.

    Raises:
        InvalidProgramError: If it is not valid.
        EngineError: If it takes or gives tuples that are too deep.
        MalformedArtifactError: If it is a damaged artifact.
    """
    provider = program.provider
    module = provider.as_module(program.load())
    try:
        provider.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics) from failure
    for op in module.body.operations:
        if (
            op.operation.name == "func.func"
            and (depth := _depth(str(op.operation.attributes["function_type"]))) > _DEEPEST
        ):
            raise EngineError(
                f"{program.name}: @{op.operation.attributes['sym_name'].value} takes or gives tuples that are {depth} "
                f"deep, one in the other: at most {_DEEPEST} are run"
            )
    return module


def _depth(text: str) -> int:
    """Return how deep types are, one in the other."""
    starts_and_ends = (1 if each == "<" else -1 for each in text.replace("->", "") if each in "<>")
    return max(accumulate(starts_and_ends), default=0)


def main_of(module: Module, name: str) -> Operation:
    """Return the function ``main`` of a module.

    Args:
        module: The module.
        name: What to call it in messages.

    Raises:
        InvalidProgramError: If there is none.
    """
    names = []
    for op in module.body.operations:
        if op.operation.name == "func.func":
            symbol = op.operation.attributes["sym_name"].value
            if symbol == "main":
                main: Operation = op.operation
                return main
            names.append(f"@{symbol}")
    has = f"it has {', '.join(names[:5])}" if names else "it has no functions"
    raise InvalidProgramError(f"{name} has no function @main to run: {has}")
