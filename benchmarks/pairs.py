"""What is done twice in one process, with this package and with the bare library, by turns."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import Run

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """Something measured twice, with this package and without."""

    name: str  # what it is
    ours: Callable[[Any], object]  # does it with this package, on what ``prepare`` gave
    raw: Callable[[Any], object]  # does it with the bare library, on what ``prepare`` gave
    prepare: Callable[[], Any]  # gives the input afresh, outside of what is measured


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run took."""

    seconds: float  # wall time
    peak: int  # bytes of memory above what the process held before; of a process of its own, all that it held


def measure(function: Callable[[Any], object], prepare: Callable[[], Any]) -> Measurement:
    """Run ``function`` once on a fresh input; if it measures a process of its own, that counts."""
    given = prepare()
    gc.collect()
    reset_peak()
    before = memory("VmRSS")
    started = time.perf_counter()
    result = function(given)
    seconds = time.perf_counter() - started
    peak = memory("VmHWM") - before
    taken = Measurement(result.seconds, result.peak) if isinstance(result, Run) else Measurement(seconds, peak)
    del result, given
    return taken


def reset_peak() -> None:
    """Make the kernel forget the peak of this process's memory (Linux, `man 5 proc`)."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> int:
    """Return a line of the kernel's account of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def measure_pairs(case: Case, pairs: int) -> tuple[list[Measurement], list[Measurement]]:
    """Return so many runs of ours and of the library's, after one of each that warms the memory up."""
    measure(case.raw, case.prepare)
    measure(case.ours, case.prepare)
    ours: list[Measurement] = []
    raw: list[Measurement] = []
    for turn in range(pairs):
        # Whoever comes second finds warm memory, so they take turns at that too.
        for mine, function in ((ours, case.ours), (raw, case.raw))[:: 1 if turn % 2 else -1]:
            mine.append(measure(function, case.prepare))
    return ours, raw


def median_ratio(ours: Sequence[Measurement], raw: Sequence[Measurement]) -> float:
    """Return the median of the ratios pair by pair."""
    return statistics.median(a.seconds / b.seconds for a, b in zip(ours, raw, strict=True))
