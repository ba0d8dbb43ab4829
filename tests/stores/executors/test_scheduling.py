"""Batches worked through while processes die, by the script of a pretended executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.stores.scheduling import map_unordered

#: What becomes of a batch: it is done, its process dies, or the processes have died before it was begun.
DONE, DIES, REFUSED = "done", "dies", "refused"


class Pretended:
    """Does with each batch that it is given what comes next in its script, and all that follows well.

    Args:
        script: What becomes of the batches.
        window: How many may be under way.
    """

    isolates = False
    renewable = True

    def __init__(self, *script: str, window: int = 2) -> None:
        self.window = window
        self.begun: list[Sequence[str]] = []
        self.renewed = 0
        self._script = list(script)

    def submit(self, function: Callable[[Sequence[str]], Any], batch: Sequence[str]) -> Future[Any]:
        outcome = self._script.pop(0) if self._script else DONE
        if outcome == REFUSED:
            raise BrokenExecutor
        self.begun.append(batch)
        future: Future[Any] = Future()
        if outcome == DONE:
            future.set_result(function(batch))
        else:
            future.set_exception(BrokenExecutor())
        return future

    def renew(self) -> None:
        self.renewed += 1


def worked(workers: Any, *batches: str) -> list[tuple[str, str | None]]:
    """Return each item with what became of it, from batches of letters."""
    found = []
    for batch, results in map_unordered(workers, lambda batch: [each.upper() for each in batch], map(list, batches)):
        found += list(zip(batch, results if results is not None else [None] * len(batch), strict=True))
    return sorted(found)


def test_all_is_done_once_if_nothing_dies() -> None:
    workers = Pretended()
    assert worked(workers, "ab", "c", "de") == [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("e", "E")]
    assert (len(workers.begun), workers.renewed) == (3, 0)
    assert worked(Pretended()) == []


def test_what_was_under_way_is_tried_again_item_by_item() -> None:
    workers = Pretended(DIES, DONE)
    assert worked(workers, "ab", "c", "d") == [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]
    assert workers.begun == [["a", "b"], ["c"], ["a"], ["b"], ["d"]]
    assert workers.renewed == 1


def test_an_item_is_given_up_when_it_was_alone_at_two_deaths() -> None:
    # In its batch, and then alone twice.
    workers = Pretended(DIES, DONE, DIES, DIES)
    assert worked(workers, "ab", "c") == [("a", None), ("b", "B"), ("c", "C")]
    assert workers.begun.count(["a"]) == 2
    assert worked(Pretended(DIES, DIES), "ab") == [("a", "A"), ("b", "B")]
    assert worked(Pretended(DIES, DIES, window=1), "a") == [("a", None)]
    assert worked(Pretended(DIES, window=1), "a") == [("a", "A")]


def test_deaths_of_two_do_not_add_up() -> None:
    # Each of them alone at one death.
    workers = Pretended(DIES, DIES, DONE, DIES)
    assert worked(workers, "ab") == [("a", "A"), ("b", "B")]


def test_an_item_that_was_not_even_begun_has_done_no_harm() -> None:
    # What was under way ends well, and the next finds no process; its one death later is its first.
    workers = Pretended(DONE, REFUSED, DIES)
    assert worked(workers, "a", "b") == [("a", "A"), ("b", "B")]
    assert workers.begun == [["a"], ["b"], ["b"]]
    assert worked(Pretended(REFUSED, REFUSED, REFUSED), "a") == [("a", "A")]


def test_on_a_cluster_what_was_lost_is_retried_whatever_waits_for_it() -> None:
    workers: Any = Pretended(DIES, window=1)
    workers.isolates = True
    held: list[str] = []
    results = map_unordered(workers, lambda batch: list(batch), map(list, ["ab", "c"]), may_begin=lambda: "b" in held)
    held.extend(each for batch, _ in results for each in batch)
    assert held == ["a", "b", "c"]
    assert workers.begun == [["a", "b"], ["a"], ["b"], ["c"]]
    assert workers.renewed == 0


def test_no_batch_is_begun_while_none_may_be() -> None:
    workers: Any = Pretended(window=3)
    begun = []
    for batch, _ in map_unordered(
        workers, lambda batch: list(batch), ([each] for each in "abc"), may_begin=lambda: False
    ):
        begun.append((batch, len(workers.begun)))
    # One at a time, for otherwise the work would never end.
    assert begun == [(["a"], 1), (["b"], 2), (["c"], 3)]


def test_processes_of_somebody_else_are_not_renewed() -> None:
    workers = Pretended(DIES)
    workers.renewable = False
    with pytest.raises(vt.WorkerError, match="only the owner of the executor can restart it"):
        worked(workers, "a")
