"""Cases worked off by several processes, of which each may die or hang without harm to the others.

A case is anything that can be pickled, and a *worker* is a function, ``module:function``, that takes one and returns
what can be. A process that dies, or takes too long over a case, is replaced.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, TypeVar

Case = TypeVar("Case")


@dataclass(frozen=True, slots=True)
class Ended(Generic[Case]):
    """How a case ended."""

    case: Case  # the case
    #: ``done``, ``raised``, ``died`` with the process, or ``too-long``
    how: Literal["done", "raised", "died", "too-long"]
    result: Any  # what the worker returned, or the exception; of what died, the name of the signal or the exit code
    seconds: float  # how long it took


@dataclass(eq=False)
class _Seat(Generic[Case]):
    """A process, and the case that it is at, if it is at one."""

    process: BaseProcess
    pipe: Connection
    case: Case | None = None
    since: float = 0.0
    is_new: bool = True

    def begin(self, case: Case) -> None:
        self.case, self.since = case, time.monotonic()
        self.pipe.send(case)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def work_off(
    worker: str, cases: Sequence[Case], *, processes: int = 2, timeout: float, starting: float = 60
) -> Iterator[Ended[Case]]:
    """Give the cases to processes one by one, and yield how they end, in the order in which they do.

    Args:
        worker: The worker, ``module:function``.
        cases: The cases.
        processes: How many processes there are.
        timeout: The seconds that a case may take.
        starting: The seconds that the first case of a process may take beside, for imports.
    """
    waiting = deque(cases)
    seats: list[_Seat[Case]] = [_start(worker) for _ in range(min(processes, len(cases)))]
    try:
        while True:
            for seat in seats:
                if seat.case is None and waiting:
                    seat.begin(waiting.popleft())
            busy = [seat for seat in seats if seat.case is not None]
            if not busy:
                return
            ready = wait([seat.pipe for seat in busy], timeout=0.2)
            for seat in busy:
                ended = _ended(seat, seat.pipe in ready, timeout + (starting if seat.is_new else 0))
                if ended is None:
                    continue
                yield ended
                seat.case, seat.is_new = None, False
                if ended.how in ("died", "too-long"):
                    seat.end()
                    seats[seats.index(seat)] = _start(worker)
    finally:
        for seat in seats:
            seat.end()


def _ended(seat: _Seat[Case], is_ready: bool, timeout: float) -> Ended[Case] | None:
    """Return how the case of a seat ended, if it did."""
    assert seat.case is not None
    seconds = time.monotonic() - seat.since
    if not is_ready:
        return Ended(seat.case, "too-long", None, seconds) if seconds > timeout else None
    try:
        how, result = seat.pipe.recv()
        return Ended(seat.case, how, result, seconds)
    except (EOFError, ConnectionResetError):  # The latter where it died before it read its case.
        seat.process.join()
        code = seat.process.exitcode or 0
        return Ended(seat.case, "died", signal.Signals(-code).name if code < 0 else f"exit code {code}", seconds)


def _start(worker: str) -> _Seat[Any]:
    # Not forked, for whoever calls may have made what does not survive that.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(worker, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Seat(process, ours)


def _serve(worker: str, pipe: Connection) -> None:
    # What a dying library writes, the caller says in a line.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    module, function = worker.split(":")
    call = getattr(importlib.import_module(module), function)
    while True:
        try:
            case = pipe.recv()
        except (EOFError, ConnectionResetError):  # The latter where it died before it read its case.
            return
        try:
            answer = "done", call(case)
        except Exception:
            answer = "raised", traceback.format_exc()
        pipe.send(answer)
