"""Reference engines for one device and for several, and the memory of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from vhlo_tools.bindings import Module, isolation
from vhlo_tools.compat import PLUGIN_ENGINE
from vhlo_tools.errors import EngineCrashError, EngineError, InvalidInputError
from vhlo_tools.execution.artifact_engines import IreeEngine, PluginEngine
from vhlo_tools.execution.devices import Grid
from vhlo_tools.execution.donation import Aliased, Buffer
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.isolated import bytecode_of
from vhlo_tools.execution.probes import Probe
from vhlo_tools.execution.protocols import Engine, EngineName, ParallelEngine, Ran, Values
from vhlo_tools.execution.reference.engine import EVALUATION, IsolatedProgram
from vhlo_tools.execution.stepping.device_steps import has_manual
from vhlo_tools.execution.stepping.local_steps import has_host_ops
from vhlo_tools.execution.stepping.stepper import Stepper
from vhlo_tools.execution.values import valid_module
from vhlo_tools.execution.xla.engine import XlaEngine, XlaParallelEngine, splitting_of
from vhlo_tools.program import Program, mesh_size, meshes_of


class ReferenceEngine:
    """Results that overwrite inputs are copied into the memory of these."""

    def __init__(self, program: Program, handlers: Mapping[str, Handler] | None = None) -> None:
        provider = program.provider
        self._isolated = IsolatedProgram(bytecode_of(provider, program.load()), provider.prefix, program.name)
        self._stepper = Stepper(program, handlers, isolated=True)
        self._is_stepped = has_host_ops(provider, provider.as_module(program.load()))

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """The child process prepares the program on its first run."""

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        return self._run(arrays, timeout, None)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        arrays: list[Any] = [None if each is None else each.read() for each in arguments]
        memory = {}
        for each in aliased:
            if each.reason is not None or cast(Buffer, arguments[each.input]).device is not None:
                # For an array on a device this also is the transfer to the host, to memory that may be overwritten.
                arrays[each.input] = arrays[each.input].copy()
            memory[each.output] = arrays[each.input]
        results = self._run(arrays, timeout, probe)
        done = []
        for each in aliased:
            result, taken = results[each.output], memory[each.output]
            if taken.nbytes == result.nbytes:
                results[each.output] = _written(result, taken)
            elif each.reason is None:
                # In numpy every element occupies at least one byte, where devices pack some types.
                each = replace(each, reason=f"it has {taken.nbytes} bytes in numpy, but the output has {result.nbytes}")
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
            done.append(each)
        return [None if each is None else Buffer(each) for each in results], done

    def _run(self, arrays: Sequence[Any], timeout: float | None, probe: Probe | None) -> list[Any]:
        if not self._is_stepped and probe is None:
            try:
                return list(self._isolated.run(arrays, timeout))
            except EngineCrashError as error:
                # Stepping through crashes again and identifies the op. Not after a crash while the program is
                # rewritten in the child: stepping rewrites the program in the same way.
                if error.op != EVALUATION:
                    raise
        self._stepper.timeout = timeout
        return self._stepper.run(arrays, probe)


def _written(result: np.ndarray[Any, Any], memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``memory`` has the size of ``result`` in bytes, but may have another type."""
    if (memory.dtype, memory.shape) != (result.dtype, result.shape):
        memory = memory.reshape(-1).view(np.uint8).view(result.dtype).reshape(result.shape)
    np.copyto(memory, result)
    return memory


class ParallelReferenceEngine:
    """The devices step through the program in turn."""

    def __init__(self, program: Program, grid: Grid, handlers: Mapping[str, Handler]) -> None:
        isolation.warm()
        self._stepper, self._grid = Stepper(program, handlers, isolated=True), grid
        self._is_manual = has_manual(program.provider, program.provider.as_module(program.load()))

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """A child process prepares the program on its first run."""

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """A single sequence of unsplit inputs runs on one device, if the program specifies how devices share values.

        If it also contains manual computations on parts, all devices get all inputs, and each has all results.
        """
        self._stepper.timeout = timeout
        if len(inputs) == self._grid.size:
            grid = self._grid
        elif self._is_manual:
            return (tuple(self._stepper.run_parallel(list(inputs) * self._grid.size, self._grid, probe)[0]),)
        else:
            grid = Grid()
        return tuple(map(tuple, self._stepper.run_parallel(inputs, grid, probe)))


