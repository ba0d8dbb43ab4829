"""Work on a Dask cluster: its connection, and its futures as those of any executor.

The scheduler gives the batch of a worker that has died to another one; after several deaths, four by default, it blames
the batch (``distributed.scheduler.allowed-failures`` in the configuration of Dask). So a lost batch concerns no other
batch, unlike in a pool of processes, which breaks as a whole.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, ParamSpec, TypeVar

from vhlo_tools.errors import MissingExtraError, WorkerError
from vhlo_tools.spec import newest_version

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
            "work on a Dask cluster needs distributed, which is not installed: pip install 'vhlo-tools[distributed]'"
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
            answer.set_exception(
                WorkerError(
                    "the scheduler of the cluster has dropped the work: it was restarted, or the connection was lost; "
                    "repeat the call, by which a migration is resumed"
                ).with_traceback(error.__traceback__)
            )
        except Exception as error:
            lost = type(error).__name__ == "KilledWorker"
            answer.set_exception(BrokenExecutor(str(error)) if lost else _explained(error))
        finally:
            self._in_progress.discard(call)


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


def _explained(error: Exception) -> Exception:
    if isinstance(error, ModuleNotFoundError) and error.name == "vhlo_tools":
        return WorkerError("a worker of the cluster has no vhlo-tools: install the same version as here on all")
    return error
