"""Wrapping of a program in a ``main`` whose values the interpreter can exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vhlo_tools.bindings import Module, Operation, Provider, inline_calls
from vhlo_tools.execution.reference.calling_convention import converting_main, is_direct
from vhlo_tools.execution.reference.lowering.calls import passes_only_tensors
from vhlo_tools.execution.values.arrays import ValueType

_INNER: Final = "vhlo_tools.program"


def wrap_main(provider: Provider, module: Module, arguments: Sequence[ValueType], results: Sequence[ValueType]) -> None:
    with module.context:
        if not all(map(is_direct, (*arguments, *results))):
            outer = provider.parse(module.context, converting_main(arguments, results, _INNER))
            provider.rename_function(module, "main", _INNER)
            _, main = (op.operation for op in outer.body.operations)
            module.body.append(main)
            inline_calls(provider, module, lambda op: _callee(op) == _INNER or not passes_only_tensors(op))
            _erase_unless_called(provider, module)
        else:
            inline_calls(provider, module, lambda op: not passes_only_tensors(op))


def _callee(op: Operation) -> str | None:
    return str(op.attributes["callee"].value) if str(op.name) == "func.call" else None


def _erase_unless_called(provider: Provider, module: Module) -> None:
    """The program's own ``main`` remains if it calls itself."""
    ops = provider.walk(module)
    if any(_callee(op) == _INNER for op in ops):
        return
    for op in ops:
        if str(op.name) == "func.func" and op.attributes["sym_name"].value == _INNER:
            op.operation.erase()
            return