#: Creates an engine from a program, the handlers of its custom calls, and whether XLA runs in this process.
ENGINES: Final[dict[EngineName, Callable[[Program, Mapping[str, Handler], bool], Engine]]] = {
    "reference": lambda program, handlers, _: ReferenceEngine(program, handlers),
    "xla": lambda program, handlers, in_process: XlaEngine(program, handlers, in_process=in_process),
    "iree": lambda program, handlers, _: IreeEngine(program, handlers),
}


#: Creates an engine from a program, a grid of devices, the handlers of custom calls, and whether XLA runs here.
PARALLEL_ENGINES: Final[dict[EngineName, Callable[[Program, Grid, Mapping[str, Handler], bool], ParallelEngine]]] = {
    "reference": lambda program, grid, handlers, _: ParallelReferenceEngine(program, grid, handlers),
    "xla": lambda program, grid, handlers, here: XlaParallelEngine(program, grid, handlers, in_process=here),
}
_MOST_DEVICES: Final = 64
_PARTITIONS: Final = "mhlo.num_partitions"


def laid_out(program: Program, replicas: int | None, partitions: int | None) -> tuple[Grid, int, str]:
    """The grid, the number of sequences of inputs, and the reason for that number."""
    module = valid_module(program)
    grid = Grid(
        _count(module, "mhlo.num_replicas", replicas, "replicas"), _count(module, _PARTITIONS, partitions, "partitions")
    )
    if grid.size > _MOST_DEVICES:
        raise InvalidInputError(f"{grid.size} devices are too many: the limit is {_MOST_DEVICES} on one machine")
    if splitting_of(program, module, grid) is None:
        return grid, grid.size, f"one for each of {grid.replicas} x {grid.partitions} devices"
    if grid.replicas > 1:
        raise EngineError(
            f"{program.name} specifies shardings, and XLA runs such programs as one replica, not as {grid.replicas}: "
            f"run it once for each replica"
        )
    return grid, 1, f"one of whole values: the program shards them over {grid.partitions} partitions"


def _count(module: Any, name: str, asked: int | None, what: str) -> int:
    attributes = module.operation.attributes
    number = asked if asked is not None else int(attributes[name].value) if name in attributes else 1
    if asked is None and number == 1 and name == _PARTITIONS:
        # A program lowered for an abstract mesh has only the mesh.
        number = max(map(mesh_size, meshes_of(module).values()), default=1)
    if number < 1:
        raise InvalidInputError(f"invalid number of {what}: {number}; expected at least 1")
    return number


class SpreadEngine:
    """One sequence of whole values on several devices, which share them as the program specifies."""

    def __init__(self, engine: ParallelEngine, grid: Grid) -> None:
        self._engine, self._grid = engine, grid

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._engine.prepare(shapes, timeout)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        return list(self._engine.execute_parallel([arrays], timeout, None)[0])

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        arrays = [None if each is None else each.read() for each in arguments]
        (results,) = self._engine.execute_parallel([arrays], timeout, probe)
        reason = f"its parts are on {self._grid}"
        done = [replace(each, reason=each.reason or reason) for each in aliased]
        return [None if each is None else Buffer(np.array(each)) for each in results], done


def engine_for(
    program: Program, module: Module, name: EngineName, handlers: Mapping[str, Handler], in_process: bool
) -> Engine:
    """Manual computations of a program for several partitions need all of these, even if it is run as one."""
    partitions = _count(module, _PARTITIONS, None, "partitions") if name in PARALLEL_ENGINES else 1
    if partitions > 1 and has_manual(program.provider, module):
        grid, inputs, _ = laid_out(program, None, None)
        if inputs != grid.size:
            return SpreadEngine(PARALLEL_ENGINES[name](program, grid, handlers, in_process), grid)
    if name.startswith(PLUGIN_ENGINE):
        return PluginEngine(program, handlers, name)
    return ENGINES[name](program, handlers, in_process)
