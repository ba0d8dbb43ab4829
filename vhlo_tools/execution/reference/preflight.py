"""Checks for ops that would crash the reference interpreter, before it runs.

The interpreter crashes the process on an op that it does not know; an error that names the op is better.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, ModuleOp, Operation, Provider, missing_part
from vhlo_tools.execution.op_traits import OP_TRAITS, ops_where
from vhlo_tools.execution.reference.lowering.calls import passes_only_tensors
from vhlo_tools.execution.refusals import refusal

#: Ops that the interpreter evaluates, and ops that it never reaches: meshes, which only attributes refer to.
_EVALUATED: Final = ops_where(lambda traits: traits.reference == "evaluated")

#: The size in bytes of so many elements of the largest types exceeds 63 bits.
_LARGEST: Final = 2**59
_SIZES: Final = re.compile(r"tensor<((?:[0-9?]+x)*)")
#: The reason for refusing a value of that size.
TOO_LARGE: Final = "the size of its result in bytes overflows 63 bits"

#: The reasons for not rewriting ops that another engine runs.
_GAPS: Final = {name: traits.reference_gap for name, traits in OP_TRAITS.items() if traits.reference_gap}


def check_runnable(provider: Provider, module: ModuleOp, name: str) -> None:
    for op in provider.walk(module):
        if reason := _reason(provider, op):
            raise refusal(op, name, reason)


def _reason(provider: Provider, op: Operation) -> str | None:
    name = str(op.name)
    for result in op.results:
        if "?" in str(result.type):
            return f"the inputs do not resolve the shape of its result {result.type}"
        if is_too_large(result):
            return TOO_LARGE
    if name in CALLEES and not passes_only_tensors(op):
        return "it passes tokens or tuples to a recursive function, but the interpreter can only pass tensors"
    if name == "func.func" and not len(op.regions[0].blocks):
        return "the function is declared, but not defined"
    if name not in _EVALUATED:
        dialect = name.partition(".")[0]
        if dialect != "stablehlo":
            return f"it does not support ops of the dialect {dialect}"
        return _GAPS.get(name, "it does not implement this op")
    if (missing := missing_part(provider, name)) is not None:
        return f"{missing}, or run it on the engine xla"
    if name == "stablehlo.constant" and provider.is_in_resource(op):
        return "the program does not contain the bytes of its dense_resource"
    return None


def is_too_large(value: Any) -> bool:
    """The size of the value in bytes overflows, which is an error in either engine."""
    shapes = ([int(size) for size in text.split("x") if size.isdecimal()] for text in _SIZES.findall(str(value.type)))
    # A dimension of size zero does not prevent an overflow of the product of the others.
    return any(math.prod(size or 1 for size in sizes) >= _LARGEST for sizes in shapes)
