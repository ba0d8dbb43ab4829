"""A migration: finding files, processing them, and moving the results to their destinations."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import IO, Final

from vhlo_tools.files import (
    BACKUPS,
    MANIFEST_SUFFIX,
    Folder,
    is_url,
    list_backups,
    opened_folder,
    place_new,
    remove_manifest,
    write_in,
)
from vhlo_tools.stores.journal import Journal, Task
from vhlo_tools.stores.members import Stamp, hash_at
from vhlo_tools.stores.migration_files import found_at, remove_forsaken, remove_in, remove_parts
from vhlo_tools.stores.migration_records import MigrationRecord, Status
from vhlo_tools.stores.migration_settings import MigrationSettings, Tools
from vhlo_tools.stores.migration_work import CHANGED, PreparedFile, Work, backup_reason
from vhlo_tools.stores.scheduling import chunked, in_batches, map_unordered
from vhlo_tools.stores.workers import Workers
from vhlo_tools.system import keep_permissions

_FOUND_AT_ONCE: Final = 512

# Backups with this suffix are left out by their name alone.
_ORIGINAL: Final = ".orig"

_CRASHED: Final = "the process that migrated it crashed: the file may crash the reader, or need too much memory"


class Migration:
    """One migration. ``check`` is called often, and raises an error if the migration must not go on."""

    def __init__(
        self, settings: MigrationSettings, tools: Tools, journal: Journal, check: Callable[[], None] = lambda: None
    ) -> None:
        self._check = check
        self._settings = settings
        self._tools = tools
        self._journal = journal
        self.files: int = 0  # number of files to process that have been found so far
        self.size: int = 0  # in bytes, of the files found so far
        self.others: int = 0  # files of folders so far that are no programs
        self.is_listed: bool = False  # whether all files have been found
        # The folders of results.
        self._folders: set[str] = set()
        # The numbers of files in progress.
        self._begun: set[int] = set()

    def records(self) -> Iterator[MigrationRecord]:
        """Include the records of earlier runs; ordered by path."""
        return self._journal.records()

    def run(self, workers: Workers, *, dry: bool = False) -> Iterator[MigrationRecord]:
        """Yield records on completion; files are processed while others are being found.

        Files that an earlier run has finished are not processed again; their records come too. If ``dry``, nothing is
        written, and the records are those that files would get.
        """
        for task, record in self._journal.intents():
            yield from self._counted(self._settled(task, record))
        work = Work(self._settings, self._tools, self._journal.key, self._journal.run, dry)
        # Results beside other files come last, because their destinations may be files that are migrated in place.
        yield from self._worked(workers, work, self._listed())
        yield from self._worked(workers, work, self._journal.tasks(beside=False))
        yield from self._counted(self._journal.records(earlier=True))
        for conflicts in self._journal.conflicts(force=self._settings.force):
            records = []
            for task, other in conflicts:
                what = f"its result has the same path, {task.found.destination}, as that of {other}"
                records.append(self._unread(task, "blocked", f"{what}: migrate them separately"))
            self._journal.finish((task, None, record) for (task, _), record in zip(conflicts, records, strict=True))
            yield from records
        yield from self._worked(workers, work, self._journal.tasks(beside=True))
        if workers.isolates:
            # A cluster may do a batch twice: again, when the worker that had done it is lost with the answer.
            for folder in self._folders:
                remove_parts(folder, self._journal.key, self._journal.run)

    def _counted(self, records: Iterable[MigrationRecord]) -> Iterator[MigrationRecord]:
        for record in records:
            self.files += 1
            self.size += record.size
            yield record

    def _count_other(self, _: str) -> None:
        self.others += 1

    def _listed(self) -> Iterator[Task]:
        """Add the files of the store to the journal, and yield those to process in place, each once."""
        for found in chunked(found_at(self._settings, self._count_other), _FOUND_AT_ONCE):
            self._check()
            tasks = self._journal.add(found)
            self.files += len(tasks)
            self.size += sum(task.found.size for task in tasks)
            folders = {os.path.dirname(each.destination) for each in found} - self._folders  # noqa: PTH120
            self._folders |= folders
            if self._journal.path is not None:
                for folder in folders:
                    remove_forsaken(folder, self._journal.key, self._journal.run)
            # Several paths may lead to one file. One that is outside of the store by a link may be found inside later.
            begun = {
                task.number: task
                for task in tasks
                if task.found.source == task.found.destination
                and task.number not in self._begun
                and not self._journal.refuses(task)
            }
            self._begun |= begun.keys()
            yield from begun.values()
        self.is_listed = True

    def _worked(self, workers: Workers, work: Work, tasks: Iterator[Task]) -> Iterator[MigrationRecord]:
        batches = in_batches(tasks, workers, size_of=lambda task: task.found.size, found=lambda: self.files)
        for batch, results in map_unordered(workers, work, batches, lost=self._remove_parts, check=self._check):
            if results is None:
                results = [PreparedFile(self._unread(task, "failed", _CRASHED)) for task in batch]
            records = self._put(list(zip(batch, results, strict=True)))
            self._check()
            self._begun.difference_update(task.number for task in batch)
            yield from records

    def _put(self, batch: list[tuple[Task, PreparedFile]]) -> list[MigrationRecord]:
        """Move results to their destinations, with journal entries before and after."""
        self._journal.intend((task, each.record) for task, each in batch if each.part)
        batch = _with_backups_listed(batch)
        records = [self._replace(task, each) for task, each in batch]
        # The journal must not record renames that are not on disk yet.
        for folder in {os.path.dirname(each.part) for _, each in batch if each.part}:  # noqa: PTH120
            _sync(folder)
        stamped = [
            (task, each.stamp or self._stamp(task, record), None if record is each.record and each.part else record)
            for (task, each), record in zip(batch, records, strict=True)
        ]
        self._journal.finish(stamped)
        return records

    def _replace(self, task: Task, prepared: PreparedFile) -> MigrationRecord:
        record, part = prepared.record, prepared.part
        if part is None:
            return record
        try:
            refused = self._moved_in(task, record, part)
        except OSError as error:
            reason = f"the file cannot be replaced by the result: {error.strerror or error}"
            refused = replace(record, status="failed", reason=reason, backup=None)
        if refused is not None or record.output:
            remove_in(*os.path.split(part))
        if refused is None and prepared.manifest is not None:
            try:
                where, name = os.path.split(task.found.destination)
                with opened_folder(where) as folder:
                    write_in(folder, name + MANIFEST_SUFFIX, [prepared.manifest], force=True)
            except OSError as error:
                reason = f"its manifest cannot be written, and it has none: {error.strerror or error}"
                return replace(record, reason=reason)
        return refused or record

    def _moved_in(self, task: Task, record: MigrationRecord, part: str) -> MigrationRecord | None:
        """Return another record if the result must not be moved."""
        found = task.found
        if Stamp.of(found.source) != found.stamp:
            return replace(record, status="changed", reason=CHANGED, backup=None)
        where, name = os.path.split(found.destination)
        part = os.path.basename(part)  # noqa: PTH119
        with opened_folder(where) as folder:
            if record.backup:
                if reason := backup_reason(found.destination, record.backup):
                    return replace(record, status="blocked", reason=reason, backup=None)
                _keep(folder, name, os.path.basename(record.backup))  # noqa: PTH119
            # It describes the old file.
            remove_manifest(folder, name)
            if record.output and not self._settings.force:
                # Fails if another file has been created there in the meantime.
                place_new(folder, folder.at(part), name)
            else:
                os.replace(folder.at(part), folder.at(name), src_dir_fd=folder.handle, dst_dir_fd=folder.handle)
        return None

    def _settled(self, task: Task, record: MigrationRecord) -> list[MigrationRecord]:
        """Determine whether an earlier run had replaced a file before it was interrupted; return nothing to redo it."""
        if self._journal.refuses(task):
            self._journal.plan_again([task])
            return []
        self._remove_parts([task])
        digest = hash_at(task.found.destination)
        if digest is None or digest != record.new_digest:
            # Neither has another file that somebody has written there since been migrated.
            self._journal.plan_again([task])
            return []
        self._journal.finish([(task, self._stamp(task, record), record)])
        return [record]

    def _stamp(self, task: Task, record: MigrationRecord) -> Stamp | None:
        """Return the new stamp of a file that was replaced in place."""
        if record.status != "moved" or task.found.source != task.found.destination or is_url(task.found.source):
            return None
        with suppress(OSError):
            return Stamp.of(task.found.source)
        return None

    def _remove_parts(self, tasks: Sequence[Task]) -> None:
        """Remove the output of processes that crashed."""
        kept = [task for task in tasks if not self._journal.refuses(task)]
        numbers = {task.number for task in kept}
        for folder in {os.path.dirname(task.found.destination) for task in kept}:  # noqa: PTH120
            remove_parts(folder, self._journal.key, self._journal.run, numbers)

    def _unread(self, task: Task, status: Status, reason: str) -> MigrationRecord:
        """Return the record of a file that was not read, from the data found when listing it."""
        return replace(task.found.record(self._settings.target), status=status, reason=reason)


def _with_backups_listed(batch: list[tuple[Task, PreparedFile]]) -> list[tuple[Task, PreparedFile]]:
    """List the backups before they are made, because they are no programs; on failure nothing is replaced."""
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
    result = []
    for task, each in batch:
        reason = reasons.get(os.path.dirname(each.record.backup)) if each.record.backup else None  # noqa: PTH120
        if reason is None or each.part is None:
            result.append((task, each))
            continue
        remove_in(*os.path.split(each.part))
        result.append((task, PreparedFile(replace(each.record, status="failed", reason=reason, backup=None))))
    return result


def _keep(folder: Folder, name: str, backup: str) -> None:
    """Keep a file under another name as well; as a copy if hard links are not supported."""
    at = folder.handle
    try:
        os.link(folder.at(name), folder.at(backup), src_dir_fd=at, dst_dir_fd=at)
    except FileExistsError:
        return  # created by a run that was killed
    except OSError:
        # A name that is no program's, and that a later run removes if this one is killed.
        part = f".vhlo-{secrets.token_hex(4)}-0-0.part"
        with _opened_in(folder, name, "rb") as old, _opened_in(folder, part, "xb") as new:
            shutil.copyfileobj(old, new)
            status = os.fstat(old.fileno())
            keep_permissions(new.fileno(), status.st_mode & 0o7777)
        os.utime(folder.at(part), ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=at)
        os.replace(folder.at(part), folder.at(backup), src_dir_fd=at, dst_dir_fd=at)


def _opened_in(folder: Folder, name: str, mode: str) -> IO[bytes]:
    return open(folder.at(name), mode, opener=partial(os.open, mode=0o600, dir_fd=folder.handle))


def _sync(folder: str) -> None:
    with suppress(OSError), opened_folder(folder) as at:
        handle = os.open(at.at(os.curdir), os.O_RDONLY, dir_fd=at.handle)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
