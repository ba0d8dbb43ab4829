"""Execution of the work on files: in this process, in child processes, on a Dask cluster."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

from vhlo_tools.errors import MissingExtraError, WorkerError, installing
from vhlo_tools.spec import newest_version
from vhlo_tools.system import CAN_ISOLATE, interrupts_held

# Work on a Dask cluster: its connection, and its futures as those of any executor
#
# The scheduler gives the batch of a worker that has died to another one; after several deaths, four by default, it
# blames the batch, and whatever else each of these workers had (``distributed.scheduler.allowed-failures`` in the
# configuration of Dask). Batches of other workers go on, unlike in a pool of processes, which breaks as a whole.

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Seconds between questions to the scheduler for the number of its workers.
_ASKED: Final = 5.0
#: Seconds that a scheduler has to answer.
_ANSWERED: Final = 10.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a ``distributed.Client`` of a scheduler at an address such as ``tcp://scheduler:8786``."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            f"work on a Dask cluster needs distributed, which is not installed: {installing('distributed')}"
        ) from error
    try:
        client = Client(address, timeout=_ANSWERED, set_as_default=False, name="vhlo-tools")
    except (OSError, ValueError, TypeError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}: {error}): expected the address of a "
            f"running `dask scheduler`, such as tcp://scheduler:8786"
        ) from error
    try:
        yield client
    finally:
        client.close()


def is_client(executor: object) -> bool:
    """Dask is not imported for this."""
    return any(
        each.__name__ == "Client" and each.__module__.partition(".")[0] == "distributed"
        for each in type(executor).__mro__
    )


class Cluster:
    """A Dask cluster as an executor; the caller remains the owner of the ``distributed.Client``."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._in_progress: set[Any] = set()
        self._threads = 1
        self._asked = -_ASKED

    @property
    def threads(self) -> int:
        """Number of threads of all workers at present, at least one."""
        if time.monotonic() - self._asked > _ASKED:
            with _answering():
                self._threads = max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._threads

    def submit(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> Future[_T]:
        """The future raises :class:`BrokenExecutor` if all workers that were given the call have died."""
        answer: Future[_T] = Future()
        from distributed.protocol.pickle import dumps

        # As bytes: the scheduler would make objects of all arguments, and keep those of the last thousand calls of each
        # worker. A call is not pure: it writes files. Dask's own retries are for errors, which our functions return as
        # results.
        packed = dumps((function, arguments, options))
        with _answering():
            call = self._client.submit(_called, _release(), packed, pure=False, retries=0)
        self._in_progress.add(call)
        # Not the executor of Dask, whose futures fail if a worker is lost between its result and the request for it.
        self._client.loop.add_callback(self._answer, call, answer)
        return answer

    def shutdown(self) -> None:
        """Give up all calls in progress."""
        if self._in_progress:
            self._client.cancel(list(self._in_progress))

    async def _answer(self, call: Any, answer: Future[Any]) -> None:
        """Pass the outcome of a call on, in the event loop of the client."""
        try:
            answer.set_result(await self._client.gather(call, asynchronous=True))
        except (CancelledError, asyncio.CancelledError) as error:
            answer.set_exception(_dropped(error).with_traceback(error.__traceback__))
        except Exception as error:
            told: Exception = error
            if type(error).__name__ == "KilledWorker":
                told = BrokenExecutor(str(error))
            elif isinstance(error, ModuleNotFoundError) and error.name == "vhlo_tools":
                told = WorkerError("a worker of the cluster has no vhlo-tools: install the same version as here on all")
            answer.set_exception(told)
        finally:
            self._in_progress.discard(call)


def _dropped(error: BaseException) -> WorkerError:
    return WorkerError(
        f"the scheduler of the cluster has dropped the work ({type(error).__name__}): it was restarted, or the "
        "connection was lost or closed; repeat the call, by which a migration is resumed"
    )


@contextmanager
def _answering() -> Iterator[None]:
    """Which error Dask raises for a scheduler that is gone depends on what the client has noticed."""
    try:
        yield
    except Exception as error:
        raise _dropped(error) from error


@cache
def _release() -> str:
    """Return the release of this package and its newest known version, which differs between checkouts."""
    try:
        release = version("vhlo-tools")
    except PackageNotFoundError:
        release = "from a checkout"
    return f"{release} (StableHLO {newest_version()})"


def _called(expected: str, packed: bytes) -> Any:
    """Run on a worker, whose package must be that of the client to understand the call."""
    found = _release()
    if found != expected:
        raise WorkerError(
            f"a worker of the cluster has vhlo-tools {found}, and the client {expected}: install the same on all"
        )
    function, arguments, options = pickle.loads(packed)
    return function(*arguments, **options)


# Execution of the work on files: in this process, in child processes, on a cluster, or by a caller's executor
#
# Child processes are spawned, never forked, and end with this process, whatever ends it: each waits on a pipe without
# writers, which the system closes when this process ends.

#: An executor of `concurrent.futures`, or a `distributed.Client`, whose package is optional.
AnyExecutor = Any


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
                started = pool.submit(os.getpid)
            started.result()
        except BrokenExecutor as error:
            raise WorkerError(
                "no worker process can be started: a script that requests worker processes must do so below `if "
                "__name__ == '__main__':`, because each of them imports it"
            ) from error
        return pool


def _begin(pipe: Connection) -> None:
    """Make a new process end with its parent, which alone handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)
