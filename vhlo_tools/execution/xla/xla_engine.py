"""Programs compiled by XLA for the CPU, and run on one device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from vhlo_tools.bindings import Placed, XlaFailure, XlaSource
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.donation.buffers import Buffer
from vhlo_tools.execution.donation.donation import Aliased
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.probes.probes import Probe
from vhlo_tools.execution.protocols import Ran, Values
from vhlo_tools.execution.reference.isolated import bytecode_of
from vhlo_tools.execution.xla.host_callbacks import Callbacks, take_calls
from vhlo_tools.execution.xla.preparing import prepared
from vhlo_tools.execution.xla.unsupported import refused
from vhlo_tools.execution.xla_programs import LoadedProgram, load
from vhlo_tools.program import Program
from vhlo_tools.records import dataclass

_T = TypeVar("_T")


class XlaEngine:
    """Results that overwrite inputs are in the memory of these on its device."""

    def __init__(self, program: Program, handlers: Mapping[str, Handler], *, in_process: bool = False) -> None:
        self._program = program
        self._handlers = handlers
        self._in_process = in_process
        self._compiled: dict[tuple[tuple[int, ...], ...], _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        compiled = self._compile(tuple([each.shape for each in arrays]), timeout)
        try:
            return compiled.with_tokens(compiled.program.call(arrays, timeout))
        except XlaFailure as failure:
            raise self._failed(failure, compiled) from failure

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        if probe is not None:
            raise EngineError(
                f"{self._program.name}: XLA does not expose intermediate values: use the engine reference for probes"
            )
        compiled = self._compile(tuple(each.shape for each in arguments if each is not None), timeout)
        reasons = {each.input: each.reason for each in aliased}
        arrays = {number: each for number, each in enumerate(arguments) if each is not None}
        placed = [
            Placed(
                each.device if each.device is not None else each.read(),
                is_overwritten=number in reasons,
                is_given=number in reasons and reasons[number] is None,
            )
            for number, each in arrays.items()
        ]
        try:
            executed = compiled.program.execute(placed, timeout)
        except XlaFailure as failure:
            raise self._failed(failure, compiled) from failure
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

    def _failed(self, failure: XlaFailure, compiled: _Compiled) -> EngineError:
        compiled.callbacks.raise_failure(str(failure))
        return EngineError(f"{self._program.name} failed in XLA: {failure}")

    def _compile(self, shapes: tuple[tuple[int, ...], ...], timeout: float | None) -> _Compiled:
        if (known := self._compiled.get(shapes)) is not None:
            return known
        program = self._program
        ready = prepared(program, shapes, bounded=True)
        callbacks = Callbacks()
        has_lapack = take_calls(program, ready.module, self._handlers, callbacks)
        types = [(each.static_shape, each.dtype) for each in ready.results if each is not None]
        types += [((), np.dtype("int32"))] * sum(map(len, ready.opened))
        source = XlaSource(
            program.name,
            bytecode_of(program.provider, ready.module),
            tuple(types),
            ready.opened if any(ready.opened) else (),
            callbacks=len(callbacks.functions),
            lapack=has_lapack,
        )
        try:
            loaded = load(source, callbacks.functions, in_process=self._in_process, timeout=timeout)
        except XlaFailure as failure:
            raise refused(program, failure) from failure
        tokens = tuple(each is None for each in ready.results)
        self._compiled[shapes] = _Compiled(loaded, callbacks, tokens)
        return self._compiled[shapes]


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: LoadedProgram
    callbacks: Callbacks
    tokens: tuple[bool, ...]  # for each result, whether it is a token, which XLA does not return

    def with_tokens(self, results: Iterable[_T]) -> list[_T | None]:
        pending = iter(results)
        return [None if token else next(pending) for token in self.tokens]
