"""A migration from its beginning to its end: what there is to do, the work, and results put in their places."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from vhlo_tools.migration.discovery import Found, Stamp, found_at, hash_at
from vhlo_tools.migration.execution import work_through
from vhlo_tools.migration.journal import Journal, Task, remove_parts
from vhlo_tools.migration.record import MigrationRecord, Status
from vhlo_tools.migration.settings import Settings, Tools
from vhlo_tools.migration.work import CHANGED, Prepared, Work, backup_reason
from vhlo_tools.migration.workers import Workers

__all__ = ["Migration"]

# So many files or bytes go to a process at once.
_FILES: Final = 32
_BYTES: Final = 4 << 20
_FOUND_AT_ONCE: Final = 512

_DIED: Final = "the process that worked on it died: it may hold bytes that no reader survives, or need too much memory"


class Migration:
    """One migration.

    Args:
        settings: What it is asked to do.
        tools: What does it to one program.
        journal: Where it keeps what it knows, of which the migration makes use until it is closed.
    """

    def __init__(self, settings: Settings, tools: Tools, journal: Journal) -> None:
        self._settings = settings
        self._tools = tools
        self._journal = journal

    def find(self) -> Iterator[int]:
        """Find out what there is to do, and yield how many files were found every now and then.

        Raises:
            MigrationError: If one of the paths means no file.
        """
        for intent in self._journal.intents():
            self._settle(intent.task, intent.record)
        number = 0
        for found in _found_in_batches(found_at(self._settings)):
            self._journal.add(found)
            number += len(found)
            yield number
        for conflicts in self._journal.conflicts(force=self._settings.force):
            self._journal.finish((task, None, self._conflicting(task, other)) for task, other in conflicts)

    def totals(self) -> tuple[int, int]:
        """Return how many files there are to work on, and how many bytes they have."""
        return self._journal.totals()

    def records(self) -> Iterator[MigrationRecord]:
        """Yield what has become of all files so far, in this run or an earlier one, by their paths."""
        return self._journal.records()

    def plan(self, workers: Workers) -> Iterator[MigrationRecord]:
        """Yield what would become of each file, as it is found out."""
        yield from self._run(workers, dry=True)

    def execute(self, workers: Workers) -> Iterator[MigrationRecord]:
        """Bring each file to the target, and yield what has become of it."""
        yield from self._run(workers, dry=False)

    def _run(self, workers: Workers, *, dry: bool) -> Iterator[MigrationRecord]:
        work = Work(self._settings, self._tools, self._journal.key, self._journal.run, dry)
        files, _ = self._journal.totals()
        # Small stores are shared out too.
        most = max(1, min(_FILES, files // (workers.count * 4)))
        # What is written beside comes to what may have been moved before.
        for beside in (False, True):
            batches = _in_batches(self._journal.tasks(beside=beside), most)
            for tasks, results in work_through(workers, work, batches):
                died = [Prepared(self._unread(task, "failed", _DIED)) for task in tasks] if results is None else []
                yield from self._put(list(zip(tasks, results or died, strict=True)))

    def _put(self, batch: list[tuple[Task, Prepared]]) -> list[MigrationRecord]:
        """Put results in their places, and note that before and afterwards."""
        self._journal.intend((task, each.record) for task, each in batch if each.part)
        records = [self._replace(task, each) for task, each in batch]
        # What the journal says shall not be ahead of what the disk holds.
        for folder in {os.path.dirname(each.part) for _, each in batch if each.part}:  # noqa: PTH120
            _sync(folder)
        finished = list(zip((task for task, _ in batch), records, strict=True))
        self._journal.finish((task, self._stamp(task, record), record) for task, record in finished)
        return records

    def _replace(self, task: Task, prepared: Prepared) -> MigrationRecord:
        found, record, part = task.found, prepared.record, prepared.part
        if part is None:
            return record
        try:
            if Stamp.of(found.source) != found.stamp:
                return replace(record, status="changed", reason=CHANGED, backup=None)
            if record.backup:
                if reason := backup_reason(found.destination, record.backup):
                    return replace(record, status="blocked", reason=reason, backup=None)
                _keep(found.destination, record.backup)
            if record.output and not self._settings.force:
                # Fails if somebody has written there meanwhile.
                os.link(part, found.destination)
            else:
                Path(part).replace(found.destination)
        except OSError as error:
            reason = f"the result cannot be put in its place: {error.strerror or error}"
            return replace(record, status="failed", reason=reason, backup=None)
        finally:
            with suppress(OSError):
                Path(part).unlink(missing_ok=True)
        return record

    def _settle(self, task: Task, record: MigrationRecord) -> None:
        """Find out whether an earlier run had still replaced a file that it was about to replace."""
        with suppress(OSError):
            remove_parts(task, self._journal.key, self._journal.run)
        found = task.found
        digest = hash_at(found.destination)
        if digest is not None and digest == record.new_digest:
            self._journal.finish([(task, self._stamp(task, record), record)])
        elif found.source != found.destination or digest == record.digest:
            self._journal.plan_again([task])
        else:
            changed = replace(record, status="changed", reason=CHANGED, backup=None)
            self._journal.finish([(task, self._stamp(task, record), changed)])

    def _stamp(self, task: Task, record: MigrationRecord) -> Stamp | None:
        """Return what a file looks like that was replaced."""
        if record.status != "moved" or task.found.source != task.found.destination:
            return None
        with suppress(OSError):
            return Stamp.of(task.found.source)
        return None

    def _conflicting(self, task: Task, other: str) -> MigrationRecord:
        place = task.found.destination
        reason = f"its result would stand at {place}, and so would that of {other}: move them one by one"
        return self._unread(task, "blocked", reason)

    def _unread(self, task: Task, status: Status, reason: str) -> MigrationRecord:
        """Return what becomes of a file of which no more is known than a glance told."""
        found = task.found
        record = MigrationRecord(found.path, status, self._settings.target, found.kind, found.version, reason=reason)
        return replace(record, size=found.stamp.size if found.stamp else 0)


def _keep(path: str, backup: str) -> None:
    """Keep a file under another name as well; where there are no hard links, as a copy."""
    if os.path.lexists(backup):
        return  # since a run that was killed
    try:
        os.link(path, backup)
    except OSError:
        part = f"{backup}.part"
        shutil.copy2(path, part)
        Path(part).replace(backup)


def _sync(folder: str) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _found_in_batches(files: Iterator[Found]) -> Iterator[list[Found]]:
    while some := list(islice(files, _FOUND_AT_ONCE)):
        yield some


def _in_batches(tasks: Iterator[Task], most: int) -> Iterator[list[Task]]:
    """Yield tasks together, no more than ``most``, nor of many bytes."""
    batch: list[Task] = []
    size = 0
    for task in tasks:
        batch.append(task)
        size += task.found.stamp.size if task.found.stamp else 0
        if len(batch) >= most or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
