"""What XLA's compiler or the code that it makes ends the process over, found in a program before it sees that.

Found by trying, with jaxlib 0.10.2 and 0.12.0.1: nothing says what XLA survives.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from vhlo_tools.bindings import Operation
from vhlo_tools.bindings.functions import CALLEES, function_of
from vhlo_tools.interpreter.values import ArgumentType, TupleType, parse_value_type

__all__ = ["CallGraph", "hazard_of_call"]

#: XLA's recursion survives between 200 and 250 levels of regions and calls, and takes minutes for so many.
_DEEPEST: Final = 100
#: So many ops XLA compiles in some minutes.
_MOST_OPS: Final = 1_000_000

#: Targets by which jaxlib calls functions in Python: by numbers that are of one compilation, and not checked.
_CALLBACKS: Final = re.compile(r"xla_(ffi_|buffer_)?(partitioned_)?python_(cpu|gpu)_callback")


class CallGraph:
    """Which functions of a program call which.

    Args:
        ops: All ops of the program.

    Attributes:
        recursive: Functions that call themselves, by way of others too.
    """

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

    def hazard(self) -> str | None:
        """Return why XLA does not survive calls put in the place of what they call; ``None`` if it does."""
        ops, levels = Counter(self._ops), dict(self._levels)
        for name in self._order:
            for callee, level in self._calls[name]:
                ops[name] += ops[callee]
                levels[name] = max(levels.get(name, 0), level + levels.get(callee, 0))
        if max(levels.values(), default=0) > _DEEPEST:
            return f"regions and calls are more than {_DEEPEST} levels deep, and XLA does not survive many more"
        if (most := max(ops.values(), default=0)) > _MOST_OPS:
            return f"it has {most} ops once calls are replaced by what they call, which XLA does: at most {_MOST_OPS}"
        return None


def hazard_of_call(op: Operation) -> str | None:
    """Return why XLA does not survive a custom call; ``None`` if it does."""
    target = str(op.attributes["call_target_name"].value)
    if _CALLBACKS.fullmatch(target):
        return "it calls a function of the process that made the program, by a number: give a handler for it"
    if target == "SliceToDynamic":
        return "XLA makes such calls itself, and does not survive those of others"
    if target == "TopK" and not _is_top_k(op):
        return (
            "TopK takes one tensor of f32 or bf16 with one or two dimensions, and gives the k largest of its last one, "
            "and as i32 where they stood; XLA reads and writes beyond its memory otherwise"
        )
    return None


def _is_top_k(op: Operation) -> bool:
    kinds = [parse_value_type(str(value.type)) for value in (*op.operands, *op.results)]
    flat = [part for kind in kinds for part in (kind.parts if isinstance(kind, TupleType) else (kind,))]
    tensors = [each for each in flat if isinstance(each, ArgumentType)]
    if len(op.operands) != 1 or len(flat) != 3 or len(tensors) != 3:
        return False
    taken, values, places = tensors
    return (
        taken.element == values.element
        and taken.element in ("f32", "bf16")
        and places.element == "i32"
        and values.shape == places.shape
        and len(taken.shape) in (1, 2)
        and taken.shape[:-1] == values.shape[:-1]
        and len(values.shape) == len(taken.shape)
        and (values.shape[-1] or 0) <= (taken.shape[-1] or 0)
    )


def _is_outside(op: Any) -> bool:
    """Tell whether an op stands in no function."""
    return str(op.operation.parent.name) == "builtin.module"


def _level(op: Any) -> int:
    """Return in how many ops within its function an op stands, counted no further than is deep."""
    level, parent = 1, op.operation.parent
    while parent.name != "func.func" and level <= _DEEPEST:
        level, parent = level + 1, parent.parent
    return level
