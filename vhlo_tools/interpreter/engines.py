"""The engines: what runs a program of arrays, and in whose memory its results are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from vhlo_tools.errors import EngineCrashError
from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.child import EVALUATION, IsolatedProgram, IsolatedSegments
from vhlo_tools.interpreter.donation import Aliased
from vhlo_tools.interpreter.driver import Driver, has_manual, needs_driver
from vhlo_tools.interpreter.grid import Grid
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.isolated import bytecode_of
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.protocols import Engine, EngineName, Ran, Values
from vhlo_tools.interpreter.xla import XlaEngine
from vhlo_tools.program import Program

__all__ = ["ENGINES", "ParallelReferenceEngine", "ReferenceEngine"]


class ReferenceEngine:
    """StableHLO's reference interpreter. Results that are written over inputs are put into their memory.

    Args:
        program: The program, whose ``main`` takes and gives arrays.
        handlers: What computes custom calls, by their targets.
    """

    def __init__(self, program: Program, handlers: Mapping[str, Handler] | None = None) -> None:
        provider = program.provider
        self._isolated = IsolatedProgram(bytecode_of(provider, program.load()), provider.prefix, program.name)
        self._segments = IsolatedSegments()
        self._driver = Driver(program, handlers, self._segments.evaluate, isolated=True)
        self._is_walked = needs_driver(program)

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Do nothing: the child process prepares the program for its first run."""

    def execute_parallel(
        self,
        inputs: Sequence[Sequence[np.ndarray[Any, Any] | None]],
        replicas: int,
        partitions: int,
        timeout: float | None = None,
        probe: Probe | None = None,
    ) -> list[list[np.ndarray[Any, Any] | None]]:
        """Run it on several devices (see :meth:`Driver.run_parallel`)."""
        self._segments.timeout = self._driver.timeout = timeout
        return self._driver.run_parallel(inputs, replicas, partitions, probe)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        """Run it in a child process, or in pieces where it is walked (see :meth:`Engine.call`)."""
        return self._run(arrays, timeout, None)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Run it in a child process, or in pieces where it is walked (see :meth:`Engine.execute`)."""
        arrays: list[Any] = [None if each is None else each.read() for each in arguments]
        memory = {}
        for each in aliased:
            if each.reason is not None or _given(arguments, each).device is not None:
                # What is on a device comes to the host by this, and may be written over there.
                arrays[each.input] = arrays[each.input].copy()
            memory[each.output] = arrays[each.input]
        results = self._run(arrays, timeout, probe)
        done = []
        for each in aliased:
            result, taken = results[each.output], memory[each.output]
            if taken.nbytes == result.nbytes:
                results[each.output] = _written(result, taken)
            elif each.reason is None:
                # In numpy every element takes a byte at least, where on devices some are packed.
                each = replace(each, reason=f"it takes {taken.nbytes} bytes in numpy, and the output {result.nbytes}")
            if each.reason is None:
                _given(arguments, each).delete()
            done.append(each)
        return [None if each is None else Buffer(each) for each in results], done

    def _run(self, arrays: Sequence[Any], timeout: float | None, probe: Probe | None) -> list[Any]:
        if not self._is_walked and probe is None:
            try:
                return list(self._isolated.run(arrays, timeout))
            except EngineCrashError as error:
                # Walked, it dies again, and it is known of what. What a child dies of while it rewrites a program is
                # not tried here, where programs that are walked are rewritten.
                if error.op != EVALUATION:
                    raise
        self._segments.timeout = self._driver.timeout = timeout
        return self._driver.run(arrays, probe)


def _given(arguments: Values, aliased: Aliased) -> Buffer:
    """Return an input that an output is aliased with, which no token is."""
    buffer = arguments[aliased.input]
    assert buffer is not None
    return buffer


def _written(result: np.ndarray[Any, Any], memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``result`` in the memory of an array that takes as many bytes."""
    if (memory.dtype, memory.shape) != (result.dtype, result.shape):
        memory = memory.reshape(-1).view(np.uint8).view(result.dtype).reshape(result.shape)
    np.copyto(memory, result)
    return memory


class ParallelReferenceEngine:
    """StableHLO's reference interpreter on several devices, which a driver steps through the program in turn.

    Args:
        program: The program, whose ``main`` takes and gives arrays.
        grid: The devices.
        handlers: What computes custom calls, by their targets.
    """

    def __init__(self, program: Program, grid: Grid, handlers: Mapping[str, Handler]) -> None:
        self._engine, self._grid = ReferenceEngine(program, handlers), grid
        self._is_manual = has_manual(program.provider, program.provider.as_module(program.load()))

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Do nothing: a child process prepares the program for its first run."""

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run it (see :meth:`ParallelEngine.execute_parallel`).

        Inputs that are whole, for a program that says how devices share them, are those of one device; but if it says
        also what each does with its parts, then each gets all of them, and has all of the results.
        """
        replicas, partitions = self._grid.replicas, self._grid.partitions
        if len(inputs) < self._grid.size and self._is_manual:
            everywhere = list(inputs) * self._grid.size
            results = self._engine.execute_parallel(everywhere, replicas, partitions, timeout, probe)
            return (tuple(results[0]),)
        if len(inputs) < self._grid.size:
            replicas = partitions = 1
        return tuple(map(tuple, self._engine.execute_parallel(inputs, replicas, partitions, timeout, probe)))


#: What makes an engine of a program, and of what computes its custom calls.
ENGINES: Final[dict[EngineName, Callable[[Program, Mapping[str, Handler]], Engine]]] = {
    "reference": ReferenceEngine,
    "xla": XlaEngine,
}
