"""Calls in isolated processes: of StableHLO's interpreter, and of programs that XLA compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import (
    DeviceArgument,
    ExecutionResult,
    IsolatedXlaProgram,
    Module,
    ModuleOp,
    Provider,
    XlaSource,
    compiled,
    isolation,
)
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError
from vhlo_tools.printable import printable
from vhlo_tools.program import load_program

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
    with naming(name):
        return isolation.call(function, *arguments, limits=limits_of(timeout))


def module_here(bytecode: memoryview, provider: str, name: str) -> tuple[Provider, Module]:
    """Called in a child process, which trusts what it is given."""
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    return program.provider, program.provider.as_module(program.load())


@contextmanager
def naming(name: str, engine: str | None = None) -> Iterator[None]:
    """Errors of a child say what it ran; ``engine`` is ``None`` for work that the engine xla does without."""
    try:
        yield
    except (EngineCrashError, EngineTimeoutError) as error:
        said = f"{name}: {error}" if engine is None else f"{name}: {engine}: {error}"
        if isinstance(error, EngineTimeoutError):
            instead = ", or use the engine xla" if engine is None else ""
            said = f"{said}: increase the time limit (timeout=, --timeout){instead}"
        raise with_message(error, said) from error


def with_message(
    error: EngineCrashError | EngineTimeoutError, message: str, op: str | None = None
) -> EngineCrashError | EngineTimeoutError:
    changed = copy(error)
    changed.args = (printable(message),)
    changed.op = op or error.op
    return changed


# Programs that XLA has compiled, in child processes or in this process


class LoadedProgram:
    """``timeout`` applies only to a child process."""

    def __init__(
        self, source: XlaSource, callbacks: Sequence[Any], *, in_process: bool, timeout: float | None = None
    ) -> None:
        self._name, self._is_here = source.name, in_process
        if in_process:
            self._program: Any = compiled(source, callbacks)
            return
        self._program = isolated = IsolatedXlaProgram(source, callbacks)
        with naming(self._name, "XLA"):
            isolated.prepare(limits_of(timeout))

    def call(self, inputs: Sequence[Any], timeout: float | None) -> list[Any]:
        """Arrays of the host, results read-only; with several devices, a sequence of arrays for each."""
        results: list[Any]
        if self._is_here:
            results = self._program.call(inputs)
            return results
        with naming(self._name, "XLA"):
            results = self._program.call(inputs, limits_of(timeout))
        for each in results:
            for array in each if isinstance(each, list) else [each]:
                array.flags.writeable = False
        return results

    def execute(self, arguments: Sequence[DeviceArgument], timeout: float | None) -> ExecutionResult:
        """Runs on one device, where results stay; arguments of an ended child are a :class:`BufferDeletedError`."""
        executed: ExecutionResult
        if self._is_here:
            executed = self._program.execute(arguments)
            return executed
        with naming(self._name, "XLA"):
            executed = self._program.execute(arguments, limits_of(timeout))
        return executed
