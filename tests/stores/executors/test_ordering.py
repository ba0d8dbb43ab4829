"""Results in order, of batches that end in any order, with a bounded number that waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from vhlo_tools.stores import Workers, in_batches, map_ordered, scheduling as ordering, waiting_results


def doubled(batch: Sequence[int]) -> list[int]:
    return [2 * each for each in batch]


@pytest.mark.parametrize("jobs", [None, 2])
def test_results_come_in_the_order_of_the_items(jobs: int | None) -> None:
    with Workers(jobs=jobs) as workers:
        batches = in_batches(range(500), workers, size_of=lambda each: 1, found=lambda: 500)
        assert list(map_ordered(workers, doubled, batches)) == [(each, 2 * each) for each in range(500)]


def test_what_takes_long_holds_a_bounded_number_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_WAITING", 10)
    monkeypatch.setattr(ordering, "LARGEST_BATCH", 1)
    given: list[int] = []
    begun, may_end = threading.Semaphore(0), threading.Event()

    def worked(batch: Sequence[int]) -> list[int]:
        begun.release()
        if batch == [0]:
            assert may_end.wait(30)
        return doubled(batch)

    def batches() -> Iterator[list[int]]:
        for number in range(1000):
            given.append(number)
            yield [number]

    with ThreadPoolExecutor(4) as threads, Workers(threads) as workers:
        limit = waiting_results(workers)
        results = map_ordered(workers, worked, batches())
        found: list[object] = []
        taking = threading.Thread(target=lambda: found.extend(results))
        taking.start()
        for _ in range(limit):
            assert begun.acquire(timeout=30)
        # All others have been begun and, but for the first, have ended: nothing more is.
        assert not begun.acquire(timeout=0.3)
        assert (len(given), found) == (limit, [])
        may_end.set()
        taking.join(30)
    assert found == [(each, 2 * each) for each in range(1000)]


def test_batches_are_limited_in_number_and_in_bytes() -> None:
    with Workers(jobs=None) as workers:
        many = [len(each) for each in in_batches(range(100), workers, size_of=lambda each: 1, found=lambda: 10_000)]
        assert many == [32, 32, 32, 4]
        # A small store is distributed too.
        few = [len(each) for each in in_batches(range(8), workers, size_of=lambda each: 1, found=lambda: 8)]
        assert few == [2, 2, 2, 2]
        large = in_batches(range(5), workers, size_of=lambda each: 3 << 20, found=lambda: 10_000)
        assert [len(each) for each in large] == [2, 2, 1]
        assert list(in_batches([], workers, size_of=len, found=lambda: 0)) == []
