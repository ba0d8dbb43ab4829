"""Stores of programs: their status, and their migration."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Unpack

from vhlo_tools.api.checking import findings_with_library, prepare_check
from vhlo_tools.api.conversion import resolve_reachable, retarget, serialize
from vhlo_tools.api.releases import install_releases
from vhlo_tools.api.store_verification import EquivalenceChecker, path_text
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.errors import MigrationError
from vhlo_tools.files import Buffer, Kind, is_path, is_url, local_path, nobody
from vhlo_tools.program import WriteOptions
from vhlo_tools.stores import (
    AT_REST,
    WINDOWS,
    Journal,
    Migration,
    MigrationSettings,
    StoredProgram,
    StoreLease,
    Tools,
    Workers,
    journal_path,
    object_url,
    watch_store,
)

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.findings import Finding
    from vhlo_tools.spec import WindowName
    from vhlo_tools.stores import AnyExecutor, EquivalenceResult, MigrationRecord, StoreFile
    from vhlo_tools.version import Version

# Operations of a migration on one program: retarget, find blocking findings, and prove equivalence
#
# These functions are called by name in other processes.


_EXPANDING: Final = ("expand", "allow_relaxed", "allow_signature_change", "provider", "trusted")
_WRITING: Final = (*_EXPANDING, "allow_other_dialects", "legalize", "read_with")


def _options(settings: MigrationSettings, names: Sequence[str]) -> Any:
    return {name: getattr(settings, name) for name in names}


def _move(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    def moved(artifact: Artifact) -> Artifact:
        return retarget(artifact, settings.target, **_options(settings, _EXPANDING))

    if isinstance(program.opened, JaxContainer):
        return program.opened.with_artifacts(moved)
    if program.opened is not None:
        return moved(program.opened)
    from vhlo_tools.bindings import get_provider

    # Versions newer than the library are reached by retargeting its newest version on bytes.
    written = min(settings.target, get_provider(settings.provider).library.current)
    artifact = serialize(program.data, written, name=program.name, **_options(settings, _WRITING))
    return artifact if written == settings.target else moved(artifact).with_findings(artifact.findings)


def _blocking(program: StoredProgram, settings: MigrationSettings) -> list[Finding]:
    """Errors block the migration."""

    def found(each: Artifact | Buffer) -> list[Finding]:
        return prepare_check(each, name=program.name, **_options(settings, _WRITING)).findings(settings.target)

    if program.opened is None:
        return found(program.data)
    if settings.expand or settings.allow_relaxed:
        blocked = [each for each in program.artifacts if each.requirements().findings(settings.target)]
        return [each for artifact in blocked for each in found(artifact)]
    loading = _options(settings, ("provider", "trusted"))
    return [
        each for artifact in program.artifacts for each in findings_with_library(artifact, settings.target, **loading)
    ]


def _prove(before: StoredProgram, after: Artifact | JaxContainer, settings: MigrationSettings) -> EquivalenceResult:
    """Return the proof that both programs are equivalent, or why there is none."""
    # The written bytes are compared, because they are what consumers will read.
    written = bytes(after)
    kind = Kind.JAX_EXPORT if isinstance(after, JaxContainer) else Kind.PORTABLE_ARTIFACT
    prover = EquivalenceChecker(**_options(settings, ("seed", "timeout", "legalize", "provider", "trusted")))
    name = before.name
    if settings.read_with is not None and before.opened is None:
        from vhlo_tools.releases import read_in_time

        source = read_in_time(before.data, settings.read_with, name)
        assert source.kind is not None
        assert source.data is not None
        before = StoredProgram.of(name, source.kind, source.data)
    return prover.prove(before, StoredProgram.of(name, kind, written), (name, f"{name} at {settings.target}"))


def _refused(artifacts: Sequence[Artifact], settings: MigrationSettings) -> list[Finding]:
    from vhlo_tools.releases import refusals

    return [each for artifact in artifacts for each in refusals(settings.confirm_with, artifact, settings.target)]


#: The operations of a migration on one program.
MIGRATION_TOOLS: Final = Tools(_move, _blocking, _prove, _refused)


# Migration and monitoring of stores of programs

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class MigrationOptions(WriteOptions, total=False):
    """Options of both :func:`migrate` and :func:`plan_migration`, in addition to those of :func:`serialize`.

    Attributes:
        output_dir: A folder for results, with the structure below the paths; the store is not changed.
        backup: The suffix of the name of an old file that is kept, such as ``.orig``; by default none is kept.
        force: Whether results may replace other files at their paths.
        exclude: Globs of files and folders to leave out.
        follow: Whether the files are migrated to which links in folders lead, by default true.
        follow_outside: Whether they are even if they are outside of the paths; by default each is ``blocked``.
        as_of: The day from which windows in the target count back, by default today.
        provider: The bindings to use if they are needed.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.
        confirm_with: The real releases, such as ``jaxlib==0.4.31``, that must read a result before it is written, and
            what is at the target already; one older than the target is refused, for it would be asked nothing.
        read_with: For MLIR text that only an older release reads, that release, as for :func:`serialize`.
    """

    output_dir: str | PathLike[str] | None
    backup: str | None
    force: bool
    exclude: Sequence[str]
    follow: bool
    follow_outside: bool
    as_of: date | None
    provider: str | None
    trusted: bool
    confirm_with: Sequence[str]
    read_with: str | None


def _settings(
    paths: Paths,
    target: str | Version,
    *,
    output_dir: str | PathLike[str] | None = None,
    exclude: Sequence[str] = (),
    confirm_with: Sequence[str] = (),
    as_of: date | None = None,
    provider: str | None = None,
    **options: Any,
) -> MigrationSettings:
    resolved = resolve_reachable(str(target), as_of=as_of, provider=provider)
    if confirm_with:
        install_releases(confirm_with, versions=[resolved.version])
    return MigrationSettings(
        _texts(paths),
        resolved.version,
        None if output_dir is None else path_text(output_dir),
        exclude=tuple(exclude),
        confirm_with=tuple(confirm_with),
        provider=provider,
        consumers=resolved.consumers,
        **options,
    )


def migrate(
    paths: Paths,
    target: str | Version,
    *,
    executor: AnyExecutor | None = None,
    jobs: int | None = None,
    verify: bool = False,
    seed: int = 0,
    timeout: float | None = None,
    journal: str | PathLike[str] | None = None,
    restart: bool = False,
    **options: Unpack[MigrationOptions],
) -> Iterator[MigrationRecord]:
    """Migrate all programs of a store to one version, each atomically and independently of errors in others.

    Artifacts and jax.export files are replaced in place; symbolic links and permissions are kept. For any other program
    an artifact ``NAME.mlirbc`` is written beside it. The work proceeds as the returned iterator is consumed, with as
    many files in progress as the executor can use. A journal in the store records the progress: after an interruption,
    the same call resumes the migration. The journal is removed at the end.

    >>> import vhlo_tools as vt
    >>> for record in vt.migrate("store", "1.13.0", jobs=4):  # doctest: +SKIP
    ...     if not record.ok:
    ...         print(record.path, record.status, record.reason)

    Args:
        paths: Files, folders and globs.
        target: The target version or consumer, in the target grammar.
        executor: The executor of the work: processes, threads, or other machines that see the same files, among them
            the client of a Dask cluster, a ``distributed.Client``.
        jobs: Without an executor, the number of processes to start, which survive crashes caused by malformed files; by
            default files are processed sequentially in this process.
        verify: Whether a file is migrated only if the old and the new program are proven equivalent: because the
            library reads the same program from both; or else by running both.
        seed: The seed for drawing the inputs of these runs.
        timeout: The limit in seconds of each of these runs, as for :func:`run`.
        journal: The path of the journal, which is then not removed; by default ``.vhlo-migration`` with the results.
        restart: Whether to discard the journal of an interrupted migration.
        options: See :class:`MigrationOptions`.

    Yields:
        The record of each file on completion, among them those of files that an interrupted run had finished.

    Raises:
        MigrationError: If a path matches no file, another migration is in progress, or an unfinished migration has
            other settings.
        WorkerError: If no process can be started, or the cluster cannot be used.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    settings = _settings(paths, target, verify=verify, seed=seed, timeout=timeout, **options)
    own = None if journal is None else path_text(journal)
    return _records(opened_migration(settings, own, restart=restart), executor, jobs)


