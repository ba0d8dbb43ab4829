"""Functions of a module, and what calls them."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["CALLEES", "function_of"]

#: The attribute that names the function, of the ops that call one.
CALLEES: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def function_of(op: Any) -> str:
    """Return the function in which an op stands."""
    parent = op.operation.parent
    while parent.name != "func.func":
        parent = parent.parent
    return str(parent.attributes["sym_name"].value)
