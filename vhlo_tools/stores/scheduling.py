"""Scheduling of many small batches on an executor, and an ordered map over batches that finish out of order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import field
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from vhlo_tools.errors import WorkerError
from vhlo_tools.records import dataclass
from vhlo_tools.stores.workers import Workers

# Batches of files, limited in number and in bytes: what a process gets, and loses, at once

_T = TypeVar("_T")

#: The most files of a batch.
LARGEST_BATCH: Final = 32
#: The bytes with which a batch is complete.
_BYTES: Final = 4 << 20
#: So many batches per process are made of a small number of files.
_SHARES: Final = 4


def in_batches(
    items: Iterable[_T], workers: Workers, *, size_of: Callable[[_T], int], found: Callable[[], int]
) -> Iterator[list[_T]]:
    """Yield items in batches; a small number of files is distributed over all processes too.

    ``found`` returns how many items were found so far, because items may come in while the first batches are worked on.
    """
    batch: list[_T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        most = max(1, min(LARGEST_BATCH, found() // (workers.count * _SHARES)))
        if len(batch) >= most or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def chunked(items: Iterator[_T], size: int) -> Iterator[list[_T]]:
    """As `itertools.batched` of Python 3.12."""
    while some := list(islice(items, size)):
        yield some


# Scheduling of many small batches on an executor: a bounded number in progress, and no loss if a process crashes

_R = TypeVar("_R")

#: Seconds of waiting for a batch until the caller is asked whether to go on.
_ASKED: Final = 1.0


def map_unordered(
    workers: Workers,
    function: Callable[[Sequence[_T]], Sequence[_R]],
    batches: Iterable[Sequence[_T]],
    *,
    lost: Callable[[Sequence[_T]], None] = lambda items: None,
    check: Callable[[], None] = lambda: None,
    may_begin: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Sequence[_T], Sequence[_R] | None]]:
    """Call ``function`` with every batch, and yield each batch with its results on completion.

    After a crash, the items in progress are retried one by one; one that crashes twice while alone has ``None``. A
    single crash may have another cause, such as a lack of memory. On a cluster only the items of the lost batch are
    retried, and one that is lost again once more, alone: it may only have been with a worker that another one crashed.
    ``lost`` gets the items of crashed processes; ``check`` is called every second without a completed batch.
    """
    yield from _Execution(workers, function, iter(batches), lost, check, may_begin).run()


@dataclass(slots=True, eq=False)
class _Execution(Generic[_T, _R]):
    _workers: Workers
    _function: Callable[[Sequence[_T]], Sequence[_R]]
    _batches: Iterator[Sequence[_T]]
    _lost: Callable[[Sequence[_T]], None]
    _check: Callable[[], None]
    _may_begin: Callable[[], bool]
    _pending: dict[Future[Sequence[_R]], Sequence[_T]] = field(default_factory=dict)
    _finished: SimpleQueue[Future[Sequence[_R]]] = field(default_factory=SimpleQueue)
    # Items in progress when a process crashed, each to be retried alone.
    _suspects: deque[Sequence[_T]] = field(default_factory=deque)
    # Items of batches that were lost on a cluster, to be retried beside other batches.
    _again: deque[Sequence[_T]] = field(default_factory=deque)
    # The suspect in progress, beside which nothing is.
    _alone: Sequence[_T] | None = None
    # The item that was alone in progress when a process crashed.
    _accused: Sequence[_T] | None = None

    def run(self) -> Iterator[tuple[Sequence[_T], Sequence[_R] | None]]:
        while True:
            lost = self._fill()
            if not self._pending and not lost and not self._suspects:
                return
            done = self._ended() if self._pending and not lost else deque()
            has_ended = bool(done)
            while done:
                # Results are not held longer than they are needed.
                future = done.popleft()
                batch = self._pending.pop(future)
                try:
                    results = future.result()
                except BrokenExecutor:
                    lost.append(batch)
                    continue
                del future
                yield batch, results
            if lost and self._workers.isolates:
                self._tell(lost)
                yield from ((batch, None) for batch in lost if batch is self._alone)
                self._suspects.extend(batch for batch in lost if len(batch) == 1 and batch is not self._alone)
                self._again.extend([item] for batch in lost if len(batch) > 1 for item in batch)
            elif lost:
                # A batch that was never submitted to a running process cannot have crashed it.
                alone = has_ended and len(lost) == 1 and len(lost[0]) == 1 and not self._pending
                yield from self._saved(lost)
                if not self._workers.renewable:
                    raise WorkerError(
                        "a process of the given executor crashed, and only the owner of the executor can restart it: "
                        "repeat the call with a new executor, by which a migration is resumed"
                    )
                self._workers.renew()
                self._tell(lost)
                if alone and lost[0] is self._accused:
                    yield lost[0], None
                elif alone:
                    self._accused = lost[0]
                    self._suspects.appendleft(lost[0])
                else:
                    self._suspects.extend([item] for batch in lost for item in batch)

    def _ended(self) -> deque[Future[Sequence[_R]]]:
        """Wait until a future in progress has ended, and return all that have."""
        ended = deque[Future[Sequence[_R]]]()
        while not ended:
            try:
                ended.append(self._finished.get(timeout=_ASKED))
            except Empty:
                self._check()
        while not self._finished.empty():
            ended.append(self._finished.get())
        # Those of processes that have crashed are no longer in progress.
        return deque(each for each in ended if each in self._pending)

    def _tell(self, lost: list[Sequence[_T]]) -> None:
        self._lost([item for batch in lost for item in batch])

    def _fill(self) -> list[Sequence[_T]]:
        """Return batches that could not be submitted because a process crashed."""
        if self._pending and (self._suspects or self._alone):
            return []
        # Alone, to identify the item that crashes its process.
        self._alone = self._suspects.popleft() if self._suspects else None
        if self._alone:
            return self._submit(self._alone)
        while len(self._pending) < self._workers.window and (batch := self._next()) is not None:
            if lost := self._submit(batch):
                return lost
        return []

    def _next(self) -> Sequence[_T] | None:
        if self._again:
            return self._again.popleft()
        return next(self._batches, None) if not self._pending or self._may_begin() else None

    def _submit(self, batch: Sequence[_T]) -> list[Sequence[_T]]:
        try:
            future = self._workers.submit(self._function, batch)
        except BrokenExecutor:
            return [batch]
        self._pending[future] = batch
        # Waiting for any of thousands of futures would take time for each.
        future.add_done_callback(self._finished.put)
        return []

    def _saved(self, lost: list[Sequence[_T]]) -> Iterator[tuple[Sequence[_T], Sequence[_R]]]:
        """Yield results of completed batches, and add the others to ``lost``."""
        for future, batch in self._pending.items():
            try:
                results = future.result()
            except BrokenExecutor:
                lost.append(batch)
                continue
            yield batch, results
        self._pending.clear()


# Ordered map over batches that finish out of order

#: So many results may wait for one before them, whatever the number of processes.
_WAITING: Final = 4096


def waiting_results(workers: Workers) -> int:
    """Return how many items may be in progress, or wait for one before them, so that memory is bounded.

    It is twice what processes have in progress: all others still have work if one batch takes long.
    """
    return max(_WAITING, 2 * workers.window * LARGEST_BATCH)


@dataclass(frozen=True, slots=True)
class _OfItems(Generic[_T, _R]):
    """Calls a function with items without their numbers, in any process."""

    function: Callable[[Sequence[_T]], Sequence[_R]]

    def __call__(self, batch: Sequence[tuple[int, _T]]) -> Sequence[_R]:
        return self.function([item for _, item in batch])


def map_ordered(
    workers: Workers, function: Callable[[Sequence[_T]], Sequence[_R]], batches: Iterable[Sequence[_T]]
) -> Iterator[tuple[_T, _R | None]]:
    """Call ``function`` with every batch, and yield each item with its result, in the order of the items.

    At most :func:`waiting_results` items are begun and not yielded, so memory does not grow while one takes long.
    ``None`` is the result of a crash, as in :func:`~vhlo_tools.stores.scheduling.work_through`.
    """
    limit = waiting_results(workers)
    done: dict[int, tuple[_T, _R | None]] = {}
    begun = yielded = 0

    def numbered() -> Iterator[list[tuple[int, _T]]]:
        nonlocal begun
        for batch in batches:
            some = list(enumerate(batch, begun))
            begun += len(some)
            yield some

    may_begin = lambda: begun - yielded < limit  # noqa: E731
    for batch, results in map_unordered(workers, _OfItems(function), numbered(), may_begin=may_begin):
        found: Sequence[_R | None] = [None] * len(batch) if results is None else results
        done.update((number, (item, result)) for (number, item), result in zip(batch, found, strict=True))
        while yielded in done:
            yield done.pop(yielded)
            yielded += 1