def _records(
    opened: AbstractContextManager[Migration], executor: AnyExecutor | None, jobs: int | None, *, dry: bool = False
) -> Iterator[MigrationRecord]:
    with opened as migration, Workers(executor, jobs) as workers:
        yield from migration.run(workers, dry=dry)


@contextmanager
def opened_migration(
    settings: MigrationSettings, journal: str | None = None, *, dry: bool = False, restart: bool = False
) -> Iterator[Migration]:
    """Yield a migration with its journal; the journal is removed unless an error occurs or the caller named it.

    ``dry`` plans only, with a temporary journal; ``restart`` discards the journal of an interrupted migration. Raises
    ``MigrationError`` if the journal cannot be used.
    """
    journal = journal and str(local_path(journal, "a journal"))
    path = None if dry else journal or journal_path(settings)
    if path is not None and is_url(path):
        with _claimed(path, settings, restart=restart) as (claim, used):
            yield Migration(settings, MIGRATION_TOOLS, used, claim.check)
        return
    with Journal(path, settings, restart=restart) as used:
        try:
            yield Migration(settings, MIGRATION_TOOLS, used)
        except MigrationError:
            if used.is_empty:
                used.remove()
            raise
        except sqlite3.Error as error:
            # Such as on a full disk.
            if used.is_new and used.is_empty:
                used.remove()
            raise MigrationError(
                f"the journal {path} can no longer be written ({error}): every file is intact, and the same call "
                f"resumes the migration once it can"
            ) from error
        if journal is None:
            used.remove()
        else:
            used.conclude()


