"""How processes get in each other's way on a machine, measured with processes that do nothing else.

One process works alone and all work, by turns, so that other work on the machine disturbs both alike.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from process_accounts import Account
from support.cluster_stores import FROM, TARGET
from support.corpus import EXAMPLES

import vhlo_tools as vt

_T = TypeVar("_T")

#: Turns of one process alone, and as many of all, and the files of each process in a turn.
_TURNS: Final = 8
_FILES: Final = 32


def disk_factor(folder: Path, processes: int) -> float:
    """Return how many times as long a process waits for the disk, for a small file, if so many write.

    Args:
        folder: Where the files are written, which are removed.
        processes: The number of processes.
    """
    return _factor(processes, _waited, folder)


def processor_factor(processes: int) -> float:
    """Return how many times as much of a processor an artifact takes if so many processes use the caches."""
    return _factor(processes, _used, bytes(vt.serialize(EXAMPLES / "saxpy.mlir", FROM)))


def _factor(processes: int, measure: Callable[[_T], float], argument: _T) -> float:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(processes), context.SimpleQueue()
    started = [
        context.Process(target=_by_turns, args=(number == 0, barrier, answers, measure, argument))
        for number in range(processes)
    ]
    for each in started:
        each.start()
    found = [answers.get() for _ in started]
    for each in started:
        each.join()
    alone = [value for turns in found for value in turns[0]]
    together = [value for turns in found for value in turns[1]]
    return float(statistics.median(together) / statistics.median(alone))


def _by_turns(is_first: bool, barrier: Any, answers: Any, measure: Callable[[_T], float], argument: _T) -> None:
    measure(argument)  # imports
    alone, together = [], []
    for _ in range(_TURNS):
        barrier.wait()
        if is_first:
            alone.append(measure(argument))
        barrier.wait()
        together.append(measure(argument))
    answers.put((alone, together))


def _waited(folder: Path) -> float:
    """Write files, and return the seconds for which they were waited for, without those of waiting for a core."""
    before, began = Account.of_this_thread(), time.perf_counter()
    for index in range(_FILES):
        path = folder / f".{os.getpid()}-{index}"
        with path.open("wb") as file:
            file.write(b"x" * 1_000)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    taken, used = time.perf_counter() - began, Account.of_this_thread() - before
    return max(0.0, taken - used.cpu - used.queued)


def _used(artifact: bytes) -> float:
    """Move an artifact several times, and return the seconds of the processor."""
    before = Account.of_this_thread()
    for _ in range(_FILES):
        vt.retarget(artifact, TARGET)
    return (Account.of_this_thread() - before).cpu
