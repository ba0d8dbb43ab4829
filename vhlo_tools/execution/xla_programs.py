"""Programs that XLA has compiled, in child processes or in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from vhlo_tools.bindings import Executed, IsolatedXlaProgram, Placed, XlaSource, compiled
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError
from vhlo_tools.execution.reference.isolated import limits_of


class LoadedProgram(Protocol):
    """A compiled program."""

    def call(self, inputs: Sequence[Any], timeout: float | None) -> list[Any]:
        """Run the program on arrays of the host, and return such arrays, read-only.

        With several devices, the inputs and the results are sequences of the arrays of each device.

        Raises:
            XlaFailure: If execution fails.
            EngineCrashError: If XLA crashes its process.
            EngineTimeoutError: If the run exceeds the time limit.
        """

    def execute(self, arguments: Sequence[Placed], timeout: float | None) -> Executed:
        """Run the program on one device, and leave the results there.

        Raises:
            XlaFailure: If execution fails.
            BufferDeletedError: If an argument is on the device of a child process that has ended.
            EngineCrashError: If XLA crashes its process.
            EngineTimeoutError: If the run exceeds the time limit.
        """


def load(
    source: XlaSource, callbacks: Sequence[Any], *, in_process: bool, timeout: float | None = None
) -> LoadedProgram:
    """Compile a program.

    Args:
        source: The program.
        callbacks: The functions that compute its custom calls.
        in_process: Whether to compile and run it in this process.
        timeout: The limit in seconds in a child process.

    Raises:
        XlaFailure: If XLA rejects the program.
        EngineCrashError: If XLA crashes its process.
        EngineTimeoutError: If compilation exceeds the time limit.
    """
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
        """Return the error with the name of the program."""
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
