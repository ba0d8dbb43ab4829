"""Find the functions of a module, and inline calls, for which no provider has a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vhlo_tools.bindings.mlir import ModuleOp, Operation
from vhlo_tools.bindings.provider import Provider

#: The ops that call a function, with the attribute that names the callee.
CALLEES: Final[dict[str, str]] = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def function_of(op: Any) -> str:
    """Return the name of the enclosing function; empty for an op outside of functions."""
    parent = op.operation.parent
    while parent is not None and parent.name != "func.func":
        parent = parent.parent
    return "" if parent is None else str(parent.attributes["sym_name"].value)


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    ops = [each.operation for each in module.operation.regions[0].blocks[0].operations]
    return {str(op.attributes["sym_name"].value): op for op in ops if str(op.name) == "func.func"}


def inline_calls(provider: Provider, module: ModuleOp, wanted: Callable[[Operation], bool]) -> None:
    """Replace calls by the body of the callee, including the calls in inlined bodies.

    Recursive calls remain, as do calls of functions that do not have exactly one block.
    """
    functions = functions_of(module)
    # Each call with the functions that it was inlined from, and the function that contains it.
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
