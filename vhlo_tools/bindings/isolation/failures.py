"""What becomes of a call that came to no good end."""

from __future__ import annotations

import signal
from typing import Final

from vhlo_tools.bindings.isolation.limits import Limits, readable_size
from vhlo_tools.bindings.isolation.messages import Answer
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError

__all__ = ["crash", "failure", "timeout"]

# What the C++ library, LLVM and Python say when there is no memory left.
_SIGNS_OF_NO_MEMORY: Final = (
    "bad_alloc",
    "out of memory",
    "Allocation failed",
    "Cannot allocate memory",
    "MemoryError",
)

# In a message; the error has more of it.
_QUOTED: Final = 400


def crash(
    exit_code: int | None, op: str | None, output: str, limits: Limits, how: str | None = None
) -> EngineCrashError:
    """Return the error for a child that died.

    Args:
        exit_code: What it ended with, negative for a signal, if that is known.
        op: What it was doing, if it had said.
        output: The last that it wrote.
        limits: What it might take.
        how: What it did, if it did not die by itself.
    """
    name = None if how else signal_name(exit_code)
    if how:
        exit_code = None
    elif name is not None:
        how = f"died of {name}"
    elif exit_code is not None:
        how = f"ended with the exit code {exit_code}"
    else:
        how = "is gone"
    message = f"the child process {how}{_while(op)}"
    if limits.memory is not None and any(sign in output for sign in _SIGNS_OF_NO_MEMORY):
        message += f": it ran out of memory; {_memory_rule(limits.memory)}"
    elif name == "SIGKILL":
        message += ": perhaps the system ended it, as it does when memory runs out"
    if said := output.strip():
        message += f"; it wrote: {said if len(said) <= _QUOTED else '...' + said[-_QUOTED:]}"
    return EngineCrashError(
        message,
        signal=name,
        exit_code=exit_code if name is None else None,
        op=op,
        output=output,
    )


def timeout(op: str | None, limits: Limits) -> EngineTimeoutError:
    """Return the error for a child that was ended after its time."""
    return EngineTimeoutError(
        f"the child process was ended after {limits.seconds:.3g} s{_while(op)} (Limits.seconds)",
        seconds=limits.seconds,
        op=op,
    )


def failure(function: str, answer: Answer, op: str | None, limits: Limits) -> BaseException:
    """Return the error for an answer that is no result."""
    if answer.kind == "raised":
        error: BaseException = answer.value
        return error
    if answer.kind == "out of memory" and limits.memory is not None:
        return EngineError(f"the child process ran out of memory{_while(op)}; {_memory_rule(limits.memory)}")
    if answer.kind == "out of memory":
        return EngineError(f"the child process ran out of memory{_while(op)}: the system gave it no more")
    if answer.kind == "too large":
        allowed = readable_size(limits.output or 0)
        return EngineError(
            f"the results take {readable_size(answer.value)}, and may take no more than {allowed} (Limits.output)"
        )
    name, message, trace = answer.value
    error = EngineError(f"{function} failed in the child process{_while(op)}: {name}: {message}")
    error.add_note(f"In the child process:\n{trace}")
    return error


def signal_name(exit_code: int | None) -> str | None:
    """Return the name of the signal that a process died of, or ``None`` if it died of none."""
    if exit_code is None or exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _while(op: str | None) -> str:
    return f" while at {op}" if op else ""


def _memory_rule(memory: int) -> str:
    return f"a call may take {readable_size(memory)} (Limits.memory)"
