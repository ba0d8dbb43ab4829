"""The work on one file, in whatever process: everything but the last step, which puts the result in its place.

A result is written under a name of its own beside where it shall stand. Whoever keeps the journal renames it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from vhlo_tools.artifact import Artifact, Buffer, JaxContainer, Kind, is_saved_model, read_bytes, recognise
from vhlo_tools.errors import (
    AliasError,
    DowngradeError,
    InvalidProgramError,
    MalformedArtifactError,
    UnsupportedFeatureError,
    VerificationError,
    VhloToolsError,
)
from vhlo_tools.files import joined, write_chunks
from vhlo_tools.mapping import slices
from vhlo_tools.migration.discovery import IN_PLACE, Stamp, hash_at
from vhlo_tools.migration.journal import Task, part_of, remove_parts
from vhlo_tools.migration.record import MigrationRecord, Status
from vhlo_tools.migration.settings import Settings, Tools
from vhlo_tools.version import Version

__all__ = ["CHANGED", "Prepared", "Work", "backup_reason"]

CHANGED: Final = "somebody else changed it while it was worked on: it was left as it is now"

# In a plan so many files at first, and one in so many later, are moved to see how long that takes.
_FIRST_SAMPLES = 16
_SAMPLED = 128

_Chunks = list[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file that was worked on.

    Attributes:
        record: What has become of it, or will have once the result is in its place.
        part: Where the result stands until then; ``None`` if there is none.
    """

    record: MigrationRecord
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Makes the results of files, and writes them beside where they shall stand.

    Attributes:
        settings: What the migration is asked to do.
        tools: What does it to one program.
        key: The word of the journal.
        run: The number of this run.
        dry: Whether only to find out what would come of it, and to write nothing.
    """

    settings: Settings
    tools: Tools
    key: str
    run: int
    dry: bool

    def __call__(self, tasks: Sequence[Task]) -> list[Prepared]:
        """Work on some files; nothing that is wrong with one stops the others."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> Prepared:
        started = time.perf_counter()
        found = task.found
        size = found.stamp.size if found.stamp else 0
        record = MigrationRecord(found.path, "unreadable", self.settings.target, found.kind, found.version, size)
        opened: tuple[Kind, Buffer] | None = None
        try:
            remove_parts(task, self.key, self.run)
            opened = _opened(found.source, found.path)
            if Stamp.of(found.source) != found.stamp:
                return Prepared(replace(record, status="changed", reason=CHANGED))
            kind, data = opened
            record = replace(record, kind=kind, size=len(data), digest=_digest([memoryview(data)]))
            before = _container(data, kind, found.path)
            record = replace(record, version=before.version if before else None)
            prepared = self._worked(task, record, data, kind, before)
        except Exception as error:  # whatever it is, the next file is none the worse
            return Prepared(_ended(record, error, reading=opened is None))
        if self.dry:
            return prepared
        return replace(prepared, record=replace(prepared.record, seconds=time.perf_counter() - started))

    def _worked(
        self, task: Task, record: MigrationRecord, data: Buffer, kind: Kind, before: Artifact | JaxContainer | None
    ) -> Prepared:
        found, settings = task.found, self.settings
        beside = found.destination != found.source
        chunks: _Chunks | None
        if before is not None and _is_at(before, settings.target):
            if not beside:
                return Prepared(replace(record, status="current"))
            chunks = [memoryview(data)]
        elif self.dry and not self._is_tried(task):
            chunks = None
            record = replace(record, findings=tuple(self.tools.blocking(data, kind, found.path, settings)))
            if any(each.level == "error" for each in record.findings):
                return Prepared(replace(record, status="blocked"))
        else:
            moved = self.tools.move(data, kind, found.path, settings)
            record = replace(record, findings=tuple(moved.findings))
            if self.dry:
                # The first time has paid for what is only loaded once.
                started = time.perf_counter()
                moved = self.tools.move(data, kind, found.path, settings)
                _write_nowhere(list(joined(moved.chunks)), Path(found.source).parent)
                record = replace(record, seconds=time.perf_counter() - started)
            if settings.verify and not self.dry:
                record = self._proven(record, kind, data, moved)
                if record.status in ("mismatch", "unverified"):
                    return Prepared(record)
            # There are thousands of small ones, each of which would be a call.
            chunks = list(joined(moved.chunks))
        if chunks is not None:
            record = replace(record, new_size=sum(map(len, chunks)), new_digest=_digest(chunks))
            there = hash_at(found.destination) if beside else record.digest
            if record.new_digest == there:
                return Prepared(replace(record, status="current", output=found.destination if beside else None))
        return self._placed(task, record, chunks, beside=beside)

    def _is_tried(self, task: Task) -> bool:
        """Tell whether a plan moves a file too: to see how long that takes, or whether it stands there already."""
        beside = task.found.destination != task.found.source
        sampled = task.number <= _FIRST_SAMPLES or task.number % _SAMPLED == 0
        return sampled or (beside and Path(task.found.destination).exists())

    def _proven(
        self, record: MigrationRecord, kind: Kind, data: Buffer, moved: Artifact | JaxContainer
    ) -> MigrationRecord:
        try:
            proof = self.tools.prove(kind, data, moved, record.path, self.settings)
        except VhloToolsError as error:
            return replace(record, status="unverified", reason=f"it cannot be verified: {error}")
        if proof.verdict == "other results":
            return replace(record, status="mismatch", reason=f"old and new give other results: {proof.reason}")
        if proof.verdict == "unknown":
            return replace(record, status="unverified", reason=f"it cannot be verified: {proof.reason}")
        return replace(record, verified=proof.verdict, reason=proof.reason)

    def _placed(self, task: Task, record: MigrationRecord, chunks: _Chunks | None, *, beside: bool) -> Prepared:
        """Write the result, unless something stands where it or the backup shall be."""
        found, suffix = task.found, self.settings.backup
        exists = os.path.lexists(found.destination)
        backup = found.destination + suffix if suffix and exists else None
        record = replace(record, output=found.destination if beside else None)
        if beside and exists and not self.settings.force:
            reason = f"{found.destination} exists and is something else: --force (force=True) replaces it"
            return Prepared(replace(record, status="blocked", reason=reason))
        if backup and (kept := backup_reason(found.destination, backup)):
            return Prepared(replace(record, status="blocked", reason=kept))
        record = replace(record, status="move" if self.dry else "moved", backup=backup)
        if self.dry or chunks is None:
            return Prepared(record)
        part = part_of(task, self.key, self.run)
        try:
            if beside:
                Path(part).parent.mkdir(parents=True, exist_ok=True)
            _write(part, chunks, Path(found.source).stat())
            if Stamp.of(found.source) != found.stamp:
                Path(part).unlink()
                return Prepared(replace(record, status="changed", reason=CHANGED, backup=None))
        except OSError as error:
            with suppress(OSError):
                Path(part).unlink(missing_ok=True)
            reason = f"the result cannot be written: {error.strerror or error}"
            return Prepared(replace(record, status="failed", reason=reason, backup=None))
        return Prepared(record, part)


