"""Programs compiled by XLA for the CPU, and run by several devices at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from vhlo_tools.aliasing import AliasConfig
from vhlo_tools.bindings import Module
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_parallel import ParallelProgram, compile_cut, compile_replicated
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.grid import Grid
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.known_calls import OF_PARTITIONER
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.values import ArgumentType
from vhlo_tools.interpreter.xla.calls import Callbacks, take_calls
from vhlo_tools.interpreter.xla.lacking import refused
from vhlo_tools.interpreter.xla.preparing import prepared
from vhlo_tools.interpreter.xla.replicas import flatten_grid
from vhlo_tools.program import Program, read_module_aliases, write_module_aliases

__all__ = ["XlaParallelEngine"]

Array = np.ndarray[Any, Any]


class XlaParallelEngine:
    """XLA's compiler for the CPU, with a device for each partition of each replica.

    Args:
        program: The program, whose ``main`` takes and gives arrays and tokens.
        grid: The replicas and partitions.
        handlers: What computes its custom calls, by their targets.
    """

    def __init__(self, program: Program, grid: Grid, handlers: Mapping[str, Handler]) -> None:
        self._program = program
        self._grid = grid
        self._handlers = handlers
        self._compiled: dict[tuple[tuple[int, ...], ...], _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Compile it (see :meth:`ParallelEngine.prepare`)."""
        self._compile(tuple(shapes))

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run it in this process, which cannot be ended (see :meth:`ParallelEngine.execute_parallel`)."""
        if probe is not None:
            raise EngineError(f"{self._program.name}: XLA shows no intermediate values: probe on the engine reference")
        arrays = [[each for each in given if each is not None] for given in inputs]
        shapes = {tuple(each.shape for each in given) for given in arrays}
        if len(shapes) != 1:
            raise EngineError(f"{self._program.name}: the devices were given inputs of different shapes")
        compiled = self._compile(shapes.pop())
        try:
            return compiled.execute(arrays)
        except XlaFailure as failure:
            raise EngineError(f"{self._program.name} failed in XLA: {failure}") from failure

    def _compile(self, shapes: tuple[tuple[int, ...], ...]) -> _Compiled:
        if (known := self._compiled.get(shapes)) is not None:
            return known
        program, grid = self._program, self._grid
        ready = prepared(program, shapes)
        module = ready.module
        # Nothing is given away, and so nothing is written over.
        write_module_aliases(
            module.operation, AliasConfig(read_module_aliases(module.operation).signature), provider=program.provider
        )
        cut = cutter_of(program, module) if grid.partitions > 1 else None
        callbacks = Callbacks(lenient=True)
        left = take_calls(program, module, self._handlers, callbacks, OF_PARTITIONER if cut else ())
        try:
            if cut:
                compiled = cut(module, grid, callbacks.functions)
            else:
                flatten_grid(program.provider, module, grid, program.name)
                compiled = compile_replicated(module, grid.size, callbacks.functions)
        except XlaFailure as failure:
            raise refused(program, failure, left, self._handlers) from failure
        self._compiled[shapes] = _Compiled(compiled, callbacks, ready.results, grid.partitions if cut else 1, Lock())
        return self._compiled[shapes]


Cutter = Callable[[Module, Grid, Sequence[Callable[..., Any]]], ParallelProgram]


def cutter_of(program: Program, module: Module) -> Cutter | None:
    """Return what has XLA cut a program into partitions, if the program says how; ``None`` if it says what each does.

    Args:
        program: The program.
        module: It.
    """
    text = program.provider.text(module, largest_constant=0)
    # A mesh alone cuts nothing: groups of devices may be told by its axes.
    use_shardy = re.search(r"\bsdy\.(?!mesh\b)", text) is not None
    if not use_shardy and "mhlo.sharding" not in text:
        return None
    return lambda module, grid, functions: compile_cut(module, grid.partitions, functions, use_shardy=use_shardy)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What was compiled for inputs of some shapes.

    Attributes:
        program: It.
        callbacks: What computes its custom calls.
        results: The types of its results; ``None`` for a token.
        partitions: Into how many parts values are cut, one if they are not.
        running: Held while it runs with callbacks, for what they raise belongs to one run.
    """

    program: ParallelProgram
    callbacks: Callbacks
    results: tuple[ArgumentType | None, ...]
    partitions: int
    running: Lock

    def execute(self, inputs: Sequence[Sequence[Array]]) -> tuple[tuple[Any, ...], ...]:
        """Run it with the whole inputs, and return the whole results."""
        parts = self._parts(inputs) if self.partitions > 1 else inputs
        if self.callbacks.functions:
            with self.running:
                given = self.program.execute(parts)
                self.callbacks.raise_failure()
        else:
            given = self.program.execute(parts)
        whole = self._whole(given) if self.partitions > 1 else given
        return tuple(self._with_tokens(each) for each in whole)

    def _with_tokens(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        pending = iter(arrays)
        return tuple(None if kind is None else next(pending) for kind in self.results)

    def _parts(self, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return what each device takes of the whole inputs."""
        (given,) = inputs
        tiles = self.program.parameter_tiles([each.shape for each in given])
        return [
            [_part(array, tile[partition]) if tile else array for array, tile in zip(given, tiles, strict=True)]
            for partition in range(self.partitions)
        ]

    def _whole(self, given: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return the whole results, of which each device gave a part."""
        kinds = [each for each in self.results if each is not None]
        tiles = self.program.result_tiles([each.static_shape for each in kinds])
        return [[_joined([each[number] for each in given], tiles[number], kind) for number, kind in enumerate(kinds)]]


def _part(array: Array, tile: tuple[slice, ...]) -> Array:
    """Return a part of an array, filled up with zeros where it goes beyond it."""
    part = array[tile]
    missing = [(0, wanted.stop - wanted.start - size) for wanted, size in zip(tile, part.shape, strict=True)]
    return np.ascontiguousarray(np.pad(part, missing) if any(after for _, after in missing) else part)


def _joined(parts: Sequence[Array], tiles: Sequence[tuple[slice, ...]], kind: ArgumentType) -> Array:
    if not tiles:
        return parts[0]
    whole = np.empty(kind.static_shape, kind.dtype)
    for part, tile in zip(parts, tiles, strict=True):
        place = whole[tile]
        place[...] = part[tuple(slice(size) for size in place.shape)]
    whole.flags.writeable = False
    return whole
