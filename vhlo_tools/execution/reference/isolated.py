"""Calls in a child process, for work on which the library may crash: rewriting and running programs.

A program is sent as bytecode, and returned as bytecode if it was rewritten: this process only parses it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider, isolation
from vhlo_tools.errors import EngineCrashError, EngineTimeoutError

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
