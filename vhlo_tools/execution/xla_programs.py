"""Programs that XLA has compiled, in child processes or in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from vhlo_tools.bindings import Executed, IsolatedXlaProgram, Placed, XlaSource, compiled
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError
from vhlo_tools.execution.reference.isolated import limits_of


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
