"""The function of a program that is run."""

from __future__ import annotations

from vhlo_tools.bindings import MLIRFailure, Module, Operation
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.program import Program, explain_failure

__all__ = ["main_of", "valid_module"]


def valid_module(program: Program) -> Module:
    """Return a program as a module, which was verified; one of the caller's perhaps never was.

    Raises:
        InvalidProgramError: If it is not valid.
        MalformedArtifactError: If it is a damaged artifact.
    """
    provider = program.provider
    module = provider.as_module(program.load())
    try:
        provider.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics) from failure
    return module


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
