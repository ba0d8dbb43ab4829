"""Wrappers for POSIX features that macOS or Windows lack.

Callers name no system: what counts is whether :mod:`os` and :mod:`signal` have a function. ``docs/platforms.md``
describes what users see of it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

#: Of a file that is opened by :func:`os.open`: its bytes are not taken for lines of text, as Windows does, and it is
#: not given to processes that are started.
BINARY: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Of a file that is opened: a FIFO without a writer does not block. Without this, names are not those of FIFOs.
NO_BLOCKING: Final = getattr(os, "O_NONBLOCK", 0)
#: Of a file that is opened: it is no symbolic link.
NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)
#: Of a folder that is opened, only to name files in it; 0 where files cannot be named so.
FOLDER: Final = getattr(os, "O_DIRECTORY", 0) and (os.O_DIRECTORY | getattr(os, "O_PATH", 0) | BINARY)

#: Whether a process can be copied, which the isolation of calls needs.
CAN_ISOLATE: Final = hasattr(os, "fork")

#: The exit code of a program whose output nobody reads any longer, as a shell shows the end by this signal.
CLOSED_OUTPUT: Final = 128 + int(getattr(signal, "SIGPIPE", 13))

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)

_seeking = threading.Lock()


def after_fork(function: Callable[[], None]) -> None:
    """Call a function in every forked copy of this process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def die_with_parent(parent: int) -> None:
    """End this process, a fork, with its parent, even if that is killed while this process is in an endless call."""
    if sys.platform == "linux":
        # Imported here because only a fork for the bindings, which import it anyway, needs it.
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Defer Ctrl-C; where the system can, also in the threads and processes that are started meanwhile."""
    handler = signal.getsignal(signal.SIGINT)
    came: list[bool] = []
    # Only the main thread handles signals, also those that another thread takes, such as one of numpy's; and only a
    # handler of Python can interrupt it.
    defers = callable(handler) and threading.current_thread() is threading.main_thread()
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    try:
        if defers:
            signal.signal(signal.SIGINT, lambda *_: came.append(True))
        yield
    finally:
        if defers:
            signal.signal(signal.SIGINT, handler)
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Return up to ``size`` bytes at an offset of an open file; threads may share the file."""
    if sys.platform != "win32" and hasattr(os, "pread"):
        return os.pread(handle, size, offset)
    # The position is the file's, and so one reader at a time moves it.
    with _seeking:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, size)


def copy_in_kernel(source: int, target: int, size: int, offset: int) -> int:
    """Append bytes of one open file to another; return 0 where the kernel cannot."""
    if sys.platform == "linux" and hasattr(os, "copy_file_range"):
        return os.copy_file_range(source, target, size, offset)
    return 0


def keep_permissions(handle: int, mode: int) -> None:
    """Give an open file the permissions of another, where files have any."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def wait_for_bytes(handle: int) -> None:
    """Let reads of an open file wait, after it was opened with :data:`NO_BLOCKING`."""
    if NO_BLOCKING:
        os.set_blocking(handle, True)


def signals(*names: str) -> frozenset[Any]:
    """Return those of some signals that this system has."""
    return frozenset(getattr(signal, name) for name in names if hasattr(signal, name))
