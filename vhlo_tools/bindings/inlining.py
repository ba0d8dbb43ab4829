"""Calls replaced by what they call, which no provider's pass does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.bindings.functions import CALLEES, functions_of
from vhlo_tools.bindings.ir import ModuleOp, Operation
from vhlo_tools.bindings.provider import Provider

__all__ = ["inline_calls"]


def inline_calls(provider: Provider, module: ModuleOp, wanted: Callable[[Operation], bool]) -> None:
    """Replace calls by the body of the function, in place, and those that come with it.

    Calls in a circle stay, and those of functions of no block or of several.

    Args:
        provider: The bindings.
        module: The program.
        wanted: Tells which calls to replace.
    """
    functions = functions_of(module)
    # Each with the functions that it came from, and stands in by now.
    pending: list[tuple[Operation, tuple[str, ...]]] = []

    def add(root: ModuleOp | Operation, within: tuple[str, ...]) -> None:
        for op in provider.walk(root):
            if str(op.name) in CALLEES and wanted(op):
                pending.append((op, within))

    for name, function in functions.items():
        add(function, (name,))
    while pending:
        call, within = pending.pop()
        name = call.attributes[CALLEES[str(call.name)]].value
        callee = functions.get(name)
        if name in within or callee is None or len(callee.regions[0].blocks) != 1:
            continue
        for op in _inlined(call, callee):
            add(op, (*within, name))


def _inlined(call: Operation, callee: Operation) -> list[Any]:
    """Put a copy of the body of ``callee`` in the place of ``call``, and return its ops."""
    copy = callee.operation.clone(ip=False)
    (block,) = copy.regions[0].blocks
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = block.operations
    for op in body:
        op.operation.move_before(call.operation)
    for result, value in zip(call.results, end.operation.operands, strict=True):
        result.replace_all_uses_with(value)
    call.operation.erase()
    return [op.operation for op in body]
