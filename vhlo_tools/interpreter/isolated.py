"""What the library may not survive, done in a child process: programs rewritten and run by it.

A program is sent as bytecode, and comes back as bytecode where it was rewritten: nothing but that is parsed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider, isolation
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError

__all__ = ["LIMITS", "bytecode_of", "call_isolated", "limits_of", "named"]

#: What a run may take, if nothing else is said: ten minutes, 8 GiB of memory, 4 GiB of results.
LIMITS: Final = isolation.Limits(seconds=600.0, memory=8 << 30, output=4 << 30)


def bytecode_of(provider: Provider, module: ModuleOp) -> bytes:
    """Return a module as bytecode of MLIR."""
    return b"".join(provider.bytecode(module, provider.library.current))


def limits_of(timeout: float | None) -> isolation.Limits:
    """Return what a run may take.

    Args:
        timeout: How many seconds, by default those of :data:`LIMITS`.
    """
    return LIMITS if timeout is None else replace(LIMITS, seconds=timeout)


def call_isolated(function: str, name: str, *arguments: Any, timeout: float | None = None) -> Any:
    """Call a function in a child process.

    Args:
        function: What to call, ``package.module:function``.
        name: What to call the program in messages.
        arguments: What the function takes.
        timeout: How many seconds it may take, by default those of :data:`LIMITS`.

    Raises:
        EngineCrashError: If the child dies.
        EngineTimeoutError: If it takes longer than it may.
        VhloToolsError: What the function raises.
    """
    try:
        return isolation.call(function, *arguments, limits=limits_of(timeout))
    except (EngineCrashError, EngineTimeoutError) as error:
        raise named(error, name) from error


def named(error: EngineCrashError | EngineTimeoutError, name: str) -> EngineCrashError | EngineTimeoutError:
    """Return the error with the name of the program."""
    if isinstance(error, EngineTimeoutError):
        said = f"{name}: {error}: give it more time (timeout=, --timeout), or use the engine xla"
        return EngineTimeoutError(said, seconds=error.seconds, op=error.op)
    return EngineCrashError(
        f"{name}: {error}", signal=error.signal, exit_code=error.exit_code, op=error.op, output=error.output
    )
