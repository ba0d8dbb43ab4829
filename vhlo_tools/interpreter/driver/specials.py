"""Which ops of a program are walked, and not evaluated by the engine."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.bindings.functions import CALLEES, functions_of
from vhlo_tools.interpreter.driver.manual import MANUAL_COMPUTATION

__all__ = ["SPECIAL", "Specials", "has_special"]

#: Ops that the interpreter does not have, or not on one device without effects.
SPECIAL: Final = frozenset({MANUAL_COMPUTATION}) | frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "async_done", "async_start", "collective_broadcast",
        "collective_permute", "collective_reduce", "custom_call", "infeed", "outfeed", "partition_id", "recv",
        "reduce_scatter", "replica_id", "send",
    )
)  # fmt: skip


def has_special(provider: Provider, module: Module) -> bool:
    """Tell whether a program has ops that are walked."""
    return any(str(op.name) in SPECIAL for op in provider.walk(module))


class Specials:
    """Tells what is walked: special ops, what they are in the regions of, and calls of functions that hold any.

    Args:
        provider: The bindings.
        module: The program.
    """

    def __init__(self, provider: Provider, module: Module) -> None:
        self._provider = provider
        self._functions: frozenset[str] = frozenset()
        bodies = functions_of(module)
        # A function is walked if it holds what is walked, calls of those found before included.
        while True:
            found = frozenset(name for name, function in bodies.items() if self.includes(function))
            if found == self._functions:
                return
            self._functions = found

    def includes(self, op: Operation) -> bool:
        """Tell whether an op is walked."""
        return any(self._is_special(each) for each in self._provider.walk(op))

    def _is_special(self, op: Operation) -> bool:
        name = str(op.name)
        if name in CALLEES:
            return str(op.attributes[CALLEES[name]].value) in self._functions
        return name in SPECIAL