def backup_reason(path: str, backup: str) -> str | None:
    """Return why an old file cannot be kept at ``backup``, if so: another stands there, which is never replaced."""
    if not os.path.lexists(backup):
        return None
    with suppress(OSError):
        if os.path.samefile(path, backup) or hash_at(path) == hash_at(backup):  # noqa: PTH121
            return None
    return f"the old file cannot be kept: {backup} exists and is another; remove it or choose another suffix"


def _opened(source: str, path: str) -> tuple[Kind, Buffer]:
    if is_saved_model(source):
        raise InvalidProgramError(f"{path} is a SavedModel: `vhlo serialize` makes an artifact of it")
    data = read_bytes(Path(source))
    return recognise(data, path), data


def _container(data: Buffer, kind: Kind, path: str) -> Artifact | JaxContainer | None:
    if kind not in IN_PLACE:
        return None
    return JaxContainer(data, name=path) if kind is Kind.JAX_EXPORT else Artifact(data, name=path)


def _is_at(container: Artifact | JaxContainer, target: Version) -> bool:
    """Tell whether all in a file is at the target, and not only its header says so."""
    artifacts = container.artifacts if isinstance(container, JaxContainer) else (container,)
    return all(each.version == target and each.requirements().contradiction is None for each in artifacts)


def _digest(chunks: Iterable[bytes | memoryview]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        for piece in slices(chunk):
            found.update(piece)
    return found.hexdigest()


def _write(part: str, chunks: _Chunks, like: os.stat_result) -> None:
    """Write a new file with the permissions, and where that may be the owner, of another."""
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_chunks(handle, chunks)
        with suppress(PermissionError):
            os.fchown(handle, like.st_uid, like.st_gid)
        # After the owner, whose change takes some permissions away.
        os.fchmod(handle, like.st_mode & 0o7777)
        # Or a power cut could take the old file and the new one.
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_nowhere(chunks: _Chunks, folder: Path) -> None:
    """Write a file without a name, of which nothing stays, to see how long it takes; as far as that is possible."""
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        _digest(chunks)
        write_chunks(file.fileno(), chunks)
        os.fsync(file.fileno())


def _ended(record: MigrationRecord, error: Exception, *, reading: bool) -> MigrationRecord:
    """Return what becomes of a file on which the work ended with an error."""
    status: Status = "failed"
    reason = str(error)
    if isinstance(error, AliasError | DowngradeError | UnsupportedFeatureError):
        return replace(record, status="blocked", reason=error.summary, findings=tuple(error.findings))
    if isinstance(error, MalformedArtifactError | InvalidProgramError):
        status = "unreadable"
    elif isinstance(error, OSError):
        status = "unreadable" if reading else "failed"
        reason = error.strerror or str(error)
    elif isinstance(error, MemoryError):
        reason = "there is not enough memory for it"
    elif not isinstance(error, VhloToolsError | VerificationError):
        reason = f"an error of this package, which should be reported: {type(error).__name__}: {error}"
    return replace(record, status=status, reason=reason)
