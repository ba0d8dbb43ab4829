"""Programs compiled by XLA for the CPU, and run on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import DeviceArray, XlaProgram, compile_for_cpu, put_on_device, release_host_arrays
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.donation import Aliased
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.protocols import Ran, Values
from vhlo_tools.interpreter.xla.calls import Callbacks, take_calls
from vhlo_tools.interpreter.xla.lacking import refused
from vhlo_tools.interpreter.xla.preparing import prepared
from vhlo_tools.program import Program

__all__ = ["XlaEngine"]

_T = TypeVar("_T")


class XlaEngine:
    """XLA's compiler for the CPU. Results that are written over inputs are in the memory of these on its device.

    Args:
        program: The program, whose ``main`` takes and gives arrays and tokens.
        handlers: What computes its custom calls, by their targets.
    """

    def __init__(self, program: Program, handlers: Mapping[str, Handler]) -> None:
        self._program = program
        self._handlers = handlers
        self._compiled: dict[tuple[tuple[int, ...], ...], _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Compile it (see :meth:`Engine.prepare`)."""
        self._compile(tuple(shapes))

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        """Run it in this process, which cannot be ended (see :meth:`Engine.call`)."""
        compiled = self._compile(tuple([each.shape for each in arrays]))
        try:
            return compiled.call(arrays)
        except XlaFailure as failure:
            raise self._failed(failure) from failure

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Run it in this process, which cannot be ended (see :meth:`Engine.execute`)."""
        if probe is not None:
            raise EngineError(f"{self._program.name}: XLA shows no intermediate values: probe on the engine reference")
        compiled = self._compile(tuple(each.shape for each in arguments if each is not None))
        reasons = {each.input: each.reason for each in aliased}
        try:
            placed = {
                number: _place(each, own=number in reasons, given=number in reasons and reasons[number] is None)
                for number, each in enumerate(arguments)
                if each is not None
            }
            before = {each.input: placed[each.input].address for each in aliased}
            given = compiled.execute(list(placed.values()))
        except XlaFailure as failure:
            raise self._failed(failure) from failure
        finally:
            # What was given away is gone, however it ended.
            for argument in arguments:
                if argument is not None and argument.device is not None and argument.device.is_deleted:
                    argument.delete()
        del placed
        release_host_arrays()
        results = [None if each is None else Buffer.of_device(each) for each in given]
        done = []
        for each in aliased:
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
                if cast(Buffer, results[each.output]).address != before[each.input]:
                    each = replace(each, reason="XLA wrote it elsewhere")
            done.append(each)
        return results, done

    def _failed(self, failure: XlaFailure) -> EngineError:
        return EngineError(f"{self._program.name} failed in XLA: {failure}")

    def _compile(self, shapes: tuple[tuple[int, ...], ...]) -> _Compiled:
        if (known := self._compiled.get(shapes)) is not None:
            return known
        program = self._program
        ready = prepared(program, shapes)
        callbacks = Callbacks()
        left = take_calls(program, ready.module, self._handlers, callbacks)
        try:
            types = [(each.static_shape, each.dtype) for each in ready.results if each is not None]
            compiled = compile_for_cpu(ready.module, types, callbacks.functions)
        except XlaFailure as failure:
            raise refused(program, failure, left, self._handlers) from failure
        self._compiled[shapes] = _Compiled(compiled, callbacks, tuple(each is None for each in ready.results))
        return self._compiled[shapes]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What was compiled for inputs of some shapes.

    Attributes:
        program: It.
        callbacks: What computes its custom calls.
        tokens: For each result, whether it is a token, which XLA does not give.
    """

    program: XlaProgram
    callbacks: Callbacks
    tokens: tuple[bool, ...]

    def execute(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray | None]:
        """Run it on arrays on the device."""
        return self._run(self.program.execute, arguments)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any] | None]:
        """Run it on arrays of the host, and give such."""
        return self._run(self.program.call, arrays)

    def _run(self, run: Callable[[Sequence[_T]], Sequence[_T]], arguments: Sequence[_T]) -> list[_T | None]:
        try:
            results = iter(run(arguments))
        except XlaFailure as failure:
            self.callbacks.raise_failure(str(failure))
            raise
        return [None if token else next(results) for token in self.tokens]


def _place(buffer: Buffer, *, own: bool, given: bool) -> DeviceArray:
    """Return an input on the device: as it is there if it may be used up or is only read, or else a copy."""
    if buffer.device is not None and (given or not own):
        return buffer.device
    return put_on_device(buffer.read(), own=own)
