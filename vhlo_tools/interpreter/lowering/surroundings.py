"""The program put inside of a ``main`` whose values the interpreter exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.bindings.inlining import inline_calls
from vhlo_tools.interpreter.carrying import carrying_main, is_direct
from vhlo_tools.interpreter.lowering.calls import passes_only_tensors
from vhlo_tools.interpreter.values import ValueType

__all__ = ["surround"]

_INNER: Final = "vhlo_tools.program"


def surround(provider: Provider, module: Module, arguments: Sequence[ValueType], results: Sequence[ValueType]) -> None:
    """Give ``module`` a ``main`` of tensors that the interpreter takes and gives, in place, where it has another.

    Args:
        provider: The bindings.
        module: The program.
        arguments: The types of what its own ``main`` takes.
        results: The types of what that returns.
    """
    with module.context:
        if not all(map(is_direct, (*arguments, *results))):
            outer = provider.parse(module.context, carrying_main(arguments, results, _INNER))
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
    """Erase what was the program's ``main``; it stays where it calls itself."""
    ops = provider.walk(module)
    if any(_callee(op) == _INNER for op in ops):
        return
    for op in ops:
        if str(op.name) == "func.func" and op.attributes["sym_name"].value == _INNER:
            op.operation.erase()
            return
