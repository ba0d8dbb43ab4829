"""How processes share the disk of a machine, measured with processes that do nothing else."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import Any, Final

from process_accounts import Account

__all__ = ["disk_factor"]

#: Turns of one writer alone, and as many of all, and the files of each writer in a turn.
_TURNS: Final = 8
_FILES: Final = 32


def disk_factor(folder: Path, writers: int) -> float:
    """Return how many times as long a process waits for the disk, for a small file, if so many write.

    One writes alone and all write, by turns, so that other work on the machine disturbs both alike. The time of waiting
    for a core is not counted.

    Args:
        folder: Where the files are written, which are removed.
        writers: The number of processes.
    """
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(writers), context.SimpleQueue()
    processes = [context.Process(target=_write, args=(folder, number, barrier, answers)) for number in range(writers)]
    for each in processes:
        each.start()
    found = [answers.get() for _ in processes]
    for each in processes:
        each.join()
    alone = [seconds for turns in found for seconds in turns[0]]
    together = [seconds for turns in found for seconds in turns[1]]
    return float(statistics.median(together) / statistics.median(alone))


def _write(folder: Path, number: int, barrier: Any, answers: Any) -> None:
    alone, together = [], []
    for _ in range(_TURNS):
        barrier.wait()
        if number == 0:
            alone.append(_waited(folder))
        barrier.wait()
        together.append(_waited(folder))
    answers.put((alone, together))


def _waited(folder: Path) -> float:
    """Write files, and return the seconds for which each was waited for."""
    before, began = Account.of_this_thread(), time.perf_counter()
    for index in range(_FILES):
        path = folder / f".{os.getpid()}-{index}"
        with path.open("wb") as file:
            file.write(b"x" * 1_000)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    taken, used = time.perf_counter() - began, Account.of_this_thread() - before
    return max(0.0, taken - used.cpu - used.queued) / _FILES
