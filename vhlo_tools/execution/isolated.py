"""Calls in isolated processes: of StableHLO's interpreter, and of programs that XLA compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from vhlo_tools.bindings import Executed, IsolatedXlaProgram, ModuleOp, Placed, Provider, XlaSource, compiled, isolation
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError

# Calls in a child process, for work on which the library may crash: rewriting and running programs
#
# A program is sent as bytecode, and returned as bytecode if it was rewritten: this process only parses it.

#: The default limits of a run: ten minutes, 8 GiB of memory, 4 GiB of results.
LIMITS: Final = isolation.Limits(seconds=600.0, memory=8 << 30, output=4 << 30)


def bytecode_of(provider: Provider, module: ModuleOp) -> bytes:
    return b"".join(provider.bytecode(module, provider.library.current))


def limits_of(timeout: float | None) -> isolation.Limits:
    """``None`` is the default of :data:`LIMITS`, infinity is no limit."""
    return LIMITS if timeout is None else replace(LIMITS, seconds=None if math.isinf(timeout) else timeout)


def call_isolated(function: str, name: str, *arguments: Any, timeout: float | None = None) -> Any:
    """``function`` is ``package.module:function``; errors that it raises pass through."""
    try:
        return isolation.call(function, *arguments, limits=limits_of(timeout))
    except (EngineCrashError, EngineTimeoutError) as error:
        raise named(error, name) from error


def named(
    error: EngineCrashError | EngineTimeoutError, name: str, engine: str | None = None
) -> EngineCrashError | EngineTimeoutError:
    """``engine`` is ``None`` for work that the engine xla does without."""
    if engine is not None:
        name = f"{name}: {engine}"
    if isinstance(error, EngineTimeoutError):
        instead = ", or use the engine xla" if engine is None else ""
        said = f"{name}: {error}: increase the time limit (timeout=, --timeout){instead}"
        return EngineTimeoutError(said, seconds=error.seconds, op=error.op, cpu_seconds=error.cpu_seconds)
    return EngineCrashError(
        f"{name}: {error}", signal=error.signal, exit_code=error.exit_code, op=error.op, output=error.output
    )


# Programs that XLA has compiled, in child processes or in this process


class LoadedProgram(Protocol):
    def call(self, inputs: Sequence[Any], timeout: float | None) -> list[Any]:
        """Arrays of the host, results read-only; with several devices, a sequence of arrays for each."""

    def execute(self, arguments: Sequence[Placed], timeout: float | None) -> Executed:
        """Runs on one device, where results stay; arguments of an ended child are a :class:`BufferDeletedError`."""


def load(
    source: XlaSource, callbacks: Sequence[Any], *, in_process: bool, timeout: float | None = None
) -> LoadedProgram:
    """``timeout`` applies only to a child process."""
    if in_process:
        return _Local(compiled(source, callbacks))
    program = _Isolated(source, callbacks)
    program.prepare(timeout)
    return program


class _Local:
    def __init__(self, program: Any) -> None:
        self._program = program

    def call(self, inputs: Sequence[Any], timeout: float | None) -> list[Any]:
        results: list[Any] = self._program.call(inputs)
        return results

    def execute(self, arguments: Sequence[Placed], timeout: float | None) -> Executed:
        executed: Executed = self._program.execute(arguments)
        return executed


class _Isolated:
    def __init__(self, source: XlaSource, callbacks: Sequence[Any]) -> None:
        self._name = source.name
        self._program = IsolatedXlaProgram(source, callbacks)

    def prepare(self, timeout: float | None) -> None:
        try:
            self._program.prepare(limits_of(timeout))
        except (EngineCrashError, EngineTimeoutError) as error:
            raise self._named(error) from error

    def call(self, inputs: Sequence[Any], timeout: float | None) -> list[Any]:
        try:
            results = self._program.call(inputs, limits_of(timeout))
        except (EngineCrashError, EngineTimeoutError) as error:
            raise self._named(error) from error
        for each in results:
            for array in each if isinstance(each, list) else [each]:
                array.flags.writeable = False
        return results

    def execute(self, arguments: Sequence[Placed], timeout: float | None) -> Executed:
        try:
            return self._program.execute(arguments, limits_of(timeout))
        except (EngineCrashError, EngineTimeoutError) as error:
            raise self._named(error) from error

    def _named(self, error: EngineCrashError | EngineTimeoutError) -> EngineCrashError | EngineTimeoutError:
        if isinstance(error, EngineTimeoutError):
            return EngineTimeoutError(
                f"{self._name}: XLA: {error}: increase the time limit (timeout=, --timeout)",
                seconds=error.seconds,
                op=error.op,
                cpu_seconds=error.cpu_seconds,
            )
        return EngineCrashError(
            f"{self._name}: XLA: {error}",
            signal=error.signal,
            exit_code=error.exit_code,
            op=error.op,
            output=error.output,
        )
