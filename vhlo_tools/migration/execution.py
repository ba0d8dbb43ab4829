"""Many small pieces of work over an executor: a bounded number under way, and none lost with a process that dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Generic, TypeVar

from vhlo_tools.errors import MigrationError
from vhlo_tools.migration.workers import Workers

__all__ = ["work_through"]

_T = TypeVar("_T")
_R = TypeVar("_R")


def work_through(
    workers: Workers, function: Callable[[Sequence[_T]], Sequence[_R]], batches: Iterable[Sequence[_T]]
) -> Iterator[tuple[Sequence[_T], Sequence[_R] | None]]:
    """Call ``function`` with every batch, and yield each batch with its results as they come.

    If a process dies, what was under way is tried again, item by item: one that was alone at two deaths is yielded
    alone, with ``None``. Of a single one, something else may be the cause, such as the system's want of memory.

    Raises:
        MigrationError: If the processes die and cannot be replaced.
    """
    yield from _Execution(workers, function, iter(batches)).run()


class _Execution(Generic[_T, _R]):
    def __init__(
        self, workers: Workers, function: Callable[[Sequence[_T]], Sequence[_R]], batches: Iterator[Sequence[_T]]
    ) -> None:
        self._workers = workers
        self._function = function
        self._batches = batches
        self._pending: dict[Future[Sequence[_R]], Sequence[_T]] = {}
        # What was under way when a process died, item by item.
        self._suspects: deque[Sequence[_T]] = deque()
        # What was alone under way when a process died.
        self._accused: Sequence[_T] | None = None

    def run(self) -> Iterator[tuple[Sequence[_T], Sequence[_R] | None]]:
        while True:
            lost = self._fill()
            if not self._pending and not lost and not self._suspects:
                return
            done = wait(self._pending, return_when=FIRST_COMPLETED).done if self._pending and not lost else set()
            for future in done:
                batch = self._pending.pop(future)
                try:
                    results = future.result()
                except BrokenExecutor:
                    lost.append(batch)
                    continue
                yield batch, results
            if lost:
                # One that was not even begun has done no harm.
                alone = bool(done) and len(lost) == 1 and len(lost[0]) == 1 and not self._pending
                yield from self._saved(lost)
                self._renew()
                if alone and lost[0] is self._accused:
                    yield lost[0], None
                elif alone:
                    self._accused = lost[0]
                    self._suspects.appendleft(lost[0])
                else:
                    self._suspects.extend([item] for batch in lost for item in batch)

    def _fill(self) -> list[Sequence[_T]]:
        """Have as much under way as may be, and return what could not be because a process has died."""
        if self._suspects:
            # Alone, so that it is known which one ends its process.
            return [] if self._pending else self._submit(self._suspects.popleft())
        while len(self._pending) < self._workers.window and (batch := next(self._batches, None)) is not None:
            if lost := self._submit(batch):
                return lost
        return []

    def _submit(self, batch: Sequence[_T]) -> list[Sequence[_T]]:
        try:
            self._pending[self._workers.submit(self._function, batch)] = batch
        except BrokenExecutor:
            return [batch]
        return []

    def _saved(self, lost: list[Sequence[_T]]) -> Iterator[tuple[Sequence[_T], Sequence[_R]]]:
        """Yield what had ended well among all that was under way, and add the rest to ``lost``."""
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
            raise MigrationError(
                "a process of the executor that was given has died, and only its owner can start it again; "
                "the same call with a new executor goes on from here"
            )
        self._workers.renew()
