"""What XLA for the CPU cannot run, said before it hangs, or in words of the program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import Operation, Provider
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.handlers import CustomCall, Handler, handler_advice
from vhlo_tools.interpreter.preflight import TOO_LARGE, is_too_large
from vhlo_tools.interpreter.refusals import refusal
from vhlo_tools.interpreter.xla.hazards import CallGraph
from vhlo_tools.program import Program

__all__ = ["check_ops", "refused"]

_UNKNOWN: Final = "XLA does not implement it on a CPU, and the engine reference can run it"
#: Ops that XLA does not implement on a CPU, or with which it waits for what never comes.
#: Source: ``xla/service/cpu/thunk_emitter.cc`` in openxla/xla, and runs of these ops.
_OPS: Final[Mapping[str, str]] = {
    "stablehlo.collective_broadcast": _UNKNOWN,
    "stablehlo.infeed": "nothing feeds it, and XLA would wait for ever",
    "stablehlo.outfeed": "nothing takes what it gives, and XLA would wait for ever",
    "stablehlo.recv": _UNKNOWN,
    "stablehlo.send": _UNKNOWN,
}
_OF_SIX_BITS: Final = "xf6E"
_OF_TWO_BITS: Final = re.compile(r"[<x]u?i2[,>]")
#: Element types that XLA has not always had.
_NARROW: Final = re.compile(r"(f4E2M1FN|f6E2M3FN|f6E3M2FN)\b")


def check_ops(provider: Provider, module: Any, name: str) -> None:
    """Raise if a module holds what XLA cannot run.

    Args:
        provider: The bindings.
        module: The module.
        name: What to call it in messages.

    Raises:
        EngineError: Naming the first op, and where it stands.
    """
    ops = provider.walk(module)
    graph = CallGraph(ops)
    for op in ops:
        if reason := _reason(provider, op, graph.recursive):
            raise refusal(op, name, reason, "the engine xla")
    if hazard := graph.hazard():
        raise EngineError(f"{name}: the engine xla cannot run it: {hazard}")


def _reason(provider: Provider, op: Operation, recursive: frozenset[str]) -> str | None:
    name = str(op.name)
    if name == "func.func" and not len(op.regions[0].blocks):
        return "the function is declared, but not defined here"
    if name == "func.call" and str(op.attributes["callee"].value) in recursive:
        return "it calls a function that calls itself, and XLA puts functions in the place of their calls"
    if name == "stablehlo.constant" and provider.is_in_resource(op):
        return "the program does not hold the bytes of its dense_resource"
    if name.startswith("stablehlo.") and any(_OF_SIX_BITS in str(each.type) for each in (*op.operands, *op.results)):
        return "XLA does not compute with floats of six bits on a CPU, and the engine reference does"
    if name == "stablehlo.sort" and any(_OF_TWO_BITS.search(str(each.type)) for each in op.operands):
        return "XLA takes what is packed in a byte for one element of two bits, and the engine reference does not"
    if any(map(is_too_large, op.results)):
        return TOO_LARGE
    return _OPS.get(name)


def refused(
    program: Program, failure: XlaFailure, left: Mapping[str, CustomCall], handlers: Mapping[str, Handler]
) -> EngineError:
    """Return the error that XLA does not compile a program.

    Args:
        program: The program.
        failure: What XLA said.
        left: The custom calls that were left to it, by their targets.
        handlers: What computes the others.
    """
    said = str(failure)
    for target, call in left.items():
        if said.startswith("NOT_FOUND") and re.search(rf"\b{re.escape(target)}\b", said):
            known = f"there are handlers for {', '.join(sorted(handlers))}" if handlers else "no handlers were given"
            return EngineError(
                f"{call}: neither XLA nor the toolkit knows what it computes, and {known}: "
                f"give {handler_advice(target)}"
            )
    if narrow := sorted(set(_NARROW.findall(program.provider.text(program.load())))):
        library = program.provider.library.name
        return EngineError(
            f"{program.name}: XLA in {library} has no elements of {' and '.join(narrow)}: take the engine reference "
            f"({said})"
        )
    if said.startswith("UNIMPLEMENTED"):
        return EngineError(
            f"{program.name} needs what XLA does not implement on a CPU, take the engine reference: {said}"
        )
    return EngineError(f"{program.name} is not compiled by XLA: {said}")
