"""Estimate of the work of a program, from its ops."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, Module, Operation, functions_of
from vhlo_tools.execution.op_traits import OP_TRAITS, Cost

#: The assumed number of iterations of a loop, and size of a dynamic dimension, as both are unknown before the run.
_MANY: Final = 32
#: The greatest nesting depth of regions and calls that is examined.
_DEEPEST: Final = 100


def estimated_steps(module: Module) -> int:
    """Approximate number of operations on elements."""
    return _Estimate(functions_of(module)).of_function("main")


class _Estimate:
    def __init__(self, functions: Mapping[str, Operation]) -> None:
        self._functions = functions
        self._steps: dict[str, int] = {}
        self._depth = 0

    def of_function(self, name: str) -> int:
        """A recursive function counts as one call."""
        if name not in self._steps:
            self._steps[name] = 0
            function = self._functions.get(name)
            self._steps[name] = self._of_regions(function) if function is not None else 0
        return self._steps[name]

    def _of_regions(self, op: Operation) -> int:
        if self._depth == _DEEPEST:
            return 1
        self._depth += 1
        steps = sum(self._of_op(each.operation) for region in op.regions for block in region for each in block)
        self._depth -= 1
        return steps

    def _of_op(self, op: Any) -> int:
        cost = _COSTS.get(str(op.name), "results")
        if cost == "free":
            return 0
        if cost == "callee":
            return self.of_function(str(op.attributes[CALLEES[str(op.name)]].value))
        if cost == "loop":
            return _MANY * self._of_regions(op)
        body = max(self._of_regions(op), 1)
        return body if cost == "branch" else body * FACTORS[cost](op)


def _elements(value: Any) -> int:
    type_ = value.type
    if not hasattr(type_, "shape"):
        return 1
    return math.prod(_MANY if type_.is_dynamic_dim(index) else size for index, size in enumerate(type_.shape))


def _results(op: Any) -> int:
    return sum(map(_elements, op.results)) or 1


def _operands(op: Any) -> int:
    return max(map(_elements, op.operands), default=1)


def _dot_general(op: Any) -> int:
    match = _CONTRACTED.search(str(op.attributes["dot_dimension_numbers"]))
    sizes = op.operands[0].type.shape
    contracted = [sizes[int(each)] for each in match[1].split(",") if each.strip()] if match else []
    # Unknown sizes are negative.
    return _results(op) * math.prod(size if size >= 0 else _MANY for size in contracted)


def _convolution(op: Any) -> int:
    match = _KERNEL.search(str(op.attributes["dimension_numbers"]))
    names = [each.strip() for each in match[1].split(",")] if match else []
    features = op.operands[1].type.shape[names.index("o")] if "o" in names else 1
    return _results(op) * max(_elements(op.operands[1]) // max(features, 1), 1)


def _window(op: Any) -> int:
    return _results(op) * math.prod(int(each) for each in op.attributes["window_dimensions"])


def _sort(op: Any) -> int:
    return _operands(op) * max(_operands(op).bit_length(), 1)


_CONTRACTED: Final = re.compile(r"lhs_contracting_dimensions = \[([0-9, ]*)\]")
_KERNEL: Final = re.compile(r"x\[([^\]]*)\]")
#: The number of times that an op performs its operation on elements.
FACTORS: Final[Mapping[Cost, Callable[[Any], int]]] = {
    "contraction": _dot_general,
    "convolution": _convolution,
    "operands": _operands,
    "results": _results,
    "sort": _sort,
    "window": _window,
}
_COSTS: Final[Mapping[str, Cost]] = {name: traits.cost for name, traits in OP_TRAITS.items()}
