"""A migration: finding files, processing them, and moving the results to their destinations."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from vhlo_tools.formats import BACKUPS, list_backups
from vhlo_tools.migration.file_record import MigrationRecord, Status
from vhlo_tools.migration.journal import Journal, Task, remove_forsaken, remove_parts
from vhlo_tools.migration.request import MigrationSettings, Tools
from vhlo_tools.migration.scheduling import work_through
from vhlo_tools.migration.store_files import FoundFile, Stamp, found_at, hash_at
from vhlo_tools.migration.work import CHANGED, PreparedFile, Work, backup_reason
from vhlo_tools.migration.workers import Workers

__all__ = ["Migration"]

# The limits of a batch, in files and bytes.
_FILES: Final = 32
_BYTES: Final = 4 << 20
_FOUND_AT_ONCE: Final = 512

# Backups with this suffix are left out by their name alone.
_ORIGINAL: Final = ".orig"

_CRASHED: Final = "the process that migrated it crashed: the file may crash the reader, or need too much memory"


class Migration:
    """One migration.

    Args:
        settings: The settings of the migration.
        tools: The operations on one program.
        journal: The journal, which must remain open during the migration.
    """

    def __init__(self, settings: MigrationSettings, tools: Tools, journal: Journal) -> None:
        self._settings = settings
        self._tools = tools
        self._journal = journal

    def find(self) -> Iterator[int]:
        """Find the files to migrate, and regularly yield the number of files found so far.

        Raises:
            MigrationError: If one of the paths matches no file.
        """
        for intent in self._journal.intents():
            self._settle(intent.task, intent.record)
        number = 0
        swept: set[str] = set()
        for found in _found_in_batches(found_at(self._settings)):
            self._journal.add(found)
            if self._journal.path is not None:
                folders = {os.path.dirname(each.destination) for each in found} - swept  # noqa: PTH120
                swept |= folders
                for folder in folders:
                    remove_forsaken(folder, self._journal.key, self._journal.run)
            number += len(found)
            yield number
        for conflicts in self._journal.conflicts(force=self._settings.force):
            self._journal.finish((task, None, self._conflicting(task, other)) for task, other in conflicts)

    def totals(self) -> tuple[int, int]:
        """Return the number and the total size in bytes of the files to process."""
        return self._journal.totals()

    def records(self) -> Iterator[MigrationRecord]:
        """Yield the records of all finished files, of this run or an earlier one, ordered by path."""
        return self._journal.records()

    def plan(self, workers: Workers) -> Iterator[MigrationRecord]:
        """Yield the record that each file would get, on completion."""
        yield from self._run(workers, dry=True)

    def execute(self, workers: Workers) -> Iterator[MigrationRecord]:
        """Migrate each file, and yield its record on completion."""
        yield from self._run(workers, dry=False)

    def _run(self, workers: Workers, *, dry: bool) -> Iterator[MigrationRecord]:
        work = Work(self._settings, self._tools, self._journal.key, self._journal.run, dry)
        files, _ = self._journal.totals()
        # Smaller batches distribute small stores over all processes too.
        most = max(1, min(_FILES, files // (workers.count * 4)))
        # Results beside other files come last, because their destinations may be files that are migrated in place.
        for beside in (False, True):
            batches = _in_batches(self._journal.tasks(beside=beside), most)
            for tasks, results in work_through(workers, work, batches):
                if results is None:
                    results = [self._crashed(task) for task in tasks]
                yield from self._put(list(zip(tasks, results, strict=True)))

    def _crashed(self, task: Task) -> PreparedFile:
        """Return the outcome for a file whose process crashed, and remove partial results."""
        if not self._journal.refuses(task):
            with suppress(OSError):
                remove_parts(task, self._journal.key, self._journal.run)
        return PreparedFile(self._unread(task, "failed", _CRASHED))

    def _put(self, batch: list[tuple[Task, PreparedFile]]) -> list[MigrationRecord]:
        """Move results to their destinations, with journal entries before and after."""
        self._journal.intend((task, each.record) for task, each in batch if each.part)
        batch = _with_backups_listed(batch)
        records = [self._replace(task, each) for task, each in batch]
        # The journal must not record renames that are not on disk yet.
        for folder in {os.path.dirname(each.part) for _, each in batch if each.part}:  # noqa: PTH120
            _sync(folder)
        finished = list(zip((task for task, _ in batch), records, strict=True))
        self._journal.finish((task, self._stamp(task, record), record) for task, record in finished)
        return records

    def _replace(self, task: Task, prepared: PreparedFile) -> MigrationRecord:
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
                # Fails if another file has been created there in the meantime.
                os.link(part, found.destination)
            else:
                Path(part).replace(found.destination)
        except OSError as error:
            reason = f"the file cannot be replaced by the result: {error.strerror or error}"
            return replace(record, status="failed", reason=reason, backup=None)
        finally:
            with suppress(OSError):
                Path(part).unlink(missing_ok=True)
        return record

    def _settle(self, task: Task, record: MigrationRecord) -> None:
        """Determine whether an earlier run had replaced a file before it was interrupted, and update the journal."""
        if self._journal.refuses(task):
            self._journal.plan_again([task])
            return
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
        """Return the new stamp of a file that was replaced in place."""
        if record.status != "moved" or task.found.source != task.found.destination:
            return None
        with suppress(OSError):
            return Stamp.of(task.found.source)
        return None

    def _conflicting(self, task: Task, other: str) -> MigrationRecord:
        place = task.found.destination
        reason = f"its result has the same path, {place}, as that of {other}: migrate them separately"
        return self._unread(task, "blocked", reason)

    def _unread(self, task: Task, status: Status, reason: str) -> MigrationRecord:
        """Return the record of a file that was not read, from the data found when listing it."""
        found = task.found
        record = MigrationRecord(found.path, status, self._settings.target, found.kind, found.version, reason=reason)
        return replace(record, size=found.stamp.size if found.stamp else 0)


def _with_backups_listed(batch: list[tuple[Task, PreparedFile]]) -> list[tuple[Task, PreparedFile]]:
    """List the backups that are about to be made, which are no programs; where that fails, nothing is replaced."""
    names: dict[str, list[str]] = {}
    for _, each in batch:
        backup = each.record.backup
        # One that is there was listed by the run that made it.
        if each.part and backup and not backup.endswith(_ORIGINAL) and not os.path.lexists(backup):
            folder, name = os.path.split(backup)
            names.setdefault(folder, []).append(name)
    reasons: dict[str, str] = {}
    for folder, listed in names.items():
        try:
            list_backups(folder, listed)
        except OSError as error:
            reasons[folder] = f"the list of backups, {BACKUPS}, cannot be written: {error.strerror or error}"
    return [(task, _failed(each, reasons)) for task, each in batch]


def _failed(prepared: PreparedFile, reasons: dict[str, str]) -> PreparedFile:
    """Return a file as failed, without its result, if its backup is in a folder with a reason."""
    record, part = prepared.record, prepared.part
    reason = reasons.get(os.path.dirname(record.backup)) if record.backup else None  # noqa: PTH120
    if reason is None or part is None:
        return prepared
    with suppress(OSError):
        Path(part).unlink(missing_ok=True)
    return PreparedFile(replace(record, status="failed", reason=reason, backup=None))


def _keep(path: str, backup: str) -> None:
    """Keep a file under another name as well; as a copy if hard links are not supported."""
    if os.path.lexists(backup):
        return  # created by a run that was killed
    try:
        os.link(path, backup)
    except OSError:
        # A name that is no program's, and that a later run removes if this one is killed.
        part = str(Path(backup).with_name(f".vhlo-{secrets.token_hex(4)}-0-0.part"))
        shutil.copy2(path, part)
        Path(part).replace(backup)


def _sync(folder: str) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _found_in_batches(files: Iterator[FoundFile]) -> Iterator[list[FoundFile]]:
    while some := list(islice(files, _FOUND_AT_ONCE)):
        yield some


def _in_batches(tasks: Iterator[Task], most: int) -> Iterator[list[Task]]:
    """Yield tasks in batches of at most ``most`` files, and of limited size in bytes."""
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
