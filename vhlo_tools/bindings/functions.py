"""Functions of a module, and what calls them."""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings.ir import ModuleOp, Operation

__all__ = ["CALLEES", "function_of", "functions_of"]

#: The attribute that names the function, of the ops that call one.
CALLEES: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def function_of(op: Any) -> str:
    """Return the function in which an op stands."""
    parent = op.operation.parent
    while parent.name != "func.func":
        parent = parent.parent
    return str(parent.attributes["sym_name"].value)


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """Return the functions of a module, by their names."""
    ops = [each.operation for each in module.operation.regions[0].blocks[0].operations]
    return {str(op.attributes["sym_name"].value): op for op in ops if str(op.name) == "func.func"}
