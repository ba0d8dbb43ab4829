"""Ordered map over batches that finish out of order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from vhlo_tools.executors.batches import LARGEST_BATCH
from vhlo_tools.executors.scheduling import work_through
from vhlo_tools.executors.workers import Workers
from vhlo_tools.records import dataclass

_T = TypeVar("_T")
_R = TypeVar("_R")

#: So many results may wait for one before them, whatever the number of processes.
_WAITING: Final = 4096


def waiting_results(workers: Workers) -> int:
    """Return how many items may be in progress, or wait for one before them, so that memory is bounded.

    It is twice what processes have in progress: all others still have work if one batch takes long.
    """
    return max(_WAITING, 2 * workers.window * LARGEST_BATCH)


@dataclass(frozen=True, slots=True)
class _Numbered(Generic[_T]):
    number: int
    item: _T


@dataclass(frozen=True, slots=True)
class _OfItems(Generic[_T, _R]):
    """Calls a function with items without their numbers, in any process."""

    function: Callable[[Sequence[_T]], Sequence[_R]]

    def __call__(self, batch: Sequence[_Numbered[_T]]) -> Sequence[_R]:
        return self.function([each.item for each in batch])


def work_in_order(
    workers: Workers, function: Callable[[Sequence[_T]], Sequence[_R]], batches: Iterable[Sequence[_T]]
) -> Iterator[tuple[_T, _R | None]]:
    """Call ``function`` with every batch, and yield each item with its result, in the order of the items.

    At most :func:`waiting_results` items are begun and not yielded, so memory does not grow while one takes long.
    ``None`` is the result of a crash, as in :func:`~vhlo_tools.executors.scheduling.work_through`.
    """
    limit = waiting_results(workers)
    done: dict[int, tuple[_T, _R | None]] = {}
    begun = yielded = 0

    def numbered() -> Iterator[list[_Numbered[_T]]]:
        nonlocal begun
        for batch in batches:
            some = [_Numbered(begun + place, item) for place, item in enumerate(batch)]
            begun += len(some)
            yield some

    may_begin = lambda: begun - yielded < limit  # noqa: E731
    for batch, results in work_through(workers, _OfItems(function), numbered(), may_begin=may_begin):
        found: Sequence[_R | None] = [None] * len(batch) if results is None else results
        done.update((each.number, (each.item, result)) for each, result in zip(batch, found, strict=True))
        while yielded in done:
            yield done.pop(yielded)
            yielded += 1
