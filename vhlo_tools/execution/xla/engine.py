"""The engine ``xla``: programs compiled by XLA for the CPU, on one device or several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar, cast

import numpy as np

from vhlo_tools.aliasing import AliasConfig
from vhlo_tools.bindings import DeviceArgument, Devices, Module, ModuleOp, Operation, Provider, XlaFailure, XlaSource
from vhlo_tools.conversion import Rewriter, apply_patterns, patterns_of
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices import GROUPS, Grid, Groups, grouping_of
from vhlo_tools.execution.donation import Aliased, Buffer
from vhlo_tools.execution.handlers import Handler, described
from vhlo_tools.execution.isolated import LoadedProgram, bytecode_of
from vhlo_tools.execution.probes import Probe, no_probes
from vhlo_tools.execution.protocols import Ran, Values
from vhlo_tools.execution.reference.known_calls import OF_PARTITIONER
from vhlo_tools.execution.xla.host_callbacks import Callbacks, take_calls
from vhlo_tools.execution.xla.preparation import PreparedForXla, prepared, refused, said_by_xla
from vhlo_tools.program import Program, meshes_of, read_module_aliases, write_module_aliases
from vhlo_tools.records import dataclass

# Conversion of a grid of replicas and partitions to replicas only, so that XLA does not partition the program
#
# XLA's partitioner treats a program as unsplit and splits it, and refuses specifications for single partitions. A
# program that specifies what each device does needs no partitioning: with the groups of its collectives as numbers of
# devices, it is a program for replicas alone.


def flatten_grid(provider: Provider, module: ModuleOp, grid: Grid, name: str) -> None:
    meshes = meshes_of(module)
    apply_patterns(provider, module, patterns_of(dict.fromkeys(_IDS, partial(_of_device, partitions=grid.partitions))))
    with module.context:
        for op in provider.walk(module):
            if str(op.name) in GROUPS:
                grouping = grouping_of(op, described(op, name), meshes.get)
                groups = grouping.groups(grid)
                if not grouping.is_pairs and (missing := sorted({*range(grid.size)}.difference(*groups))):
                    raise EngineError(f"{grouping.place}: device {missing[0]} of {grid} belongs to none of its groups")
                _regroup(provider, op, GROUPS[str(op.name)], groups)


#: The op that computes the number of a replica or partition from that of the device and the number of partitions.
_IDS: Final[Mapping[str, str]] = {
    "stablehlo.partition_id": "stablehlo.remainder",
    "stablehlo.replica_id": "stablehlo.divide",
}


def _of_device(rewriter: Rewriter, partitions: int) -> list[Any]:
    type_ = rewriter.op.results[0].type
    device = rewriter.make("stablehlo.replica_id", [], type_)
    return [rewriter.make(_IDS[str(rewriter.op.name)], [device, rewriter.constant(type_, partitions)], type_)]


def _regroup(provider: Provider, op: Operation, attribute: str, groups: Groups) -> None:
    for name in ("channel_handle", "use_global_device_ids"):
        if name in op.attributes:
            del op.attributes[name]
    width = max(map(len, groups), default=0)
    # Groups of fewer members are padded with -1.
    padded = np.full((len(groups), width), -1, np.int64)
    for row, group in zip(padded, groups, strict=True):
        row[: len(group)] = group
    op.attributes[attribute] = provider.dense_elements(op.context, padded)


# Programs compiled by XLA for the CPU, for inputs of each shape

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: LoadedProgram
    callbacks: Callbacks
    tokens: tuple[bool, ...]  # for each result, whether it is a token, which XLA does not return
    running: Lock  # held by runs on several devices with callbacks, whose exceptions belong to one run

    def with_tokens(self, results: Iterable[_T]) -> list[_T | None]:
        pending = iter(results)
        return [None if token else next(pending) for token in self.tokens]


Shapes = tuple[tuple[int, ...], ...]


class _Compiler:
    _lenient = False  # whether a run goes on after a failure of a handler

    def __init__(self, program: Program, handlers: Mapping[str, Handler], *, in_process: bool = False) -> None:
        self._program = program
        self._handlers = handlers
        self._in_process = in_process
        self._compiled: dict[Shapes, _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def _ready(self, shapes: Shapes, callbacks: Callbacks) -> tuple[PreparedForXla, Devices | None, bool]:
        """The program for inputs of these shapes, its devices if they are several, and whether it calls LAPACK."""
        raise NotImplementedError

    def _compile(self, shapes: Shapes, timeout: float | None) -> _Compiled:
        if (known := self._compiled.get(shapes)) is None:
            program, callbacks = self._program, Callbacks(lenient=self._lenient)
            ready, devices, has_lapack = self._ready(shapes, callbacks)
            types = [(each.static_shape, each.dtype) for each in ready.results if each is not None]
            types += [((), np.dtype("int32"))] * sum(map(len, ready.opened))
            source = XlaSource(
                program.name,
                bytecode_of(program.provider, ready.module),
                tuple(types),
                ready.opened if any(ready.opened) else (),
                devices,
                len(callbacks.functions),
                has_lapack,
            )
            try:
                loaded = LoadedProgram(source, callbacks.functions, in_process=self._in_process, timeout=timeout)
            except XlaFailure as failure:
                raise refused(program, failure) from failure
            tokens = tuple(each is None for each in ready.results)
            known = self._compiled[shapes] = _Compiled(loaded, callbacks, tokens, Lock())
        return known

    def _refuse(self, probe: Probe | None) -> None:
        if probe is not None:
            raise no_probes(self._program.name, "XLA")

    def _failed(self, failure: XlaFailure) -> EngineError:
        return EngineError(f"{self._program.name} failed in XLA", said=said_by_xla(self._program, failure))


class XlaEngine(_Compiler):
    """Results that overwrite inputs are in the memory of these on its device."""

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        compiled = self._compile(tuple([each.shape for each in arrays]), timeout)
        try:
            return compiled.with_tokens(compiled.program.call(arrays, timeout))
        except XlaFailure as failure:
            compiled.callbacks.raise_failure(str(failure))
            raise self._failed(failure) from failure

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        self._refuse(probe)
        compiled = self._compile(tuple(each.shape for each in arguments if each is not None), timeout)
        reasons = {each.input: each.reason for each in aliased}
        arrays = {number: each for number, each in enumerate(arguments) if each is not None}
        placed = [
            DeviceArgument(
                each.device if each.device is not None else each.read(),
                is_overwritten=number in reasons,
                is_given=number in reasons and reasons[number] is None,
            )
            for number, each in arrays.items()
        ]
        try:
            executed = compiled.program.execute(placed, timeout)
        except XlaFailure as failure:
            compiled.callbacks.raise_failure(str(failure))
            raise self._failed(failure) from failure
        finally:
            # Donated buffers are deleted even if the run failed.
            for argument in arrays.values():
                if argument.device is not None and argument.device.is_deleted:
                    argument.delete()
        before = dict(zip(arrays, executed.addresses, strict=True))
        moved = {number for number, is_moved in zip(arrays, executed.moved, strict=True) if is_moved}
        given = compiled.with_tokens(executed.results)
        results = [None if each is None else Buffer.of_device(each) for each in given]
        done = []
        for each in aliased:
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
                if cast(Buffer, results[each.output]).address != before[each.input]:
                    each = replace(each, reason="XLA wrote it elsewhere")
                else:
                    each = replace(each, moved=each.input in moved)
            done.append(each)
        return results, done

    def _ready(self, shapes: Shapes, callbacks: Callbacks) -> tuple[PreparedForXla, Devices | None, bool]:
        ready = prepared(self._program, shapes, bounded=True)
        return ready, None, take_calls(self._program, ready.module, self._handlers, callbacks)


class XlaParallelEngine(_Compiler):
    _lenient = True

    def __init__(
        self, program: Program, grid: Grid, handlers: Mapping[str, Handler], *, in_process: bool = False
    ) -> None:
        super().__init__(program, handlers, in_process=in_process)
        self._grid = grid

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        self._refuse(probe)
        arrays = [[each for each in given if each is not None] for given in inputs]
        shapes = {tuple(each.shape for each in given) for given in arrays}
        if len(shapes) != 1:
            raise EngineError(f"{self._program.name}: the inputs of the devices have different shapes")
        compiled = self._compile(shapes.pop(), timeout)
        try:
            with compiled.running if compiled.callbacks.functions else nullcontext():
                given = compiled.program.call(arrays, timeout)
                compiled.callbacks.raise_failure()
        except XlaFailure as failure:
            raise self._failed(failure) from failure
        return tuple(tuple(compiled.with_tokens(each)) for each in given)

    def _ready(self, shapes: Shapes, callbacks: Callbacks) -> tuple[PreparedForXla, Devices | None, bool]:
        program, provider = self._program, self._program.provider
        ready = prepared(program, shapes)
        module = ready.module
        # Nothing is donated, so nothing is overwritten.
        signature = read_module_aliases(module.operation).signature
        write_module_aliases(module.operation, AliasConfig(signature), provider=provider)
        split = splitting_of(program, module, self._grid)
        has_lapack = take_calls(program, module, self._handlers, callbacks, OF_PARTITIONER if split else ())
        if split is None:
            flatten_grid(provider, module, self._grid, program.name)
        return ready, split or Devices(self._grid.size), has_lapack


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
