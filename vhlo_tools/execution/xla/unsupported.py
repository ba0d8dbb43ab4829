"""Programs that XLA for the CPU cannot run: errors before XLA hangs, and errors that name the op."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import Operation, Provider, XlaFailure
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.op_traits import OP_TRAITS
from vhlo_tools.execution.reference.preflight import TOO_LARGE, is_too_large
from vhlo_tools.execution.refusals import refusal
from vhlo_tools.execution.xla.crash_limits import CallGraph
from vhlo_tools.program import Program

#: Ops that XLA does not implement on a CPU, or at which it waits forever.
_OPS: Final[Mapping[str, str]] = {name: traits.xla_gap for name, traits in OP_TRAITS.items() if traits.xla_gap}
_OF_SIX_BITS: Final = re.compile("[<x]f6E")
_OF_TWO_BITS: Final = re.compile(r"[<x]u?i2[,>]")
#: Element types that older releases of XLA lack.
_NARROW: Final = re.compile(r"(f4E2M1FN|f6E2M3FN|f6E3M2FN)\b")


def check_ops(provider: Provider, module: Any, name: str) -> None:
    ops = provider.walk(module)
    graph = CallGraph(ops)
    for op in ops:
        if reason := _reason(provider, op, graph.recursive):
            raise refusal(op, name, reason, "the engine xla")
    if limit := graph.exceeded_limit():
        raise EngineError(f"{name}: the engine xla cannot run it: {limit}")


def _reason(provider: Provider, op: Operation, recursive: frozenset[str]) -> str | None:
    name = str(op.name)
    if name == "func.func" and not len(op.regions[0].blocks):
        return "the function is declared, but not defined"
    if name == "func.call" and str(op.attributes["callee"].value) in recursive:
        return "it calls a recursive function, and XLA inlines all calls"
    if name == "stablehlo.constant" and provider.is_in_resource(op):
        return "the program does not contain the bytes of its dense_resource"
    if name.startswith("stablehlo.") and any(
        _OF_SIX_BITS.search(str(each.type)) for each in (*op.operands, *op.results)
    ):
        return "XLA does not support 6-bit floats on a CPU; the engine reference does"
    if name == "stablehlo.sort" and any(_OF_TWO_BITS.search(str(each.type)) for each in op.operands):
        return "XLA treats a byte of packed two-bit elements as one element; use the engine reference"
    if any(map(is_too_large, op.results)):
        return TOO_LARGE
    return _OPS.get(name)


def refused(program: Program, failure: XlaFailure) -> EngineError:
    said = str(failure)
    if narrow := sorted(set(_NARROW.findall(program.provider.text(program.load())))):
        library = program.provider.library.name
        return EngineError(
            f"{program.name}: XLA in {library} does not support elements of {' and '.join(narrow)}: use the engine "
            f"reference ({said})"
        )
    if said.startswith("UNIMPLEMENTED"):
        return EngineError(
            f"{program.name} contains something that XLA does not implement on a CPU, use the engine reference: {said}"
        )
    return EngineError(f"XLA cannot compile {program.name}: {said}")
