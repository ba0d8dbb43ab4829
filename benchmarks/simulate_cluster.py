"""A simulation of a migration on a cluster, event by event, from parts that were measured.

What is simulated: the client lists files, submits batches up to its window of three for each worker, and puts results
in place, one thing at a time. Each message passes through the event loops of the client, the scheduler and the worker,
each of which does one thing at a time. A worker has at most two batches, and does one, on a core and then waiting for
the disk; it may die, and its batch is done again. Where the processes share the cores of one machine, each process with
threads that can run has the same share of them, as Linux shares them, and divides it among these threads; each group of
other work has its share too.

`simulate_cluster.py --parts FILE --workers 100` simulates with what `bench_cluster.py --parts FILE` has measured.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import statistics
from collections import Counter, deque
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

#: The batches in progress for each worker, as vhlo_tools.stores.workers has them.
AHEAD: Final = 3
#: The batches that the scheduler gives a worker with one thread: its ``worker-saturation``, rounded up.
IN_HAND: Final = 2

_Process = Generator["tuple[str, Any]", None, None]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a migration take, in seconds."""

    files_per_batch: float  # the number of files in a batch
    listing: float  # of the client's processor, to list a file and note it in the journal
    client: float  # of the client's processor, to submit a batch, and to put its results in place
    client_wait: float  # what the client then waits for the disk, for a batch
    client_loop: float  # of the client's processor, for the messages of a batch
    scheduler: float  # of the scheduler's processor, for a batch
    worker_cpu: float  # of the processor of a worker, for a batch
    worker_wait: float  # what a worker waits for the disk, for a batch
    worker_loop: float  # of the processor of a worker, for the messages of a batch
    spread: float  # the standard deviation of the time of a batch, as a fraction of it
    startup: float = 0.0  # of the processor of a worker, before its first batch: imports

    @classmethod
    def median(cls, several: Iterable[Self]) -> Self:
        """Return the medians of several measurements."""
        parts = list(several)
        return cls(*(statistics.median(getattr(each, field.name) for each in parts) for field in fields(cls)))

    def as_json(self) -> dict[str, float]:
        """Return the parts as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that all processes share."""

    cores: int  # the number of its cores
    foreign: float = 0.0  # how many groups of other work have a core or wait for one, on average
    disk: float = 1.0  # how many times as long a worker waits for the disk because the others do
    processor: float = 1.0  # how many times as much of a processor a batch takes because the others use its caches
    is_grouped: bool = True  # whether a process is a group among which cores are shared, and not each of its threads


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated migration took."""

    seconds: float  # until the last file was in place
    batches: int  # the number of batches
    redone: int  # how many batches were begun again, because their workers had died
    client: float  # the fraction of the time in which the client was busy
    scheduler: float  # the fraction of the time in which the scheduler was busy
    workers: float  # the fraction of the time in which a worker was busy, on average


@dataclass(slots=True)
class _Running:
    """A process of the simulation that has a share of the cores."""

    left: float  # the seconds of a core that it still needs
    group: object  # the group to which it belongs
    process: _Process  # what goes on then


class _Cores:
    """Cores that groups share equally, and each group's threads its share, each at most one core."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._since = 0.0
        self._running: list[_Running] = []

    def add(self, now: float, seconds: float, group: object, process: _Process) -> None:
        """Begin a process."""
        self._set(now)
        self._running.append(_Running(seconds, group, process))

    def end(self, now: float) -> list[_Process]:
        """End the processes that have had what they need, and return them."""
        self._set(now)
        ended = [each.process for each in self._running if each.left <= 1e-9]
        self._running = [each for each in self._running if each.left > 1e-9]
        return ended

    def next_end(self) -> float:
        """Return when the next process ends if none is added until then."""
        ends = (each.left / rate for each, rate in zip(self._running, self._rates(), strict=True))
        return self._since + min(ends, default=math.inf)

    def _set(self, now: float) -> None:
        for each, rate in zip(self._running, self._rates(), strict=True):
            each.left -= (now - self._since) * rate
        self._since = now

    def _rates(self) -> list[float]:
        """Return the cores that each process has, in order."""
        grouped = self._machine.is_grouped
        threads = Counter(id(each.group if grouped else each) for each in self._running)
        share = self._machine.cores / max(1e-9, len(threads) + self._machine.foreign)
        return [min(1.0, share / threads[id(each.group if grouped else each)]) for each in self._running]


