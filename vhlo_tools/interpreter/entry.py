"""The function of a program that is run."""

from __future__ import annotations

from vhlo_tools.bindings import Module, Operation
from vhlo_tools.errors import InvalidProgramError

__all__ = ["main_of"]


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
