"""Commands as processes of their own: how long they take, and how much memory at the most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The kernel counts the memory of whoever starts a process as its own until it has begun. So a small process does.
_STARTER = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
taken = [time.perf_counter() - started, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime]
print(json.dumps([*taken, os.waitstatus_to_exitcode(status)]))
"""


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float  # wall time
    peak: int  # bytes of memory at the most, never less than those of an idle interpreter
    cpu: float = 0.0  # seconds of processor time, those of the processes that it started included


def run_measured(
    command: Sequence[str], *, codes: Sequence[int] = (0,), environment: Mapping[str, str] | None = None
) -> Run:
    """Run a command to its end; what it writes to stdout is dropped.

    Args:
        command: The command.
        codes: The exit codes that are as they should be.
        environment: The variables of its environment, by default those of this process.

    Raises:
        subprocess.CalledProcessError: If it ends with another.
    """
    given = os.environ if environment is None else environment
    # A user's Python keeps what it has compiled; without this, every run would compile the package anew.
    usual = {name: value for name, value in given.items() if name != "PYTHONDONTWRITEBYTECODE"}
    starter = [sys.executable, "-I", "-S", "-c", _STARTER, *command]
    result = subprocess.run(starter, env=usual, capture_output=True, text=True, check=True)
    seconds, peak, cpu, code = json.loads(result.stdout)
    if code not in codes:
        raise subprocess.CalledProcessError(code, command, stderr=result.stderr)
    return Run(seconds, peak, cpu)
