"""Execution of the work on files: in this process, in child processes, on a cluster, or by a caller's executor.

Child processes are spawned, never forked, and end with this process, whatever ends it: each waits on a pipe without
writers, which the system closes when this process ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from vhlo_tools.errors import WorkerError
from vhlo_tools.executors.cluster import Cluster, is_client
from vhlo_tools.system import CAN_ISOLATE, interrupts_held

#: An executor of `concurrent.futures`, or a `distributed.Client`, whose package is optional.
AnyExecutor = Any

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: The number of batches in progress per process, so that no process is idle.
_AHEAD = 3


class Workers:
    """Executor of the work on files, as a context manager: leaving it by an error ends the work at once.

    The caller remains the owner of ``executor``. ``jobs`` of ``None`` means one file at a time in this process.
    """

    def __init__(self, executor: AnyExecutor | None = None, jobs: int | None = None) -> None:
        self._cluster = Cluster(executor) if is_client(executor) else None
        self._given = self._cluster or executor
        self._jobs = jobs
        self._own: ProcessPoolExecutor | None = None
        self._pipe: tuple[Connection, Connection] | None = None

    @property
    def count(self) -> int:
        """Number of files that are processed concurrently, as far as known."""
        if self._cluster is not None:
            return self._cluster.threads
        if self._given is not None:
            return os.cpu_count() or 1
        return self._jobs or 1

    @property
    def window(self) -> int:
        """Number of batches to keep in progress."""
        return 1 if self._given is None and self._jobs is None else _AHEAD * self.count

    @property
    def isolates(self) -> bool:
        """Whether a crash ends only the batch of its process, which was then tried several times."""
        return self._cluster is not None

    @property
    def renewable(self) -> bool:
        """Whether crashed processes can be replaced."""
        return self._given is None

    def submit(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> Future[_T]:
        if self._given is not None:
            submitted: Future[_T] = self._given.submit(function, *arguments, **options)
            return submitted
        if self._jobs is None:
            future: Future[_T] = Future()
            future.set_result(function(*arguments, **options))
            return future
        if self._own is None:
            self._own = self._started(self._jobs)
        with interrupts_held():
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
        if self._cluster is not None:
            self._cluster.shutdown()
        self.renew()

    def _started(self, jobs: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        reader, writer = context.Pipe(duplex=False)
        self._pipe = (reader, writer)
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(reader,))
        # It would lift the block of Ctrl-C below when it starts.
        if CAN_ISOLATE:
            resource_tracker.ensure_running()
        try:
            # A terminal sends Ctrl-C to all its processes, and Python prints a traceback if it is interrupted while it
            # starts: it is held back in them too, until they ignore it.
            with interrupts_held():
                ready = pool.submit(_be_ready)
            ready.result()
        except BrokenExecutor as error:
            raise WorkerError(
                "no worker process can be started: a script that requests worker processes must do so below `if "
                "__name__ == '__main__':`, because each of them imports it"
            ) from error
        return pool


def _be_ready() -> None:
    """Return; a result shows that the process has started."""


def _begin(pipe: Connection) -> None:
    """Make a new process end with its parent, which alone handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)
