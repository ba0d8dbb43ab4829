"""Limits of XLA: programs on which its compiler or the compiled code crashes, detected before XLA gets them.

Determined by experiments with jaxlib 0.10.2 and 0.12.0.1: the limits are not documented.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, Operation, function_of

#: XLA's recursion in jaxlib 0.10.2 survives between 200 and 250 levels of regions and calls, and needs minutes for as
#: many. That of 0.12.0.1 survives more calls and 300 branches, which take half a minute, and not 1,000.
_DEEPEST: Final = 100
#: XLA compiles a program of so many ops in some minutes.
_MOST_OPS: Final = 1_000_000


class CallGraph:
    """``recursive`` has the functions that call themselves, directly or indirectly."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self._ops: Counter[str] = Counter()
        self._levels: defaultdict[str, int] = defaultdict(int)
        self._calls: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for op in ops:
            if str(op.name) in ("builtin.module", "func.func") or _is_outside(op):
                continue
            name, level = function_of(op), _level(op)
            self._ops[name] += 1
            self._levels[name] = max(self._levels[name], level)
            if str(op.name) in CALLEES:
                self._calls[name].append((str(op.attributes[CALLEES[str(op.name)]].value), level))
        self.recursive: frozenset[str] = frozenset()
        try:
            graph = {name: {callee for callee, _ in calls} for name, calls in self._calls.items()}
            self._order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            self._order, self.recursive = [], frozenset(error.args[1])

    def exceeded_limit(self) -> str | None:
        """The limit after all calls are inlined."""
        ops, levels = Counter(self._ops), dict(self._levels)
        for name in self._order:
            for callee, level in self._calls[name]:
                ops[name] += ops[callee]
                levels[name] = max(levels.get(name, 0), level + levels.get(callee, 0))
        if max(levels.values(), default=0) > _DEEPEST:
            return f"regions and calls are nested more than {_DEEPEST} levels deep, and deeper nesting crashes XLA"
        if (most := max(ops.values(), default=0)) > _MOST_OPS:
            return f"it has {most} ops after XLA inlines all calls: the limit is {_MOST_OPS}"
        return None


def _is_outside(op: Any) -> bool:
    return str(op.operation.parent.name) == "builtin.module"


def _level(op: Any) -> int:
    """Counted only up to the limit."""
    level, parent = 1, op.operation.parent
    while parent.name != "func.func" and level <= _DEEPEST:
        level, parent = level + 1, parent.parent
    return level
