"""Processing of one file, in any process, up to but not including the final rename.

A result is written under a temporary name beside its destination. The process with the journal renames it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact import (
    Artifact,
    JaxContainer,
    Making,
    Manifest,
    container_findings,
    find_manifest,
    manifest_finding,
    non_default_options,
)
from vhlo_tools.errors import (
    AliasError,
    DowngradeError,
    InvalidProgramError,
    MalformedArtifactError,
    ObjectChangedError,
    UnsupportedFeatureError,
    VerificationError,
)
from vhlo_tools.files import (
    Buffer,
    Chunk,
    Folder,
    Kind,
    is_saved_model,
    is_url,
    join,
    joined,
    opened_folder,
    read_bytes,
    recognise,
    slices,
    view,
    write_chunks,
)
from vhlo_tools.records import dataclass
from vhlo_tools.stores.journal import Task
from vhlo_tools.stores.members import Stamp, hash_at, object_url
from vhlo_tools.stores.migration_files import FoundFile, part_path
from vhlo_tools.stores.migration_records import (
    BEFORE,
    MIGRATION,
    MigrationRecord,
    ObjectResult,
    Status,
    digest_before,
    digest_of_source,
    keep_object,
)
from vhlo_tools.stores.migration_settings import MigrationSettings, StoredProgram, Tools
from vhlo_tools.system import BINARY, keep_permissions
from vhlo_tools.version import Version, VhloToolsError

if TYPE_CHECKING:
    from vhlo_tools.files import Stamp as ObjectStamp

CHANGED: Final = "the file was changed by another process during the migration and was not replaced"

# A plan converts the first files, and one in so many of the others, to measure the time.
_FIRST_SAMPLES = 16
_SAMPLED = 128

_Chunks = list[Chunk]


@dataclass(frozen=True, slots=True)
class PreparedFile:
    record: MigrationRecord  # with ``part``, it applies once the result is at its destination
    part: str | None = None  # temporary path of the result, if there is one
    stamp: Stamp | None = None  # of an object that was replaced already, because a store writes atomically
    manifest: bytes | None = None  # contents for the result; None if the old file has none


@dataclass(frozen=True, slots=True)
class Work:
    """Processes files, and writes the results beside their destinations."""

    settings: MigrationSettings
    tools: Tools
    key: str
    run: int
    dry: bool  # determine the outcome only, and write nothing

    def __call__(self, tasks: Sequence[Task]) -> list[PreparedFile]:
        """Process files; an error in one does not affect the others."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> PreparedFile:
        started = time.perf_counter()
        found = task.found
        record = found.record(self.settings.target)
        if found.is_link:
            record = replace(record, leads_to=found.source)
        if found.is_outside and not self.settings.follow_outside:
            reason = (
                f"a link leads to {found.destination}, outside of what is migrated: --follow-outside "
                f"(follow_outside=True) writes there too, and --no-follow (follow=False) leaves links out"
            )
            return PreparedFile(replace(record, status="blocked", reason=reason))
        reading = True
        try:
            kind, data, there = _read(found.source, found.path)
            reading = False
            is_other = (Stamp.of_object(there) if there else Stamp.of(found.source)) != found.stamp
            if is_other and not (there and digest_before(found.source, there, self.key)):
                return PreparedFile(replace(record, status="changed", reason=CHANGED))
            record = replace(record, kind=kind, size=len(data), digest=_digest([view(data)]))
            # What was changed unnoticed must not become what a new manifest describes.
            digest = bytes.fromhex(record.digest or "")
            if not is_url(found.source) and (differs := manifest_finding(found.source, digest)) is not None:
                return PreparedFile(replace(record, reason=differs.message))
            before = StoredProgram.of(found.path, kind, data, there)
            # An object may have been moved since it was listed: by a worker that was lost with the answer.
            if is_other and not _is_at(before, self.settings.target):
                return PreparedFile(replace(record, status="changed", reason=CHANGED))
            version = before.opened.version if before.opened is not None else None
            if version != record.version:
                record = replace(record, version=version)
            prepared = self._worked(task, record, before)
        except Exception as error:  # an error in one file must not stop the others
            return PreparedFile(_ended(record, error, reading=reading))
        if self.dry:
            return prepared
        return replace(prepared, record=replace(prepared.record, seconds=time.perf_counter() - started))

    def _worked(self, task: Task, record: MigrationRecord, before: StoredProgram) -> PreparedFile:
        found, settings, opened = task.found, self.settings, before.opened
        beside = found.destination != found.source
        if isinstance(opened, JaxContainer) and (refused := container_findings(opened.export, settings.consumers)):
            reason = "the target cannot read the jax.export file, whatever the version of its artifact"
            return PreparedFile(replace(record, status="blocked", findings=tuple(refused), reason=reason))
        chunks: _Chunks | None
        is_at_target = opened is not None and _is_at(before, settings.target)
        if is_at_target and (blocked := self._unconfirmed(record, before.artifacts)):
            return blocked
        if opened is not None and is_at_target:
            if not beside:
                return PreparedFile(self._moved_before(record, before, found.destination))
            chunks = [view(before.data)]
        elif self.dry and not self._is_tried(task):
            chunks = None
            record = replace(record, findings=tuple(self.tools.blocking(before, settings)))
            if any(each.level == "error" for each in record.findings):
                return PreparedFile(replace(record, status="blocked"))
        else:
            moved = self.tools.move(before, settings)
            if moved.findings:
                record = replace(record, findings=tuple(moved.findings))
            if self.dry:
                # The first call includes the time of imports and other initialization.
                started = time.perf_counter()
                moved = self.tools.move(before, settings)
                _write_nowhere(list(joined(moved.chunks)), found.source)
                record = replace(record, seconds=time.perf_counter() - started)
            if blocked := self._unconfirmed(record, moved.artifacts if isinstance(moved, JaxContainer) else [moved]):
                return blocked
            if settings.verify and not self.dry:
                record = self._proven(record, before, moved)
                if record.status in ("mismatch", "unverified"):
                    return PreparedFile(record)
            # Small chunks are joined: an artifact may have thousands, and each would be a system call.
            chunks = list(joined(moved.chunks))
        if is_url(found.destination):
            return self._stored(record, before, found, chunks, beside=beside)
        if chunks is not None:
            record = replace(record, new_size=sum(map(len, chunks)), new_digest=_digest(chunks))
            there = hash_at(found.destination) if beside else record.digest
            if record.new_digest == there:
                return PreparedFile(replace(record, status="current", output=found.destination if beside else None))
        return self._placed(task, record, chunks, beside=beside)

    def _unconfirmed(self, record: MigrationRecord, artifacts: Sequence[Artifact]) -> PreparedFile | None:
        """Return a blocked file if a real release that must read it does not."""
        if not self.settings.confirm_with or not (found := self.tools.refused(artifacts, self.settings)):
            return None
        reason = "a real release does not read it at the target"
        return PreparedFile(replace(record, status="blocked", findings=(*record.findings, *found), reason=reason))

    def _moved_before(self, record: MigrationRecord, before: StoredProgram, destination: str) -> MigrationRecord:
        """Return the record of a program at the target: an object names the migration that moved it before."""
        was = digest_before(before.name, before.version, self.key) if before.version else None
        if was is None:
            return replace(record, status="current")
        suffix = self.settings.backup
        record = replace(record, status="moved", backup=destination + suffix if suffix else None)
        return replace(record, digest=was, new_size=record.size, new_digest=record.digest)

    def _stored(
        self, record: MigrationRecord, before: StoredProgram, found: FoundFile, chunks: _Chunks | None, *, beside: bool
    ) -> PreparedFile:
        """Write the result as an object, which the store does atomically."""
        record = replace(record, status="move" if self.dry else "moved", output=found.destination if beside else None)
        result = ObjectResult(found.destination, chunks or (), {MIGRATION: self.key, BEFORE: record.digest or ""})
        if self.dry or chunks is None:
            is_there = beside and not self.settings.force and _exists(found.destination)
            return PreparedFile(self._refused(record, found.destination, result) if is_there else record)
        try:
            if before.version is not None and not beside:
                record = replace(record, old_version=before.version.version_id)
                if self.settings.backup:
                    record = replace(record, backup=found.destination + self.settings.backup)
                    keep_object(record.backup or "", before.data)
            stamp = result.write(None if beside else before.version, force=self.settings.force)
        except ObjectChangedError:
            if self._is_written(record, found.destination, result):
                return PreparedFile(replace(record, new_size=result.size, new_digest=result.digest))
            return PreparedFile(replace(record, status="changed", reason=CHANGED, backup=None, old_version=None))
        except FileExistsError as error:
            return PreparedFile(self._refused(record, str(error.filename), result))
        return PreparedFile(replace(record, new_size=result.size, new_digest=result.digest), stamp=stamp)

    def _refused(self, record: MigrationRecord, there: str, result: ObjectResult) -> MigrationRecord:
        """Return the record of a file whose result, or backup, has the URL of an existing object."""
        if there == record.output and record.status == "moved" and self._is_written(record, there, result):
            return replace(record, new_size=result.size, new_digest=result.digest)
        if there == record.output and hash_at(there) == result.digest_of_chunks():
            return replace(record, status="current")
        reason = f"{there} exists and is another object: --force (force=True) replaces a result"
        return replace(record, status="blocked", reason=reason, backup=None, old_version=None)

    def _is_written(self, record: MigrationRecord, there: str, result: ObjectResult) -> bool:
        """Whether an object is the result of this migration already.

        Its writer is a worker whose answer was lost, or that is not as dead as it seems.
        """
        return digest_of_source(there, self.key) == record.digest and hash_at(there) == result.digest_of_chunks()

    def _is_tried(self, task: Task) -> bool:
        """Whether a plan converts a file too: to measure the time, or to compare it with an existing result."""
        beside = task.found.destination != task.found.source
        sampled = task.number <= _FIRST_SAMPLES or task.number % _SAMPLED == 0
        return sampled or (beside and _exists(task.found.destination))

    def _proven(
        self, record: MigrationRecord, before: StoredProgram, moved: Artifact | JaxContainer
    ) -> MigrationRecord:
        try:
            proof = self.tools.prove(before, moved, self.settings)
        except VhloToolsError as error:
            return replace(record, status="unverified", reason=f"it cannot be verified: {error}")
        if proof.verdict == "other results":
            reason = f"the old and the new program compute different results: {proof.reason}"
            return replace(record, status="mismatch", reason=reason)
        if proof.verdict == "unknown":
            return replace(record, status="unverified", reason=f"it cannot be verified: {proof.reason}")
        return replace(record, verified=proof.verdict, reason=proof.reason)

    def _placed(self, task: Task, record: MigrationRecord, chunks: _Chunks | None, *, beside: bool) -> PreparedFile:
        """Write the result, unless another file is at its destination or at that of the backup."""
        found, suffix = task.found, self.settings.backup
        exists = os.path.lexists(found.destination)
        backup = found.destination + suffix if suffix and exists else None
        if beside:
            record = replace(record, output=found.destination)
        if beside and exists and not self.settings.force:
            reason = f"{found.destination} exists and is another file: --force (force=True) replaces it"
            return PreparedFile(replace(record, status="blocked", reason=reason))
        if backup and (kept := backup_reason(found.destination, backup)):
            return PreparedFile(replace(record, status="blocked", reason=kept))
        if self.dry and (why := _unwritable(found.destination)):
            return PreparedFile(replace(record, status="failed", reason=why))
        record = replace(record, status="move" if self.dry else "moved", backup=backup)
        if self.dry or chunks is None:
            return PreparedFile(record)
        part = part_path(found.destination, self.key, self.run, task.number)
        try:
            with opened_folder(os.path.dirname(part), make=beside) as folder:  # noqa: PTH120
                like = None if is_url(found.source) else os.stat(found.source)  # noqa: PTH116
                _write(folder, os.path.basename(part), chunks, like)  # noqa: PTH119
        except OSError as error:
            reason = f"the result cannot be written: {error.strerror or error}"
            return PreparedFile(replace(record, status="failed", reason=reason, backup=None))
        return PreparedFile(record, part, manifest=self._manifest(found.source, record, chunks))

    def _manifest(self, source: str, record: MigrationRecord, chunks: _Chunks) -> bytes | None:
        """Return the manifest of a result, if its source has one."""
        if find_manifest(source) is None:
            return None
        settings = self.settings
        given = non_default_options(
            {"legalize": True},
            allow_other_dialects=settings.allow_other_dialects,
            legalize=settings.legalize,
            expand=settings.expand,
            allow_relaxed=settings.allow_relaxed,
            allow_signature_change=settings.allow_signature_change,
            read_with=settings.read_with,
        )
        made = Making("migrate", str(settings.target), None, given, record.digest)
        return Manifest.of(join(chunks), made=made).encode()


