"""Programs compiled by XLA for the CPU, and run on several devices in parallel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from vhlo_tools.aliasing import AliasConfig
from vhlo_tools.bindings import Devices, Module, XlaFailure, XlaSource
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import Grid
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.probes.probes import Probe
from vhlo_tools.execution.reference.isolated import bytecode_of
from vhlo_tools.execution.reference.known_calls import OF_PARTITIONER
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.execution.xla.host_callbacks import Callbacks, take_calls
from vhlo_tools.execution.xla.preparing import prepared
from vhlo_tools.execution.xla.replicas import flatten_grid
from vhlo_tools.execution.xla.unsupported import refused
from vhlo_tools.execution.xla_programs import LoadedProgram, load
from vhlo_tools.program import Program, read_module_aliases, write_module_aliases
from vhlo_tools.records import dataclass


class XlaParallelEngine:
    def __init__(
        self, program: Program, grid: Grid, handlers: Mapping[str, Handler], *, in_process: bool = False
    ) -> None:
        self._program = program
        self._grid = grid
        self._handlers = handlers
        self._in_process = in_process
        self._compiled: dict[tuple[tuple[int, ...], ...], _CompiledReplicas] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        if probe is not None:
            raise EngineError(
                f"{self._program.name}: XLA does not expose intermediate values: use the engine reference for probes"
            )
        arrays = [[each for each in given if each is not None] for given in inputs]
        shapes = {tuple(each.shape for each in given) for given in arrays}
        if len(shapes) != 1:
            raise EngineError(f"{self._program.name}: the inputs of the devices have different shapes")
        compiled = self._compile(shapes.pop(), timeout)
        try:
            return compiled.execute(arrays, timeout)
        except XlaFailure as failure:
            raise EngineError(f"{self._program.name} failed in XLA: {failure}") from failure

    def _compile(self, shapes: tuple[tuple[int, ...], ...], timeout: float | None) -> _CompiledReplicas:
        if (known := self._compiled.get(shapes)) is not None:
            return known
        program, grid = self._program, self._grid
        ready = prepared(program, shapes)
        module = ready.module
        # Nothing is donated, so nothing is overwritten.
        write_module_aliases(
            module.operation, AliasConfig(read_module_aliases(module.operation).signature), provider=program.provider
        )
        split = splitting_of(program, module, grid)
        callbacks = Callbacks(lenient=True)
        has_lapack = take_calls(program, module, self._handlers, callbacks, OF_PARTITIONER if split else ())
        if split is None:
            flatten_grid(program.provider, module, grid, program.name)
        source = XlaSource(
            program.name,
            bytecode_of(program.provider, module),
            tuple((each.static_shape, each.dtype) for each in ready.results if each is not None),
            devices=split or Devices(grid.size),
            callbacks=len(callbacks.functions),
            lapack=has_lapack,
        )
        try:
            loaded = load(source, callbacks.functions, in_process=self._in_process, timeout=timeout)
        except XlaFailure as failure:
            raise refused(program, failure) from failure
        self._compiled[shapes] = _CompiledReplicas(loaded, callbacks, ready.results, Lock())
        return self._compiled[shapes]


def splitting_of(program: Program, module: Module, grid: Grid) -> Devices | None:
    """``None`` if the program does not say how."""
    if grid.partitions == 1:
        return None
    text = program.provider.text(module, largest_constant=0)
    # A mesh alone splits nothing: groups of devices may refer to its axes.
    use_shardy = re.search(r"\bsdy\.(?!mesh\b)", text) is not None
    if not use_shardy and "mhlo.sharding" not in text:
        return None
    return Devices(1, grid.partitions, use_shardy)


@dataclass(frozen=True, slots=True)
class _CompiledReplicas:
    program: LoadedProgram
    callbacks: Callbacks
    results: tuple[ArgumentType | None, ...]  # None for a token
    running: Lock  # held by runs with callbacks, whose exceptions belong to one run

    def execute(self, inputs: Sequence[Sequence[Any]], timeout: float | None) -> tuple[tuple[Any, ...], ...]:
        """The results of each device, or whole results."""
        if self.callbacks.functions:
            with self.running:
                given = self.program.call(inputs, timeout)
                self.callbacks.raise_failure()
        else:
            given = self.program.call(inputs, timeout)
        return tuple(map(self._with_tokens, given))

    def _with_tokens(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        pending = iter(arrays)
        return tuple(None if type_ is None else next(pending) for type_ in self.results)