@contextmanager
def _claimed(path: str, settings: MigrationSettings, *, restart: bool) -> Iterator[tuple[StoreLease, Journal]]:
    """Yield the claim of a migration behind a URL, and a temporary journal; the claim ends with the migration."""
    claim = StoreLease(object_url(path), settings, restart=restart)
    try:
        with Journal(None, settings, identity=(claim.key, claim.run)) as used:
            try:
                yield claim, used
            except MigrationError:
                if used.is_empty:
                    claim.release()
                raise
    except BaseException:
        claim.leave()
        raise
    claim.release()


def plan_migration(
    paths: Paths,
    target: str | Version,
    *,
    executor: AnyExecutor | None = None,
    jobs: int | None = None,
    **options: Unpack[MigrationOptions],
) -> Iterator[MigrationRecord]:
    """Yield the outcome that :func:`migrate` would have for each file, with its reasons; nothing is written.

    Args:
        paths: Files, folders and globs.
        target: The target version or consumer, in the target grammar.
        executor: The executor of the work, as for :func:`migrate`.
        jobs: The number of processes, as for :func:`migrate`.
        options: See :class:`MigrationOptions`.

    Yields:
        The record of each file: ``move``, ``current``, ``blocked`` or ``unreadable``. A sample of the files is
        converted without being written, with ``seconds``; :class:`MigrationSummary` estimates the total time from it.

    Raises:
        MigrationError: If a path matches no file.
        WorkerError: If no process can be started, or the cluster cannot be used.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    settings = _settings(paths, target, **options)
    return _records(opened_migration(settings, dry=True), executor, jobs, dry=True)


def store_status(
    paths: Paths,
    *,
    windows: Sequence[WindowName] = AT_REST,
    executor: AnyExecutor | None = None,
    jobs: int | None = None,
    exclude: Sequence[str] = (),
    as_of: date | None = None,
    others: Callable[[str], object] = nobody,
) -> Iterator[StoreFile]:
    """Yield the ends of the compatibility windows of the artifacts and jax.export files in a store, and their readers.

    Args:
        paths: Files, folders and globs.
        windows: The windows to consider: ``backward``, ``jax-export``, and ``forward``, which binds those who write
            files and does not count by default.
        executor: The executor of the work, as for :func:`migrate`.
        jobs: The number of processes, as for :func:`migrate`.
        exclude: Globs of files and folders to leave out.
        as_of: The day up to which releases are considered, by default today.
        others: Called with the path of each file of a folder that is no program, before the first file is yielded.

    Yields:
        Each file, in the order in which they leave a window.

    Raises:
        MigrationError: If a path matches no file.
        WorkerError: If no process can be started, or the cluster cannot be used.
        ValueError: If there is no such window.
    """
    if unknown := sorted(set(windows).difference(WINDOWS)):
        raise ValueError(f"{unknown[0]!r} is not a window: expected one of {', '.join(WINDOWS)}")
    watching: Any = {"windows": tuple(windows), "exclude": tuple(exclude), "today": as_of or date.today()}
    watching["others"] = others
    return _watched(_texts(paths), executor, jobs, **watching)


def _watched(
    paths: tuple[str, ...], executor: AnyExecutor | None, jobs: int | None, **watching: Any
) -> Iterator[StoreFile]:
    with Workers(executor, jobs) as workers:
        yield from watch_store(paths, workers, **watching)


def _texts(paths: Paths) -> tuple[str, ...]:
    if isinstance(paths, str | PathLike) or is_path(paths):
        return (path_text(paths),)
    return tuple(path_text(each) for each in paths)
