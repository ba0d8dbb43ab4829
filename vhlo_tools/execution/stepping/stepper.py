"""Steppers: programs prepared once for inputs of each shape, on one device or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Provider, functions_of
from vhlo_tools.conversion import make_plain
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.execution.devices import Grid
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.isolated import bytecode_of, call_isolated, module_here
from vhlo_tools.execution.lowering.lowering import UNWRITABLE, fit, lower
from vhlo_tools.execution.lowering.shapes import is_dynamic, may_be_sizes
from vhlo_tools.execution.probes import Probe, ProbeSite, instrument
from vhlo_tools.execution.stepping.device_steps import Lockstep, keep_shardings
from vhlo_tools.execution.stepping.planning import StepPlanner
from vhlo_tools.execution.stepping.steps import Device, Evaluate, StepBlock, evaluate_here, evaluate_isolated
from vhlo_tools.execution.values import explained, main_of
from vhlo_tools.program import Program

# Steppers: programs prepared once for inputs of each shape, and stepped through any number of times

_REWRITE: Final = "vhlo_tools.execution.stepping.stepper:rewrite_here"

#: The new name of ``main``: segments have a ``main`` of their own.
_MAIN: Final = "vhlo_tools.stepped"

#: The number of plans that are kept, each for inputs of other shapes.
_KEPT: Final = 16

#: The key of a plan: the selection of the probe, and the inputs as far as shapes depend on them.
_Key = tuple[Any, ...]


class Stepper:
    """With ``isolated``, child processes rewrite and evaluate, because both may crash; ``timeout`` limits each call."""

    def __init__(
        self,
        program: Program,
        handlers: Mapping[str, Handler] | None = None,
        evaluate: Evaluate = evaluate_here,
        *,
        isolated: bool = False,
        as_specified: bool = False,
    ) -> None:
        self._program = program
        self._handlers = dict(handlers or {})
        self._evaluate = evaluate
        self._is_isolated = isolated
        self._as_specified = as_specified
        self.timeout: float | None = None
        self._plans: dict[_Key, tuple[dict[str, StepBlock], Module]] = {}
        self._is_dynamic: bool | None = None

    def run(self, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """``None`` stands for a token."""
        (results,) = self._run([inputs], Grid(), probe)
        return results

    def run_parallel(self, inputs: Sequence[Sequence[Any]], grid: Grid, probe: Probe | None = None) -> list[list[Any]]:
        """Device ``r * partitions + p`` is partition ``p`` of replica ``r``."""
        if len(inputs) != grid.size:
            raise InvalidInputError(f"{self._program.name} got inputs for {len(inputs)} devices, but runs on {grid}")
        for number, each in enumerate(inputs):
            if self._key(each) != self._key(inputs[0]):
                raise InvalidInputError(
                    f"the inputs of device {number} do not have the same shapes and sizes as those of device 0: all "
                    f"devices run the same program"
                )
        return self._run(inputs, grid, probe)

    def _run(self, inputs: Sequence[Sequence[Any]], grid: Grid, probe: Probe | None) -> list[list[Any]]:
        key = probe.selection if probe else None, self._key(inputs[0])
        if key not in self._plans:
            while len(self._plans) >= _KEPT:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = self._plan(inputs[0], probe)
        functions, _ = self._plans[key]
        evaluate = partial(evaluate_isolated, timeout=self.timeout) if self._is_isolated else self._evaluate

        def emit(site: ProbeSite, iteration: tuple[int, ...], value: Any, device: int) -> None:
            if probe is not None:
                probe.take(site, iteration, value, device)

        devices = [Device(number, *grid.place(number), functions, evaluate, emit) for number in range(grid.size)]
        runs = [functions[_MAIN].run(device, {}, each) for device, each in zip(devices, inputs, strict=True)]
        return _unshared(Lockstep(grid, devices, runs).run(), inputs)

    def _key(self, inputs: Sequence[Any]) -> _Key:
        """The shapes, and the values of inputs that may be sizes; empty if no shape is dynamic."""
        if self._is_dynamic is None:
            provider = self._program.provider
            self._is_dynamic = is_dynamic(provider.text(self._program.load(), largest_constant=0))
        if not self._is_dynamic:
            return ()
        return tuple(each if each is None else (each.shape, may_be_sizes(each) and each.tobytes()) for each in inputs)

    def _plan(self, inputs: Sequence[Any], probe: Probe | None) -> tuple[dict[str, StepBlock], Module]:
        program = self._program
        provider, name = program.provider, program.name
        loaded = program.load()
        sites = instrument(provider, loaded, probe) if probe else []
        with explained(provider, name, UNWRITABLE):
            whole = memoryview(bytecode_of(provider, loaded))
            # The parts of inputs on which shapes may depend.
            outlines = [each if each is None or may_be_sizes(each) else each.shape for each in inputs]
            arguments = whole, provider.prefix, name, outlines, tuple(self._handlers), self._as_specified
            if self._is_isolated:
                rewritten = call_isolated(_REWRITE, name, *arguments, timeout=self.timeout)
            else:
                rewritten = rewrite_here(*arguments)
            module = provider.parse(provider.new_context(), rewritten)
            return StepPlanner(provider, module, self._handlers, sites, name).plan([_MAIN]), module


def rewrite_here(
    bytecode: memoryview, provider: str, name: str, inputs: Sequence[Any], handled: Sequence[str], as_specified: bool
) -> bytes:
    """Inputs on which no size depends are given as shapes; custom calls in ``handled`` are kept for their handlers."""
    bindings, module = module_here(bytecode, provider, name)
    shown = [np.broadcast_to(np.float32(0), each) if isinstance(each, tuple) else each for each in inputs]
    with explained(bindings, name, "does not match these inputs"):
        module = bindings.as_module(make_plain(bindings, module, name))
        fit(bindings, module, (), (), shown, name)
    with explained(bindings, name, UNWRITABLE):
        keep_shardings(bindings, module)
        lower(bindings, module, name, frozenset(handled), as_specified=as_specified)
        main_of(module, name)
        bindings.rename_function(module, "main", _MAIN)
    return bytecode_of(bindings, module)


def _unshared(results: list[list[Any]], inputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """An op may return its operand; results get memory that neither inputs nor other results share."""
    known = {id(each) for device in inputs for each in device}

    def own(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(map(own, value))
        if id(value) in known or not value.flags.owndata:
            value = value.copy()
        known.add(id(value))
        return value

    return [list(map(own, device)) for device in results]


# Parallel execution of different functions of a program on the devices of a grid, with a host that feeds them
#
# Source: ``evalRunParallelOp`` in ``stablehlo/reference/InterpreterOps.cpp`` in openxla/stablehlo.

#: The new name of ``main``: segments have a ``main`` of their own.
_RENAMED_MAIN: Final = "vhlo_tools.main"


def run_programs(
    program: Program,
    functions: Sequence[Sequence[str]],
    inputs: Sequence[Sequence[Any]],
    handlers: Mapping[str, Handler],
    feed: Sequence[str],
) -> list[list[Any]]:
    """``functions`` are by replica and partition, ``inputs`` by device; the results of ``feed`` are the infeeds."""
    grid = Grid(len(functions), len(functions[0]))
    names = [_RENAMED_MAIN if name == "main" else name for row in functions for name in row]
    if len(names) != grid.size or len(inputs) != grid.size:
        raise InvalidInputError(f"{program.name} got {len(names)} functions and {len(inputs)} inputs for {grid}")
    provider = program.provider
    with explained(provider, program.name, UNWRITABLE):
        module = provider.as_module(make_plain(provider, program.load(), program.name))
        if _RENAMED_MAIN not in names:
            _empty_main(provider, module)
        fit(provider, module, (), (), (), program.name)
        lower(provider, module, program.name, as_specified=True)
        provider.rename_function(module, "main", _RENAMED_MAIN)
        planner = StepPlanner(provider, module, handlers, (), program.name, has_host=True)
        blocks = planner.plan([*names, *feed])
    queue = deque(feed)
    devices = [
        # The program has no instrumentation.
        Device(number, *grid.place(number), blocks, evaluate_here, lambda *_: None, feed=queue)
        for number in range(grid.size)
    ]
    runs = [blocks[name].run(device, {}, given) for name, device, given in zip(names, devices, inputs, strict=True)]
    return Lockstep(grid, devices, runs).run()


def _empty_main(provider: Provider, module: Module) -> None:
    """The inputs of ``main`` are not known here; it remains if a function calls it."""
    if any(str(op.name) == "func.call" and op.attributes["callee"].value == "main" for op in provider.walk(module)):
        return
    if main := functions_of(module).get("main"):
        main.operation.erase()
        empty = provider.parse(module.context, "func.func @main() { return }")
        module.body.append(empty.body.operations[0])