class _Events:
    """Processes that wait for time, for cores, and for each other.

    A process yields ``("seconds", number)``, ``("core", (seconds of it, group))`` or ``("await", where it is then
    found)``.
    """

    def __init__(self, machine: Machine | None) -> None:
        self.now = 0.0
        self._cores = _Cores(machine) if machine else None
        self._queue: list[tuple[float, int, _Process]] = []
        self._number = 0

    def start(self, process: _Process, after: float = 0.0) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + after, self._number, process))

    def run(self) -> None:
        while True:
            end = self._cores.next_end() if self._cores else math.inf
            at = self._queue[0][0] if self._queue else math.inf
            if at == end == math.inf:
                return
            self.now = min(at, end)
            for process in self._cores.end(self.now) if self._cores and end < at else [heapq.heappop(self._queue)[2]]:
                self._resume(process)

    def _resume(self, process: _Process) -> None:
        for what, given in process:
            if what == "await":
                given.append(process)
            elif what == "seconds":
                self.start(process, given)
            elif self._cores:
                seconds, group = given
                self._cores.add(self.now, seconds, group, process)
            else:
                self.start(process, given[0])
            return


class _Doer:
    """A thread, which does one thing at a time, in the order in which it is asked to."""

    def __init__(self, events: _Events, group: object) -> None:
        self._events = events
        self._group = group
        self._is_busy = False
        self._asking: deque[_Process] = deque()
        self.busy = 0.0

    def does(self, cpu: float, wait: float = 0.0, dead: float = 0.0) -> _Process:
        """Wait until it is free; then let it use a core, wait for something else, and be no more for a while."""
        while self._is_busy:
            yield "await", self._asking
        self._is_busy = True
        began = self._events.now
        yield "core", (cpu, self._group)
        if wait:
            yield "seconds", wait
        self.busy += self._events.now - began
        if dead:
            yield "seconds", dead
        self._is_busy = False
        if self._asking:
            self._events.start(self._asking.popleft())


class _Worker:
    def __init__(self, events: _Events) -> None:
        self.thread, self.loop = _Doer(events, self), _Doer(events, self)
        self.is_fresh = True


