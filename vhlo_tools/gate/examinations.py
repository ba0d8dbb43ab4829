"""Examination of many files, in this process or in workers."""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools.files import is_url
from vhlo_tools.gate.examination import Examination, Examiner, Task
from vhlo_tools.gate.findings_cache import FindingsCache, context_digest
from vhlo_tools.stores import AnyExecutor, Workers, in_batches, map_ordered, map_unordered, waiting_results

if TYPE_CHECKING:
    from vhlo_tools.gate.report_model import Question

# Examinations of many programs: from the cache, in this process or in several, always in the order of the programs

# Two processes take about 0.5 s of CPU to start. Until one process has worked for _TRIED seconds, nothing is known
# about the programs; where they leave less than _WORTH seconds of work, processes would not finish sooner.
_TRIED: Final = 0.5
_WORTH: Final = 2.0
#: So many seconds of work are sent to a process at once, and at most so many programs.
_BATCH: Final = 0.05
_LONGEST: Final = 64


class Known:
    """Examinations of this run and of earlier ones, by all that they depend on."""

    def __init__(self, examiner: Examiner, cache: FindingsCache | None) -> None:
        self._examiner = examiner
        self._cache = cache
        self._contexts: dict[tuple[tuple[Question, ...], bool], bytes] = {}

    def of(self, request: Task) -> Examination | None:
        content = request.content
        if content.error is not None:
            return Examination(error=content.error)
        if self._cache is None:
            return None
        context, number = self.context(request), len(request.questions)
        if content.digest is not None:
            return self._cache.get(context, content.digest, request.name, number)
        if content.identity is not None:
            return self._cache.get_version(context, content.identity, request.name, number)
        return None

    def keep(self, request: Task, examination: Examination) -> None:
        if self._cache is not None:
            self._cache.put(self.context(request), request.name, examination)

    def context(self, request: Task) -> bytes:
        key = request.questions, request.with_facts
        known = self._contexts.get(key)
        if known is None:
            questions, facts = key
            known = self._contexts[key] = context_digest(self._examiner, questions, facts=facts)
        return known


class Examinations:
    """Examines many programs; equal ones once. Processes are started only where they save time."""

    def __init__(self, examiner: Examiner, cache: FindingsCache, *, jobs: int = 1) -> None:
        self._examiner = examiner
        self._known = Known(examiner, cache)
        self._jobs = jobs
        # The time that this process has worked, and on how many programs.
        self._spent = 0.0
        self._worked = 0

    def of(self, requests: Iterable[Task], total: int) -> Iterator[Examination]:
        left = iter(requests)
        for number, request in enumerate(left, 1):
            yield self._known.of(request) or self._examined(request)
            if self._saves_time(number, total):
                yield from self._in_processes(left)
                return

    def _saves_time(self, done: int, total: int) -> bool:
        if self._jobs == 1 or not self._worked or self._spent < _TRIED:
            return False
        return self._spent / done * (total - done) >= _WORTH

    def _examined(self, request: Task) -> Examination:
        started = time.perf_counter()
        (examination,) = self._examiner([request])
        self._spent += time.perf_counter() - started
        self._worked += 1
        self._known.keep(request, examination)
        return examination

    def _in_processes(self, requests: Iterator[Task]) -> Iterator[Examination]:
        with Workers(jobs=self._jobs) as workers:
            line = _Line(waiting_results(workers))
            batches = self._batches(requests, line)
            for batch, results in map_unordered(workers, self._examiner, batches, may_begin=line.has_room):
                found: Sequence[Examination | None] = results or [None] * len(batch)
                for task, result in zip(batch, found, strict=True):
                    self._take(line, task.number, result)
                yield from line.ready()
        yield from line.ready()

    def _take(self, line: _Line, number: int, result: Examination | None) -> None:
        """Record a result, also for equal programs; ``None`` is that of a process that crashed."""
        request = line.requests[number]
        equal = line.equal.pop((self._known.context(request), request.content.digest), [])[1:]
        if result is None:
            # Nor must an equal program be examined in this process.
            for each in (number, *equal):
                line.put(each, crashed(line.requests[each].name))
            return
        self._known.keep(request, result)
        line.put(number, result)
        for each in equal:
            # One that names the program is of no use for the others.
            other = line.requests[each]
            line.put(each, self._known.of(other) or self._examined(other))

    def _batches(self, requests: Iterator[Task], line: _Line) -> Iterator[list[Task]]:
        """Yield what is to be examined; what is known goes into the line directly."""
        size = min(max(int(_BATCH * self._worked / self._spent), 1), _LONGEST)
        batch: list[Task] = []
        for request in requests:
            if not line.has_room():
                # What is known needs no batch: an empty one lets the line move on.
                yield batch
                batch = []
            number = line.add(request)
            known = self._known.of(request)
            if known is not None:
                line.put(number, known)
                continue
            if request.content.digest is not None:
                equal = line.equal.setdefault((self._known.context(request), request.content.digest), [])
                equal.append(number)
                if len(equal) > 1:
                    continue
            # Reading a file again takes less time than sending it to another process.
            batch.append(replace(line.requests[number], number=number))
            if len(batch) == size:
                yield batch
                batch = []
        if batch:
            yield batch


