"""Pool of child processes: one per concurrent call, reused by later calls."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings.isolation.limits import Limits
from vhlo_tools.errors import EngineStartError
from vhlo_tools.system import CAN_ISOLATE, after_fork

if TYPE_CHECKING:
    from vhlo_tools.bindings.isolation.process import Server, Worker

#: Whether this system can isolate calls, which requires fork.
AVAILABLE: Final = CAN_ISOLATE

# The number of idle children kept for later calls, and the bytes of shared memory kept with them.
_IDLE: Final = 4
_SHARED: Final = 512 << 20


def call(function: str, *arguments: object, limits: Limits | None = None) -> Any:
    """Call ``package.module:function`` in a warm child; arrays in the result belong to the caller and are writable.

    Large arrays (of any dtype except Python objects) and views of bytes among the arguments are shared: read-only in
    the child, and valid only during the call. Any error that is not the toolkit's becomes an ``EngineError``.
    """
    return _pool.call(function, arguments, limits or Limits())


def start(modules: Sequence[str] = (), tools: Sequence[str] = ()) -> Worker:
    """Start a child of the caller's own, after importing ``modules``.

    With ``tools``, programs or folders that it may start, it may also write files in a temporary folder of its own.
    """
    return _pool.start(modules, tools)


def warm() -> None:
    """Start a child for the next call if none is idle, without waiting; the next call reports a failure."""
    with suppress(EngineStartError, OSError):
        _pool.warm()


def close() -> None:
    _pool.close()


class _Pool:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    def call(self, function: str, arguments: tuple[object, ...], limits: Limits) -> Any:
        worker = self._take()
        try:
            return worker.call(function, arguments, limits)
        finally:
            self._give_back(worker)

    def start(self, modules: Sequence[str], tools: Sequence[str]) -> Worker:
        with self._lock:
            return self._new(modules, tools)

    def warm(self) -> None:
        with self._lock:
            if not self._idle:
                self._idle.append(self._new())

    def close(self) -> None:
        with self._lock:
            for worker in self._idle:
                worker.forget()
            self._idle.clear()
            if self._server is not None:
                self._server.end()
            self._server = None

    def forget(self) -> None:
        """For a forked copy of the process that owns the resources."""
        for worker in (*self._idle, *self._busy):
            worker.forget()
        if self._server is not None:
            self._server.forget()

    def _take(self) -> Worker:
        with self._lock:
            worker = None
            while worker is None and self._idle:
                worker = self._idle.pop()
                if not worker.reusable:
                    worker.end()
                    worker = None
            worker = worker or self._new()
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            kept = sum(each.shared for each in self._idle)
            if worker.reusable and len(self._idle) < _IDLE and kept + worker.shared <= _SHARED:
                self._idle.append(worker)
                return
        worker.end()

    def _new(self, modules: Sequence[str] = (), tools: Sequence[str] = ()) -> Worker:
        if self._server is None or not self._server.alive:
            self._server = self._started()
        # Imported here because it needs what makes processes, which not every system has.
        from vhlo_tools.bindings.isolation.process import Worker

        with suppress(ConnectionError):
            return Worker(self._server, modules, tools)
        # The server has ended in the meantime.
        self._server = self._started()
        try:
            return Worker(self._server, modules, tools)
        except ConnectionError as error:
            said = self._server.log or "the process that forks them exited at once"
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {said}") from error

    def _started(self) -> Server:
        if not AVAILABLE:
            raise EngineStartError(
                "this runs in a child process with limits, which this system cannot make, for it has no fork: use "
                "Linux, macOS or the Windows Subsystem for Linux; or, for a program that is trusted, engine='xla' with "
                "in_process=True"
            )
        if self._server is not None:
            self._server.end()
            self._server = None
        from vhlo_tools.bindings.isolation.process import Server

        return Server()


def _after_fork() -> None:
    """Start with an empty pool in a fork of this process, because the children belong to the original."""
    global _pool
    _pool.forget()
    _pool = _Pool()


_pool = _Pool()
atexit.register(lambda: _pool.close())
after_fork(_after_fork)
