"""Calls replaced by what they call, where the interpreter cannot make them: it passes only tensors to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.interpreter.functions import CALLEES, functions_of

__all__ = ["inline_calls", "passes_only_tensors"]


def passes_only_tensors(op: Operation) -> bool:
    """Tell whether all operands and results are tensors, and not tokens or tuples."""
    return all(str(value.type).startswith("tensor<") for value in (*op.operands, *op.results))


def inline_calls(provider: Provider, module: ModuleOp, wanted: Callable[[Operation], bool]) -> None:
    """Replace calls by the body of the function, in place, and those that come with it, but for calls in a circle.

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
        if name in within or callee is None or not len(callee.regions[0].blocks):
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
