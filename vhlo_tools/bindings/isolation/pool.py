"""The child processes of this process: one for each call at a time, kept for the next."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import Any, Final

from vhlo_tools.bindings.isolation.limits import Limits
from vhlo_tools.bindings.isolation.process import Server, Worker
from vhlo_tools.errors import EngineStartError

__all__ = ["AVAILABLE", "call", "close", "warm"]

#: Whether this system can isolate calls: it must be able to fork.
AVAILABLE: Final = hasattr(os, "fork")

# So many children stay for later calls, and so many bytes of shared memory with them.
_IDLE: Final = 4
_SHARED: Final = 512 << 20


def call(function: str, *arguments: object, limits: Limits | None = None) -> Any:
    """Call a function in a warm child process, of which this process takes no harm.

    Nothing is started before the first call. Calls from several threads run at once, each in a child of its own, and a
    child is used again by the next call. Children end with this process, however that ends. What they write on stdout
    and stderr is part of the error if they die, and is otherwise thrown away.

    Args:
        function: What to call, ``package.module:function``; the child imports the module.
        arguments: What has a pickle. Arrays of numpy, of any dtype but Python objects, and views of bytes may stand
            anywhere in it: large ones cross in shared memory, and are read-only in the child and only valid during the
            call.
        limits: What it may take, by default :class:`Limits`.

    Returns:
        What the function returns, of the same kinds. Arrays are the caller's own and can be written.

    Raises:
        VhloToolsError: Of whatever class the function raises; also ``MLIRFailure`` and ``XlaFailure`` of the bindings.
        EngineError: If it raises anything else, with the traceback in a note; if it takes more memory or returns more
            than it may.
        EngineStartError: If no child process can be started.
        EngineCrashError: If the child dies.
        EngineTimeoutError: If it takes longer than it may; the child is ended.
        TypeError: If an argument is an array of Python objects.
    """
    return _pool.call(function, arguments, limits or Limits())


def warm() -> None:
    """Start a child for the next call, unless there is one, and do not wait until it is ready.

    Where none can be started nothing happens; the call will say why.
    """
    with suppress(EngineStartError, OSError):
        _pool.warm()


def close() -> None:
    """End all child processes, and wait for them; the next call starts new ones."""
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
        """Let go of everything, in a fork of the process that it belongs to."""
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

    def _new(self) -> Worker:
        if self._server is None or not self._server.alive:
            self._server = self._started()
        with suppress(ConnectionError):
            return Worker(self._server)
        # It has just ended.
        self._server = self._started()
        try:
            return Worker(self._server)
        except ConnectionError as error:
            said = self._server.log or "the process that makes them ended at once"
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {said}") from error

    def _started(self) -> Server:
        if not AVAILABLE:
            raise EngineStartError("child processes need a system that can fork, such as Linux")
        if self._server is not None:
            self._server.end()
            self._server = None
        return Server()


def _after_fork() -> None:
    """Start anew in a fork of this process, whose children are not its own."""
    global _pool
    _pool.forget()
    _pool = _Pool()


_pool = _Pool()
atexit.register(lambda: _pool.close())
if AVAILABLE:
    os.register_at_fork(after_in_child=_after_fork)
