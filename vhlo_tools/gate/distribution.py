"""Examinations by the processes of an executor, such as a cluster, which read the programs themselves.

This process only lists files, and takes the results. So it neither knows contents that an earlier run has examined, nor
notices that two programs are equal: to know that, it would have to read them all.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vhlo_tools.files import is_url
from vhlo_tools.gate.examination import Examination
from vhlo_tools.gate.examinations import crashed
from vhlo_tools.stores import Workers, in_batches, work_in_order

if TYPE_CHECKING:
    from vhlo_tools.gate.examination import Examiner, Task
    from vhlo_tools.gate.examinations import Request
    from vhlo_tools.stores import AnyExecutor


class DistributedExaminations:
    """Examines programs on an executor or the client of a Dask cluster, of which the caller remains the owner."""

    def __init__(self, examiner: Examiner, executor: AnyExecutor) -> None:
        self._examiner = examiner
        self._executor = executor
        self._found = 0
        # What was examined in this process, with its number.
        self._here: deque[tuple[int, Examination]] = deque()

    def of(self, requests: Iterable[Request]) -> Iterator[Examination]:
        with Workers(self._executor) as workers:
            tasks = in_batches(self._tasks(requests), workers, size_of=_size_of, found=lambda: self._found)
            for task, result in work_in_order(workers, self._examiner, tasks):
                yield from self._done_before(task.number)
                yield crashed(task.shown) if result is None else result
        yield from self._done_before(self._found)

    def _done_before(self, number: int) -> Iterator[Examination]:
        while self._here and self._here[0][0] < number:
            yield self._here.popleft()[1]

    def _tasks(self, requests: Iterable[Request]) -> Iterator[Task]:
        for number, request in enumerate(requests):
            self._found = number + 1
            if request.content.error is not None:
                self._here.append((number, Examination(error=request.content.error)))
            elif request.is_here:
                self._here += ((number, each) for each in self._examiner([request.task(number)]))
            else:
                yield _sent(request.task(number))


def _size_of(task: Task) -> int:
    return task.size if task.data is None else len(task.data)


def _sent(task: Task) -> Task:
    """Return a task that means the same in another folder."""
    if task.detached or is_url(task.path):
        return task
    return replace(task, path=os.path.abspath(task.path), name=task.shown)  # noqa: PTH100 - keeps links
