"""A simulation of a migration on a cluster, event by event, from parts that were measured.

What is simulated: the client lists files, submits batches up to its window of three for each worker, and puts results
in place, one thing at a time; the scheduler passes each batch on and its result back, one at a time; a worker does one
batch at a time, on a processor and then waiting for the disk; it may die, and its batch is done again. Where the
processes share the cores of one machine, they take turns on them.

`simulate_cluster.py --parts FILE --workers 100` simulates with what `bench_cluster.py --parts FILE` has measured.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import statistics
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

__all__ = ["Outcome", "Parts", "simulate"]

#: The batches in progress for each worker, as vhlo_tools.executors.workers has them.
AHEAD: Final = 3
#: Seconds of a core until another process has its turn.
TURN: Final = 0.01

_Process = Generator["tuple[str, Any]", None, None]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a migration take, in seconds.

    Attributes:
        files_per_batch: The number of files in a batch.
        listing: Of the client, to list a file and note it in the journal.
        client: Of the client, to submit a batch, and to put its results in place.
        scheduler: Of the scheduler, for a batch.
        worker_cpu: Of the processor of a worker, for a batch.
        worker_wait: What a worker waits, for a batch.
        spread: The standard deviation of the time of a batch, as a fraction of it.
        startup: Of the processor of a worker, before its first batch.
    """

    files_per_batch: float
    listing: float
    client: float
    scheduler: float
    worker_cpu: float
    worker_wait: float
    spread: float
    startup: float = 0.0

    @classmethod
    def median(cls, several: Iterable[Self]) -> Self:
        """Return the medians of several measurements."""
        parts = list(several)
        return cls(*(statistics.median(getattr(each, field.name) for each in parts) for field in fields(cls)))

    def as_json(self) -> dict[str, float]:
        """Return the parts as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated migration took.

    Attributes:
        seconds: Until the last file was in place.
        batches: The number of batches.
        redone: How many batches were begun again, because their workers had died.
        client: The fraction of the time in which the client was busy.
        scheduler: The fraction of the time in which the scheduler was busy.
        workers: The fraction of the time in which a worker was busy, on average.
    """

    seconds: float
    batches: int
    redone: int
    client: float
    scheduler: float
    workers: float


class _Events:
    """Processes that wait for time, for cores, and for each other."""

    def __init__(self, cores: int | None) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, _Process]] = []
        self._number = 0
        self._free = cores
        self._waiting: deque[tuple[float, _Process]] = deque()
        self.last = 0.0

    def start(self, process: _Process, after: float = 0.0) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + after, self._number, process))

    def run(self) -> None:
        while self._queue:
            self.now, _, process = heapq.heappop(self._queue)
            self._resume(process)

    def _resume(self, process: _Process) -> None:
        for what, given in process:
            if what == "seconds" or (what == "turn" and self._free is None):
                self.start(process, given)
            elif what == "turn":
                self._waiting.append((given, process))
                self._give()
            elif what == "await":
                given.append(process)
            return

    def _give(self) -> None:
        while self._waiting and self._free:
            self._free -= 1
            seconds, process = self._waiting.popleft()
            self.start(self._turn(seconds, process))

    def _turn(self, seconds: float, process: _Process) -> _Process:
        yield "seconds", seconds
        assert self._free is not None
        self._free += 1
        self._give()
        self.start(process)


def _on_core(seconds: float) -> _Process:
    """Use a core for so long, turn by turn."""
    while seconds > 0:
        turn = min(seconds, TURN)
        yield "turn", turn
        seconds -= turn


