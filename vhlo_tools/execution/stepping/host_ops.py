"""Selection of the ops of a program that are stepped through instead of evaluated by the engine."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import CALLEES, Module, Operation, Provider, functions_of
from vhlo_tools.execution.op_traits import ops_where

#: Ops that the interpreter does not support, or not on one device without effects.
HOST_OPS: Final = ops_where(lambda traits: traits.reference in ("host", "devices"))


def has_host_ops(provider: Provider, module: Module) -> bool:
    return any(str(op.name) in HOST_OPS for op in provider.walk(module))


class HostOps:
    """Host ops, ops with these in their regions, and calls of functions with these."""

    def __init__(self, provider: Provider, module: Module) -> None:
        self._provider = provider
        self._functions: frozenset[str] = frozenset()
        bodies = functions_of(module)
        # A function is stepped through if it contains such ops, including calls of functions found before.
        while True:
            found = frozenset(name for name, function in bodies.items() if self.includes(function))
            if found == self._functions:
                return
            self._functions = found

    def includes(self, op: Operation) -> bool:
        return any(self._is_host_op(each) for each in self._provider.walk(op))

    def _is_host_op(self, op: Operation) -> bool:
        name = str(op.name)
        if name in CALLEES:
            return str(op.attributes[CALLEES[name]].value) in self._functions
        return name in HOST_OPS
