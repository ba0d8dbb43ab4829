"""Run a program in a child process, so that a crash of the library becomes an error message.

The process is forked before any bindings are loaded, which takes a few milliseconds; a start of another Python process
would take as long as the work itself.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vhlo_tools.limits import seconds_of_reading
from vhlo_tools.printable import printable_lines
from vhlo_tools.records import dataclass
from vhlo_tools.system import CAN_ISOLATE, die_with_parent, signals

_SIZE: Final = 4096

#: Signals that request termination; termination by another signal is a crash.
_ASKED: Final = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")
#: The signal of the timer of :func:`reading`.
_HANGS: Final = signals("SIGPROF")

# The current activity of this process, and the shared memory in which its parent can read it.
_last = ""
_noted: mmap.mmap | None = None


def note(what: str) -> None:
    """Record the current activity of this process, for the message after a crash."""
    global _last
    _last = what
    if _noted is not None:
        data = what.encode(errors="replace")[: _SIZE - 1] + b"\0"
        _noted[: len(data)] = data


def noted() -> str:
    return _last


@contextmanager
def reading(size: int) -> Iterator[None]:
    """End this process, if it is a child, if the library hangs on the bytes that it reads."""
    if _noted is None:
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds_of_reading(size))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    program: str  # the name, for messages
    noted: mmap.mmap  # shared memory with the current activity

    def judge(self, status: int) -> tuple[int, str]:
        """Return the exit code for a status of ``waitpid``, and a message for stderr."""
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status), ""
        number = signal.Signals(os.WTERMSIG(status))
        if number in _ASKED:
            return 128 + number, ""
        at = bytes(self.noted[:]).partition(b"\0")[0].decode(errors="replace")
        said = f"the library crashed with {number.name}"
        if number in _HANGS:
            said = "the library hangs when reading the file, which is damaged; regenerate or download it again"
        return 1, f"{at}{': ' if at else ''}error: {self.program}: {said}\n"


def start(program: str, run: Callable[[], int]) -> Child:
    """``run`` returns the exit code."""
    global _noted
    noted = mmap.mmap(-1, _SIZE)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # Python forgets a signal that a new process gets before its handlers are in place; the kernel keeps a blocked one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pid = os.fork()
        if pid == 0:
            _noted = noted
            _be_child(run, parent, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Child(pid, program, noted)


def guarded(program: str, run: Callable[[], int]) -> int:
    """Return the exit code of ``run`` in a child process; 1 if it crashes."""
    if not CAN_ISOLATE:
        # Then a crash of the library is one of this process.
        return run()
    child = start(program, run)

    def hand_on(number: int, _: object) -> None:
        os.kill(child.pid, number)

    # Ctrl-C signals both processes; this one only has to wait.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, hand_on)
    signal.signal(signal.SIGHUP, hand_on)
    code, message = child.judge(os.waitpid(child.pid, 0)[1])
    sys.stderr.write(printable_lines(message))
    sys.stderr.flush()
    return code


def _be_child(run: Callable[[], int], parent: int, mask: set[int | signal.Signals]) -> None:
    code = 1
    try:
        for number in (signal.SIGINT, *_HANGS):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        die_with_parent(parent)
        # Imported here because not every system has what it needs.
        from vhlo_tools.bindings.isolation import become_child
        from vhlo_tools.bindings.isolation.sandbox import restrict

        become_child()
        # It reads and writes files of its caller; it needs no network and no other process.
        restrict(files=True)
        code = run()
    except BrokenPipeError:
        # The reader of the output has closed it.
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        # Without destructors: those of the library take time and have no effect.
        sys.stderr.flush()
        os._exit(code)
