"""Scheduling of many small batches on an executor: a bounded number in progress, and no loss if a process crashes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from vhlo_tools.errors import WorkerError
from vhlo_tools.executors.workers import Workers

_T = TypeVar("_T")
_R = TypeVar("_R")

#: Seconds of waiting for a batch until the caller is asked whether to go on.
_ASKED: Final = 1.0


def work_through(
    workers: Workers,
    function: Callable[[Sequence[_T]], Sequence[_R]],
    batches: Iterable[Sequence[_T]],
    *,
    lost: Callable[[Sequence[_T]], None] | None = None,
    check: Callable[[], None] = lambda: None,
    may_begin: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Sequence[_T], Sequence[_R] | None]]:
    """Call ``function`` with every batch, and yield each batch with its results on completion.

    After a crash, the items in progress are retried one by one; one that crashes twice while alone has ``None``. A
    single crash may have another cause, such as a lack of memory. On a cluster only the items of the lost batch are
    retried. ``lost`` gets the items of crashed processes; ``check`` is called every second without a completed batch.
    """
    yield from _Execution(workers, function, iter(batches), lost, check, may_begin).run()


class _Execution(Generic[_T, _R]):
    def __init__(
        self,
        workers: Workers,
        function: Callable[[Sequence[_T]], Sequence[_R]],
        batches: Iterator[Sequence[_T]],
        lost: Callable[[Sequence[_T]], None] | None,
        check: Callable[[], None],
        may_begin: Callable[[], bool],
    ) -> None:
        self._workers = workers
        self._check = check
        self._lost = lost
        self._may_begin = may_begin
        self._function = function
        self._batches = batches
        self._pending: dict[Future[Sequence[_R]], Sequence[_T]] = {}
        self._finished: SimpleQueue[Future[Sequence[_R]]] = SimpleQueue()
        # Items in progress when a process crashed, each to be retried alone.
        self._suspects: deque[Sequence[_T]] = deque()
        # Items of batches that were lost on a cluster, to be retried beside other batches.
        self._again: deque[Sequence[_T]] = deque()
        # The item that was alone in progress when a process crashed.
        self._accused: Sequence[_T] | None = None

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
                yield from self._divided(lost)
            elif lost:
                # A batch that was never submitted to a running process cannot have crashed it.
                alone = has_ended and len(lost) == 1 and len(lost[0]) == 1 and not self._pending
                yield from self._saved(lost)
                self._renew()
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

    def _divided(self, lost: list[Sequence[_T]]) -> Iterator[tuple[Sequence[_T], None]]:
        """Retry each item of lost batches alone; yield those that were alone already."""
        self._tell(lost)
        for batch in lost:
            if len(batch) == 1:
                yield batch, None
            else:
                self._again.extend([item] for item in batch)

    def _tell(self, lost: list[Sequence[_T]]) -> None:
        if self._lost is not None:
            self._lost([item for batch in lost for item in batch])

    def _fill(self) -> list[Sequence[_T]]:
        """Return batches that could not be submitted because a process crashed."""
        if self._suspects:
            # Alone, to identify the item that crashes its process.
            return [] if self._pending else self._submit(self._suspects.popleft())
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

    def _renew(self) -> None:
        if not self._workers.renewable:
            raise WorkerError(
                "a process of the given executor crashed, and only the owner of the executor can restart it: repeat "
                "the call with a new executor, by which a migration is resumed"
            )
        self._workers.renew()