class _Simulation:
    def __init__(
        self,
        parts: Parts,
        files: int,
        workers: int,
        cores: int | None,
        deaths: float,
        detection: float,
        disk: float,
        seed: int,
    ) -> None:
        self._parts = parts
        self._left = self.batches = math.ceil(files / parts.files_per_batch)
        self._workers = workers
        self.events = _Events(cores)
        self._deaths, self._detection, self._disk = deaths, detection, disk
        self._random = random.Random(seed)
        self._window = AHEAD * workers
        # What waits: at the scheduler, for a worker, and for the client.
        self._mail: deque[str] = deque()
        self._ready = 0
        self._ended = 0
        self._done = 0
        self._idle_client: list[_Process] = []
        self._idle_scheduler: list[_Process] = []
        self._idle_workers: list[_Process] = []
        self.redone = 0
        self.finished = 0.0
        self.busy = {"client": 0.0, "scheduler": 0.0, "workers": 0.0}

    def run(self) -> None:
        self.events.start(self._client())
        self.events.start(self._scheduler())
        for _ in range(self._workers):
            self.events.start(self._worker())
        self.events.run()

    def _wake(self, idle: list[_Process]) -> None:
        if idle:
            self.events.start(idle.pop())

    def _client(self) -> _Process:
        parts, pending = self._parts, 0
        while True:
            while pending < self._window and self._left:
                self._left -= 1
                pending += 1
                yield from self._working("client", parts.listing * parts.files_per_batch)
                self._mail.append("batch")
                self._wake(self._idle_scheduler)
            if not pending:
                self.finished = self.events.now
                return
            while not self._ended:
                yield "await", self._idle_client
            ended, self._ended = self._ended, 0
            for _ in range(ended):
                pending -= 1
                self._done += 1
                yield from self._working("client", parts.client)

    def _scheduler(self) -> _Process:
        while True:
            while not self._mail:
                yield "await", self._idle_scheduler
            what = self._mail.popleft()
            # One half when it comes, and one when its result does.
            yield from self._working("scheduler", self._parts.scheduler / 2)
            if what == "batch":
                self._ready += 1
                self._wake(self._idle_workers)
            else:
                self._ended += 1
                self._wake(self._idle_client)

    def _worker(self) -> _Process:
        parts = self._parts
        fresh = True
        while True:
            while not self._ready:
                yield "await", self._idle_workers
            self._ready -= 1
            began = self.events.now
            factor = self._drawn()
            dies = self._random.random() < -math.expm1(-self._deaths * (parts.worker_cpu + parts.worker_wait) * factor)
            share = self._random.random() if dies else 1.0
            yield from _on_core((parts.startup if fresh else 0.0) + parts.worker_cpu * factor * share)
            yield "seconds", parts.worker_wait * factor * share * self._disk
            self.busy["workers"] += self.events.now - began
            fresh = dies
            if not dies:
                self._mail.append("result")
                self._wake(self._idle_scheduler)
                continue
            # Its successor comes when its death is noticed, and the batch is given to whoever is free.
            self.redone += 1
            yield "seconds", self._detection
            self._mail.append("batch")
            self._wake(self._idle_scheduler)

    def _working(self, who: str, seconds: float) -> _Process:
        began = self.events.now
        yield from _on_core(seconds)
        self.busy[who] += self.events.now - began

    def _drawn(self) -> float:
        """Return a factor of the time of a batch: of a log-normal distribution with the mean 1."""
        sigma = math.sqrt(math.log1p(self._parts.spread**2))
        return self._random.lognormvariate(-(sigma**2) / 2, sigma)


def simulate(
    parts: Parts,
    *,
    files: int,
    workers: int,
    cores: int | None = None,
    deaths: float = 0.0,
    detection: float = 30.0,
    disk: float = 1.0,
    seed: int = 0,
) -> Outcome:
    """Simulate a migration.

    Args:
        parts: What its parts take.
        files: The number of files.
        workers: The number of workers, each with one thread.
        cores: The cores that all processes share; ``None`` if each has its own.
        deaths: Deaths of a worker per second of its work.
        detection: Seconds until the death of a worker is noticed and another one is there.
        disk: How much longer a worker waits because the others use the same disk.
        seed: Of what is drawn.
    """
    simulation = _Simulation(parts, files, workers, cores, deaths, detection, disk, seed)
    simulation.run()
    seconds, busy = simulation.finished, simulation.busy
    return Outcome(
        seconds,
        simulation.batches,
        simulation.redone,
        busy["client"] / seconds,
        busy["scheduler"] / seconds,
        busy["workers"] / seconds / workers,
    )


def main() -> None:
    """Simulate what the command line says, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--parts",
        type=Path,
        required=True,
        metavar="FILE",
        help="parts, as `bench_cluster.py --parts` has written them",
    )
    parser.add_argument("--files", type=int, default=1_000_000, help="default 1000000")
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--cores", type=int, help="that all processes share; by default each has its own")
    parser.add_argument("--deaths", type=float, default=0.0, metavar="RATE", help="of a worker, per hour of its work")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    parts = Parts(**json.loads(given.parts.read_text()))
    print(f"{'workers':>8} {'s':>9} {'files/s':>9} {'redone':>7} {'client':>7} {'scheduler':>9} {'workers':>8}")
    for workers in given.workers:
        said = simulate(
            parts, files=given.files, workers=workers, cores=given.cores, deaths=given.deaths / 3600, seed=given.seed
        )
        print(
            f"{workers:>8} {said.seconds:>9.1f} {given.files / said.seconds:>9.0f} {said.redone:>7} "
            f"{said.client:>7.0%} {said.scheduler:>9.0%} {said.workers:>8.0%}"
        )


if __name__ == "__main__":
    main()