def _exists(destination: str) -> bool:
    try:
        Stamp.of(destination)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _unwritable(destination: str) -> str | None:
    """Return the reason why nothing can be written at a destination, if it is known."""
    folder = Path(destination).parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    return f"the result cannot be written: {folder} is read-only"


def backup_reason(path: str, backup: str) -> str | None:
    """Return why a file cannot be kept at ``backup``, if so: another file is there, which is never replaced."""
    if not os.path.lexists(backup):
        return None
    with suppress(OSError):
        if os.path.samefile(path, backup) or hash_at(path) == hash_at(backup):  # noqa: PTH121
            return None
    return f"the backup cannot be written: {backup} exists and is another file; remove it or choose another suffix"


def _read(source: str, path: str) -> tuple[Kind, Buffer, ObjectStamp | None]:
    if is_url(source):
        from vhlo_tools.files import read_object

        held, version = read_object(object_url(source))
        return recognise(held, path), held, version
    try:
        data = read_bytes(Path(source))
    except IsADirectoryError:
        if is_saved_model(source):
            raise InvalidProgramError(f"{path} is a SavedModel: `vhlo serialize` converts it to an artifact") from None
        raise
    return recognise(data, path), data, None


def _is_at(program: StoredProgram, target: Version) -> bool:
    """Whether all contents of a file conform to the target, and not only its header."""
    return all(each.version == target and each.requirements().contradiction is None for each in program.artifacts)


