"""Where files are worked on: in this process, in processes of our own, or wherever a caller's executor does.

Processes are spawned, never forked, and end with this one however it ends: each waits on a pipe that nobody writes to,
and that the system closes with this process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from vhlo_tools.errors import MigrationError

__all__ = ["Workers"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: So many batches are under way for each process, so that none waits for the next.
_AHEAD = 3


class Workers:
    """Where files are worked on, as a context: leaving it by an error ends the work at once.

    Args:
        executor: Any executor; it stays the caller's.
        jobs: Without one, how many processes of our own; ``None`` for this process, one file after the other.
    """

    def __init__(self, executor: Executor | None = None, jobs: int | None = None) -> None:
        self._given = executor
        self._jobs = jobs
        self._own: ProcessPoolExecutor | None = None
        self._pipe: tuple[Connection, Connection] | None = None

    @property
    def count(self) -> int:
        """How many files are worked on at once, as far as that is known."""
        if self._given is not None:
            return os.cpu_count() or 1
        return self._jobs or 1

    @property
    def window(self) -> int:
        """How many batches to have under way."""
        return 1 if self._given is None and self._jobs is None else _AHEAD * self.count

    @property
    def renewable(self) -> bool:
        """Whether processes that have died can be replaced."""
        return self._given is None

    def submit(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> Future[_T]:
        """Have ``function`` called.

        Raises:
            BrokenExecutor: If the processes have died.
            MigrationError: If none can be started.
        """
        if self._given is not None:
            return self._given.submit(function, *arguments, **options)
        if self._jobs is None:
            future: Future[_T] = Future()
            future.set_result(function(*arguments, **options))
            return future
        if self._own is None:
            self._own = self._started(self._jobs)
        return self._own.submit(function, *arguments, **options)

    def renew(self) -> None:
        """End all processes; the next call starts new ones."""
        if self._own is not None and self._pipe is not None:
            for end in self._pipe:
                end.close()
            self._own.shutdown(cancel_futures=True)
        self._own = self._pipe = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self._own is not None:
            self._own.shutdown()
        self.renew()

    def _started(self, jobs: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        reader, writer = context.Pipe(duplex=False)
        self._pipe = (reader, writer)
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(reader,))
        try:
            pool.submit(_be_ready).result()
        except BrokenExecutor as error:
            raise MigrationError(
                "no process can be started to work on files: a script that asks for some must do so below "
                "`if __name__ == '__main__':`, for each of them imports it"
            ) from error
        return pool


def _be_ready() -> None:
    """Answer, which shows that the process runs."""


def _begin(pipe: Connection) -> None:
    """Make a new process end with the one that started it, which alone hears Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)
