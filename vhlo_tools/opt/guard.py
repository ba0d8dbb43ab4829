"""Work in a process of its own, so that what the library dies of becomes an error message.

The process is forked before any bindings are loaded, which costs a few milliseconds, where starting another Python
would cost as much as the work.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Child", "guarded", "note", "noted", "start"]

_SIZE: Final = 4096

#: Signals by which somebody ends a program; of others, it dies.
_ASKED: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE})

# What this process is at; and where whoever waits for it can read that.
_last = ""
_noted: mmap.mmap | None = None


def note(what: str) -> None:
    """Say what this process is at, in case it dies of it."""
    global _last
    _last = what
    if _noted is not None:
        data = what.encode(errors="replace")[: _SIZE - 1] + b"\0"
        _noted[: len(data)] = data


def noted() -> str:
    """Return what this process is at."""
    return _last


@dataclass(frozen=True, slots=True)
class Child:
    """A process that does the work.

    Attributes:
        pid: Its number.
        program: The name of the program, for messages.
        noted: What it is at.
    """

    pid: int
    program: str
    noted: mmap.mmap

    def judge(self, status: int) -> tuple[int, str]:
        """Return the exit code for what was waited for, and what to say on stderr.

        Args:
            status: What ``waitpid`` returned.
        """
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status), ""
        number = signal.Signals(os.WTERMSIG(status))
        if number in _ASKED:
            return 128 + number, ""
        at = bytes(self.noted[:]).partition(b"\0")[0].decode(errors="replace")
        return 1, f"{at}{': ' if at else ''}error: {self.program}: the library died of {number.name}\n"


def start(program: str, run: Callable[[], int]) -> Child:
    """Run a program in a process of its own.

    Args:
        program: Its name.
        run: The program, which returns its exit code.
    """
    global _noted
    noted = mmap.mmap(-1, _SIZE)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _noted = noted
        _be_child(run)
    return Child(pid, program, noted)


def guarded(program: str, run: Callable[[], int]) -> int:
    """Run a program in a process of its own, wait for it, and return its exit code; 1 if it dies.

    Args:
        program: Its name.
        run: The program, which returns its exit code.
    """
    child = start(program, run)

    def hand_on(number: int, _: object) -> None:
        os.kill(child.pid, number)

    # Ctrl-C goes to both; what is left to do here is to wait.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, hand_on)
    signal.signal(signal.SIGHUP, hand_on)
    code, message = child.judge(os.waitpid(child.pid, 0)[1])
    sys.stderr.write(message)
    sys.stderr.flush()
    return code


def _be_child(run: Callable[[], int]) -> None:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = run()
    except BrokenPipeError:
        # Whoever read our output has stopped.
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        # No destructors: those of the library take time, and nobody needs them.
        sys.stderr.flush()
        os._exit(code)
