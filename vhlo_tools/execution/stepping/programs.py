"""Parallel execution of different functions of a program on the devices of a grid, with a host that feeds them.

Source: ``evalRunParallelOp`` in ``stablehlo/reference/InterpreterOps.cpp`` in openxla/stablehlo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import MLIRFailure, Module, Provider, functions_of
from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.execution.devices.grid import Grid
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.reference.lowering import fit, lower
from vhlo_tools.execution.stepping.lockstep import run_in_lockstep
from vhlo_tools.execution.stepping.planning import plan
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate, evaluate_here
from vhlo_tools.execution.stepping.steps import Device
from vhlo_tools.legalize import make_plain
from vhlo_tools.program import Program, explain_failure

#: The new name of ``main``: segments have a ``main`` of their own.
_MAIN: Final = "vhlo_tools.main"


def run_programs(
    program: Program,
    functions: Sequence[Sequence[str]],
    inputs: Sequence[Sequence[Any]],
    handlers: Mapping[str, Handler] | None = None,
    *,
    feed: Sequence[str] = (),
    evaluate: Evaluate = evaluate_here,
) -> list[list[Any]]:
    """``functions`` are by replica and partition, ``inputs`` by device; the results of ``feed`` are the infeeds."""
    grid = Grid(len(functions), len(functions[0]))
    names = [_MAIN if name == "main" else name for row in functions for name in row]
    if len(names) != grid.size or len(inputs) != grid.size:
        raise InvalidInputError(f"{program.name} got {len(names)} functions and {len(inputs)} inputs for {grid}")
    provider = program.provider
    try:
        module = provider.as_module(make_plain(provider, program.load(), program.name))
        if _MAIN not in names:
            _empty_main(provider, module)
        fit(provider, module, (), (), (), program.name)
        lower(provider, module, program.name, as_specified=True)
        provider.rename_function(module, "main", _MAIN)
        blocks = plan(provider, module, [*names, *feed], handlers or {}, (), program.name, has_host=True)
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise EngineError(
            f"{program.name} cannot be rewritten for the reference interpreter: {said}", failure.diagnostics
        ) from failure
    queue = deque(feed)
    devices = [
        Device(number, *grid.place(number), blocks, evaluate, _no_probe, feed=queue) for number in range(grid.size)
    ]
    runs = [blocks[name].run(device, {}, given) for name, device, given in zip(names, devices, inputs, strict=True)]
    return run_in_lockstep(grid, devices, runs)


def _empty_main(provider: Provider, module: Module) -> None:
    """The inputs of ``main`` are not known here; it remains if a function calls it."""
    if any(str(op.name) == "func.call" and op.attributes["callee"].value == "main" for op in provider.walk(module)):
        return
    if main := functions_of(module).get("main"):
        main.operation.erase()
        empty = provider.parse(module.context, "func.func @main() { return }")
        module.body.append(empty.body.operations[0])


def _no_probe(*_: Any) -> None:
    """The program has no instrumentation."""