class _Line:
    """Queue of programs that wait for those before them; ``limit`` is their number at which no more should be added."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: The programs whose examination has not been yielded, by number.
        self.requests: dict[int, Task] = {}
        #: The numbers of programs with the same context and digest, of which the first is being examined.
        self.equal: defaultdict[tuple[bytes, bytes | None], list[int]] = defaultdict(list)
        self._done: dict[int, Examination] = {}
        self._added = self._next = 0

    def has_room(self) -> bool:
        return len(self.requests) < self._limit

    def add(self, request: Task) -> int:
        number = self._added
        # Of a file, the bytes can be read again.
        kept = request.content if request.content.detached else replace(request.content, data=None)
        self.requests[number] = replace(request, content=kept)
        self._added += 1
        return number

    def put(self, number: int, examination: Examination) -> None:
        self._done[number] = examination

    def ready(self) -> Iterator[Examination]:
        while self._next in self._done:
            del self.requests[self._next]
            yield self._done.pop(self._next)
            self._next += 1


def crashed(name: str) -> Examination:
    return Examination(
        error=f"{name}: the process that checked it crashed, twice and while it checked nothing else: it may be "
        f"damaged, or need more memory than there is; `vhlo inspect` reads it without MLIR"
    )


# Examinations by the processes of an executor, such as a cluster, which read the programs themselves
#
# This process only lists files, and takes the results. It knows the versions of files and objects that an earlier run
# has examined, and does not notice that two programs are equal: to know that, it would have to read them all.


class DistributedExaminations:
    """Examines programs on an executor or the client of a Dask cluster, of which the caller remains the owner."""

    def __init__(self, examiner: Examiner, executor: AnyExecutor, cache: FindingsCache | None = None) -> None:
        self._examiner = examiner
        self._known = Known(examiner, cache)
        self._executor = executor
        self._found = 0
        # What was examined in this process, with its number.
        self._here: deque[tuple[int, Examination]] = deque()

    def of(self, requests: Iterable[Task]) -> Iterator[Examination]:
        with Workers(self._executor) as workers:
            tasks = in_batches(self._tasks(requests), workers, size_of=_size_of, found=lambda: self._found)
            for task, result in map_ordered(workers, self._examiner, tasks):
                yield from self._done_before(task.number)
                if result is not None:
                    self._known.keep(task, result)
                yield crashed(task.name) if result is None else result
        yield from self._done_before(self._found)

    def _done_before(self, number: int) -> Iterator[Examination]:
        while self._here and self._here[0][0] < number:
            yield self._here.popleft()[1]

    def _tasks(self, requests: Iterable[Task]) -> Iterator[Task]:
        for number, request in enumerate(requests):
            self._found = number + 1
            if known := self._known.of(request):
                self._here.append((number, known))
            elif request.is_here:
                self._here += ((number, each) for each in self._examiner([request]))
            else:
                content = request.content
                if not content.detached and not is_url(content.path):
                    # What means the same in another folder.
                    content = replace(content, path=os.path.abspath(content.path))  # noqa: PTH100 - keeps links
                yield replace(request, content=content, number=number)


def _size_of(task: Task) -> int:
    return task.content.size if task.content.data is None else len(task.content.data)