class _Simulation:
    def __init__(
        self,
        parts: Parts,
        files: int,
        workers: int,
        machine: Machine | None,
        deaths: float,
        detection: float,
        seed: int,
    ) -> None:
        self._parts = parts
        self._left = self.batches = math.ceil(files / parts.files_per_batch)
        self.events = _Events(machine)
        self._machine = machine
        self._deaths, self._detection = deaths, detection
        self._random = random.Random(seed)
        self._window = AHEAD * workers
        self.client, self._client_loop = _Doer(self.events, "client"), _Doer(self.events, "client")
        self.scheduler = _Doer(self.events, "scheduler")
        self.workers = [_Worker(self.events) for _ in range(workers)]
        # Places for a batch at workers: those of workers that have none come first.
        self._places = deque(self.workers * IN_HAND)
        self._unplaced: deque[_Process] = deque()
        self._ended = 0
        self._awaiting: list[_Process] = []
        self.redone = 0
        self.finished = 0.0

    def run(self) -> None:
        self.events.start(self._migration())
        self.events.run()

    def _migration(self) -> _Process:
        parts, pending = self._parts, 0
        while True:
            while pending < self._window and self._left:
                self._left -= 1
                pending += 1
                yield from self.client.does(parts.listing * parts.files_per_batch)
                self.events.start(self._batch())
            if not pending:
                self.finished = self.events.now
                return
            while not self._ended:
                yield "await", self._awaiting
            ended, self._ended = self._ended, 0
            for _ in range(ended):
                pending -= 1
                yield from self.client.does(parts.client, parts.client_wait)

    def _batch(self) -> _Process:
        """Go with a batch to a worker, and back with its results, which the client asks for when it hears of them."""
        message, passing = self._parts.client_loop / 3, self._parts.scheduler / 4
        yield from self._client_loop.does(message)
        while True:
            yield from self.scheduler.does(passing)
            while not self._places:
                yield "await", self._unplaced
            worker = self._places.popleft()
            # It imports what comes with its first batch.
            startup, worker.is_fresh = self._parts.startup if worker.is_fresh else 0.0, False
            yield from worker.loop.does(self._parts.worker_loop / 3 + startup)
            if (yield from self._worked(worker)):
                break
            # The batch is given to whoever is free.
            self.redone += 1
            self._vacate(worker)
        yield from worker.loop.does(self._parts.worker_loop / 3)
        yield from self.scheduler.does(passing)
        self._vacate(worker)
        yield from self._client_loop.does(message)
        yield from self.scheduler.does(passing)
        yield from worker.loop.does(self._parts.worker_loop / 3)
        yield from self.scheduler.does(passing)
        yield from self._client_loop.does(message)
        self._ended += 1
        if self._awaiting:
            self.events.start(self._awaiting.pop())

    def _vacate(self, worker: _Worker) -> None:
        self._places.append(worker)
        if self._unplaced:
            self.events.start(self._unplaced.popleft())

    def _worked(self, worker: _Worker) -> Generator[tuple[str, Any], None, bool]:
        """Do a batch on a worker; return whether it has lived to the end of it."""
        parts, factor = self._parts, self._drawn()
        cpu, wait = parts.worker_cpu * factor, parts.worker_wait * factor
        dies = self._random.random() < -math.expm1(-self._deaths * (cpu + wait))
        share = self._random.random() if dies else 1.0
        if self._machine is not None:
            wait *= self._machine.disk
            cpu *= self._machine.processor
        # Its successor comes when its death is noticed.
        yield from worker.thread.does(cpu * share, wait * share, self._detection if dies else 0.0)
        worker.is_fresh = dies
        return not dies

    def _drawn(self) -> float:
        """Return a factor of the time of a batch: of a log-normal distribution with the mean 1."""
        sigma = math.sqrt(math.log1p(self._parts.spread**2))
        return self._random.lognormvariate(-(sigma**2) / 2, sigma)


def simulate(
    parts: Parts,
    *,
    files: int,
    workers: int,
    machine: Machine | None = None,
    deaths: float = 0.0,
    detection: float = 30.0,
    seed: int = 0,
) -> Outcome:
    """Simulate a migration.

    Args:
        parts: What its parts take.
        files: The number of files.
        workers: The number of workers, each with one thread.
        machine: The machine that all processes share; ``None`` if each has its own.
        deaths: Deaths of a worker per second of its work.
        detection: Seconds until the death of a worker is noticed and another one is there.
        seed: Of what is drawn.
    """
    simulation = _Simulation(parts, files, workers, machine, deaths, detection, seed)
    simulation.run()
    seconds = simulation.finished
    return Outcome(
        seconds,
        simulation.batches,
        simulation.redone,
        simulation.client.busy / seconds,
        simulation.scheduler.busy / seconds,
        sum(each.thread.busy for each in simulation.workers) / seconds / workers,
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
    parser.add_argument("--deaths", type=float, default=0.0, metavar="RATE", help="of a worker, per hour of its work")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    parts = Parts(**json.loads(given.parts.read_text()))
    print(f"{'workers':>8} {'s':>9} {'files/s':>9} {'redone':>7} {'client':>7} {'scheduler':>9} {'workers':>8}")
    for workers in given.workers:
        said = simulate(parts, files=given.files, workers=workers, deaths=given.deaths / 3600, seed=given.seed)
        print(
            f"{workers:>8} {said.seconds:>9.1f} {given.files / said.seconds:>9.0f} {said.redone:>7} "
            f"{said.client:>7.0%} {said.scheduler:>9.0%} {said.workers:>8.0%}"
        )


if __name__ == "__main__":
    main()