def _digest(chunks: Iterable[Chunk]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        for piece in slices(chunk):
            found.update(piece)
    return found.hexdigest()


def _write(folder: Folder, name: str, chunks: _Chunks, like: os.stat_result | None) -> None:
    """Write a new file with the permissions and, if permitted, the owner of ``like``; on an error there is none."""
    mode = 0o600 if like else 0o666
    handle = os.open(folder.at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, mode, dir_fd=folder.handle)
    try:
        write_chunks(handle, chunks)
        if like is not None:
            with suppress(PermissionError, AttributeError):  # Windows has no owners like these
                os.fchown(handle, like.st_uid, like.st_gid)
            # After fchown, which clears some permission bits.
            keep_permissions(handle, like.st_mode & 0o7777)
        # Otherwise a power failure could destroy both the old and the new file.
        os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(folder.at(name), dir_fd=folder.handle)
        raise
    finally:
        os.close(handle)


def _write_nowhere(chunks: _Chunks, source: str) -> None:
    """Write a nameless temporary file, to measure the time; errors are ignored."""
    folder = None if is_url(source) else Path(source).parent
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        _digest(chunks)
        write_chunks(file.fileno(), chunks)
        os.fsync(file.fileno())


def _ended(record: MigrationRecord, error: Exception, *, reading: bool) -> MigrationRecord:
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
        reason = f"an internal error of vhlo_tools, please report it: {type(error).__name__}: {error}"
    return replace(record, status=status, reason=reason)
