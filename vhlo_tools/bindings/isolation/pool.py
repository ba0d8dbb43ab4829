"""Pools of child processes: one child per concurrent call, reused by later calls."""

from __future__ import annotations

import atexit
import hashlib
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings.isolation.limits import Limits
from vhlo_tools.errors import EngineStartError
from vhlo_tools.system import CAN_ISOLATE, after_fork

if TYPE_CHECKING:
    from vhlo_tools.bindings.isolation.process import Server, Worker

#: Whether this system can isolate calls, which requires fork.
AVAILABLE: Final = CAN_ISOLATE

#: What a function returns that was sent the key of data which its child does not have.
MISSING: Final = "missing"
_SMALL: Final = 1 << 16

#: The bytes of shared memory kept with the idle children of a pool.
_SHARED: Final = 512 << 20

_lock = threading.RLock()
_server: Server | None = None
_pools: Final[list[Pool]] = []


class Pool:
    """Children that have imported ``modules`` and may start ``tools``, of which ``most`` are kept for later calls.

    Those that are ``free`` may do what the caller may: they run code that the user named, on devices.
    """

    def __init__(
        self,
        modules: Sequence[str] = (),
        tools: Callable[[], Sequence[str]] = tuple,
        *,
        most: int = 4,
        free: bool = False,
    ) -> None:
        self._modules, self._tools, self._most, self._is_free = modules, tools, most, free
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        _pools.append(self)

    def call(self, function: str, arguments: tuple[object, ...], limits: Limits) -> Any:
        worker = self._take()
        try:
            return worker.call(function, arguments, limits)
        finally:
            self._give_back(worker)

    def warm(self) -> None:
        with _lock:
            if not self._idle:
                self._idle.append(self._start())

    def _start(self) -> Worker:
        return start(self._modules, self._tools(), free=self._is_free)

    def close(self) -> None:
        for worker in self._idle:
            worker.forget()
        self._idle.clear()

    def forget(self) -> None:
        """For a forked copy of the process that owns the children."""
        for worker in (*self._idle, *self._busy):
            worker.forget()
        self._idle, self._busy = [], set()

    def _take(self) -> Worker:
        with _lock:
            worker = None
            while worker is None and self._idle:
                worker = self._idle.pop()
                if not worker.reusable:
                    worker.end()
                    worker = None
            worker = worker or self._start()
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: Worker) -> None:
        with _lock:
            self._busy.discard(worker)
            kept = sum(each.shared for each in self._idle)
            if worker.reusable and len(self._idle) < self._most and kept + worker.shared <= _SHARED:
                self._idle.append(worker)
                return
        worker.end()


_calls: Final = Pool()


def call(function: str, *arguments: object, limits: Limits | None = None) -> Any:
    """Call ``package.module:function`` in a warm child; arrays in the result belong to the caller and are writable.

    Large arrays (of any dtype except Python objects) and views of bytes among the arguments are shared: read-only in
    the child, and valid only during the call. Any error that is not the toolkit's becomes an ``EngineError``.
    """
    return _calls.call(function, arguments, limits or Limits())


class KeptData:
    """Data that children keep: small data is sent with each call, larger only to a child that lacks it."""

    def __init__(self, data: bytes, name: str = "", pool: Pool | None = None) -> None:
        self._data, self._pool = data, pool or _calls
        self._key = hashlib.sha256(data).digest() + name.encode(errors="surrogatepass")

    def call(self, function: str, *arguments: object, limits: Limits) -> Any:
        """``function`` gets the key and the data; without the data, and if it lacks it, it returns :data:`MISSING`."""
        data = memoryview(self._data)
        small = data if len(data) <= _SMALL else None
        results = self._pool.call(function, (self._key, small, *arguments), limits)
        if isinstance(results, str) and results == MISSING:
            results = self._pool.call(function, (self._key, data, *arguments), limits)
        return results


def warm() -> None:
    """Start a child for the next call if none is idle, without waiting; the next call reports a failure."""
    with suppress(EngineStartError, OSError):
        _calls.warm()


def start(modules: Sequence[str] = (), tools: Sequence[str] = (), *, free: bool = False) -> Worker:
    """Start a child of the caller's own, after importing ``modules``.

    With ``tools``, programs or folders that it may start, it may also write files in a temporary folder of its own.
    One that is ``free`` may do what the caller may.
    """
    with _lock:
        server = _running()
        # Imported here because it needs what makes processes, which not every system has.
        from vhlo_tools.bindings.isolation.process import Worker

        with suppress(ConnectionError):
            return Worker(server, modules, tools, free=free)
        # The server has ended in the meantime.
        server = _running(anew=True)
        try:
            return Worker(server, modules, tools, free=free)
        except ConnectionError as error:
            said = server.log or "the process that forks them exited at once"
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {said}") from error


def _running(*, anew: bool = False) -> Server:
    global _server
    if _server is not None and not anew and _server.alive:
        return _server
    if not AVAILABLE:
        raise EngineStartError(
            "this runs in a child process with limits, which this system cannot make, for it has no fork: use "
            "Linux, macOS or the Windows Subsystem for Linux; or, for a program that is trusted, engine='xla' with "
            "in_process=True"
        )
    from vhlo_tools.bindings.isolation.process import Server

    if _server is not None:
        _server.end()
        _server = None
    _server = Server()
    return _server


def close() -> None:
    """End the idle children, and the process that forks them; the next call starts another."""
    global _server
    with _lock:
        for pool in _pools:
            pool.close()
        if _server is not None:
            _server.end()
        _server = None


def _after_fork() -> None:
    """Start without children in a fork of this process, because they belong to the original."""
    global _lock, _server
    _lock = threading.RLock()
    for pool in _pools:
        pool.forget()
    if _server is not None:
        _server.forget()
    _server = None


atexit.register(close)
after_fork(_after_fork)
