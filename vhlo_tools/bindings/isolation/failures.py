"""Errors for failed calls in a child process."""

from __future__ import annotations

import re
import signal
from typing import Final

from vhlo_tools.bindings.isolation.limits import Limits, readable_size
from vhlo_tools.bindings.isolation.replies import Failed, OutOfMemory, Raised, TooLarge, unpack_error
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.printable import printable_lines

# Texts that the C++ library, LLVM and Python print when memory runs out.
_SIGNS_OF_NO_MEMORY: Final = (
    "bad_alloc",
    "out of memory",
    "Allocation failed",
    "Cannot allocate memory",
    "MemoryError",
)

# What comes before a stack trace: messages of XLA (`F1122 12:00:00 7 file.cc:1] Check failed`), of LLVM and of C++.
_FATAL: Final = re.compile(
    r"^(?:F\d{4} \S+ +\d+ (.*)|(LLVM ERROR: .*)|(terminate called after .*)|(.*Assertion `.*failed.*))$", re.MULTILINE
)

# The number of characters of output in a message; the error has more.
_QUOTED: Final = 400


def crash(
    exit_code: int | None, op: str | None, output: str, limits: Limits, how: str | None = None
) -> EngineCrashError:
    """``how`` is the failure if it is not a crash, ``output`` the end of the child's output."""
    name = None if how else signal_name(exit_code)
    if how:
        exit_code = None
    elif name is not None:
        how = f"crashed with {name}"
    elif exit_code is not None:
        how = f"ended with the exit code {exit_code}"
    else:
        how = "has disappeared"
    message = f"the child process {how}{_while(op)}"
    if limits.memory is not None and any(sign in output for sign in _SIGNS_OF_NO_MEMORY):
        message += f": it ran out of memory; {_memory_rule(limits.memory)}"
    elif name == "SIGKILL":
        message += ": the system may have terminated it because memory ran out"
    if said := _last_words(output):
        message += f"; it wrote: {said}"
    return EngineCrashError(
        message,
        signal=name,
        exit_code=exit_code if name is None else None,
        op=op,
        output=output,
    )


def _last_words(output: str) -> str:
    """Return the message of a fatal error in a child's output, or the end of the output."""
    if fatal := list(_FATAL.finditer(output)):
        said = next(each for each in fatal[-1].groups() if each).strip()
        return said if len(said) <= _QUOTED else said[:_QUOTED] + "..."
    said = output.strip()
    return said if len(said) <= _QUOTED else "..." + said[-_QUOTED:]


def timeout(op: str | None, limits: Limits, cpu_seconds: float | None) -> EngineTimeoutError:
    return EngineTimeoutError(
        f"the child process was terminated after {limits.seconds:.3g} s{_while(op)} (Limits.seconds)",
        seconds=limits.seconds,
        op=op,
        cpu_seconds=cpu_seconds,
    )


def failure(function: str, outcome: object, op: str | None, limits: Limits) -> BaseException:
    """An outcome without a valid error is a ``ValueError``."""
    if isinstance(outcome, Raised):
        return unpack_error(outcome)
    if isinstance(outcome, OutOfMemory):
        rule = "the system did not provide more" if limits.memory is None else _memory_rule(limits.memory)
        return EngineError(
            f"the child process ran out of memory{_while(op)}{':' if limits.memory is None else ';'} {rule}"
        )
    if isinstance(outcome, TooLarge):
        allowed = readable_size(limits.output or 0)
        return EngineError(f"the results are {readable_size(outcome.size)}; the limit is {allowed} (Limits.output)")
    if not isinstance(outcome, Failed):
        raise ValueError("it contains no outcome")
    error = EngineError(f"{function} failed in the child process{_while(op)}: {outcome.name}: {outcome.message}")
    error.add_note(f"In the child process:\n{printable_lines(outcome.trace)}")
    return error


def signal_name(exit_code: int | None) -> str | None:
    """Return ``None`` if no signal terminated the process."""
    if exit_code is None or exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _while(op: str | None) -> str:
    return f" while at {op}" if op else ""


def _memory_rule(memory: int) -> str:
    return f"the limit of a call is {readable_size(memory)} (Limits.memory)"
