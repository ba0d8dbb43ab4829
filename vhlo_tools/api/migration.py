"""Stores of programs: moved to another version, and watched."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import date
from os import PathLike, fspath

from vhlo_tools.api.functions import resolve_target
from vhlo_tools.api.migration_tools import MIGRATION_TOOLS
from vhlo_tools.errors import MigrationError
from vhlo_tools.migration import (
    WINDOWS,
    Journal,
    Migration,
    MigrationRecord,
    Settings,
    StoreFile,
    WindowName,
    Workers,
    journal_path,
    watch_store,
)
from vhlo_tools.version import Version

__all__ = ["migrate", "opened_migration", "plan_migration", "store_status"]

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def migrate(
    paths: Paths,
    target: str | Version,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    output_dir: str | PathLike[str] | None = None,
    backup: str | None = None,
    verify: bool = False,
    seed: int = 0,
    force: bool = False,
    exclude: Sequence[str] = (),
    journal: str | PathLike[str] | None = None,
    restart: bool = False,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Iterator[MigrationRecord]:
    """Bring all programs of a store to one version, each whole or not at all, whatever is wrong with others.

    Artifacts and files of jax.export are replaced where they stand, symbolic links and permissions staying as they are.
    Of any other program an artifact ``NAME.mlirbc`` is written beside it. The work is done as what this returns is
    iterated over, with so many files under way as the executor has use for. A journal in the store says what was done:
    after an interruption, the same call finishes what was begun. It is removed in the end.

    >>> import vhlo_tools as vt
    >>> for record in vt.migrate("store", "1.13.0", jobs=4):  # doctest: +SKIP
    ...     if not record.ok:
    ...         print(record.path, record.status, record.reason)

    Args:
        paths: Files, folders and globs.
        target: The version that all shall be of, or what shall read them, in the grammar of targets.
        executor: What does the work: processes, threads, or other machines that see the same files.
        jobs: Without an executor, how many processes of our own, which survive bytes that end one of them; by default
            files are worked on in this process, one after the other.
        output_dir: A folder to write results to, as the files stand below ``paths``; the store is left alone.
        backup: What to append to the name of an old file that is kept, such as ``.orig``; by default none is kept.
        verify: Whether a file is only moved if old and new were shown to compute the same: because the library reads
            the same program from both; or else by running both.
        seed: What the inputs for that are drawn from.
        force: Whether results may replace other files that stand where they shall be.
        exclude: Globs of files and folders that are left out.
        journal: Where the journal is kept, which is then not removed; by default ``.vhlo-migration`` with the results.
        restart: Whether a journal of an interrupted migration is thrown away.
        allow_other_dialects: Whether programs that are no artifacts may keep ops of dialects beside StableHLO.
        legalize: Whether what no artifact can hold is rewritten in them, as :func:`serialize` does.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings to use where they are needed.
        trusted: Whether MLIR may parse bytes at once, as for :func:`serialize`.

    Yields:
        What became of each file: of those that an interrupted run had finished, then of others as they are finished.

    Raises:
        MigrationError: If a path means no file, another migration is under way, or one was begun otherwise.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If it looks like a version and is none.
    """
    settings = Settings(
        _texts(paths),
        _version(target, as_of, provider),
        None if output_dir is None else fspath(output_dir),
        backup,
        verify,
        seed,
        force,
        tuple(exclude),
        allow_other_dialects,
        legalize,
        provider,
        trusted,
    )
    return _migrated(settings, None if journal is None else fspath(journal), executor, jobs, restart=restart)


def _migrated(
    settings: Settings, journal: str | None, executor: Executor | None, jobs: int | None, *, restart: bool
) -> Iterator[MigrationRecord]:
    with opened_migration(settings, journal, restart=restart) as migration, Workers(executor, jobs) as workers:
        for _ in migration.find():
            pass
        # Of earlier runs, and what was in conflict.
        yield from migration.records()
        yield from migration.execute(workers)


@contextmanager
def opened_migration(
    settings: Settings, journal: str | None = None, *, dry: bool = False, restart: bool = False
) -> Iterator[Migration]:
    """Give a migration with its journal, which is removed unless an error ends it, or the caller named it.

    Args:
        settings: What it is asked to do.
        journal: Where it keeps its journal.
        dry: Whether it is only planned, with a temporary journal.
        restart: Whether a journal of an interrupted migration is thrown away.

    Raises:
        MigrationError: If the journal cannot be used.
    """
    path = None if dry else journal or journal_path(settings)
    with Journal(path, settings, restart=restart) as used:
        try:
            yield Migration(settings, MIGRATION_TOOLS, used)
        except MigrationError:
            if used.is_empty:
                used.remove()
            raise
        except sqlite3.Error as error:
            raise MigrationError(
                f"the journal {path} cannot be written any more ({error}): "
                "every file is whole, and the same call goes on from here once it can"
            ) from error
        if journal is None:
            used.remove()
        else:
            used.conclude()


def plan_migration(
    paths: Paths,
    target: str | Version,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    output_dir: str | PathLike[str] | None = None,
    backup: str | None = None,
    force: bool = False,
    exclude: Sequence[str] = (),
    allow_other_dialects: bool = False,
    legalize: bool = True,
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Iterator[MigrationRecord]:
    """Tell what :func:`migrate` would do, and what stands in the way; nothing is written.

    Args:
        paths: As for :func:`migrate`, as are all others.
        target: The version.
        executor: What does the work.
        jobs: How many processes do.
        output_dir: Where results would be written.
        backup: How old files would be kept.
        force: Whether other files would be replaced.
        exclude: What is left out.
        allow_other_dialects: Whether other dialects would stay.
        legalize: Whether programs would be rewritten.
        as_of: The day that windows count back from.
        provider: The bindings.
        trusted: Whether MLIR may parse bytes at once.

    Yields:
        Each file as it is looked at: ``move``, ``current``, ``blocked`` or ``unreadable``. Some are moved without being
        written, and have ``seconds``, from which :class:`MigrationSummary` estimates how long all of it takes.

    Raises:
        MigrationError: If a path means no file.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If it looks like a version and is none.
    """
    settings = Settings(
        _texts(paths),
        _version(target, as_of, provider),
        None if output_dir is None else fspath(output_dir),
        backup,
        force=force,
        exclude=tuple(exclude),
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        provider=provider,
        trusted=trusted,
    )
    return _planned(settings, executor, jobs)


def _planned(settings: Settings, executor: Executor | None, jobs: int | None) -> Iterator[MigrationRecord]:
    with opened_migration(settings, dry=True) as migration, Workers(executor, jobs) as workers:
        for _ in migration.find():
            pass
        yield from migration.records()
        yield from migration.plan(workers)


def store_status(
    paths: Paths,
    *,
    windows: Sequence[WindowName] = WINDOWS,
    executor: Executor | None = None,
    jobs: int | None = None,
    exclude: Sequence[str] = (),
    as_of: date | None = None,
) -> Iterator[StoreFile]:
    """Tell until when the artifacts and files of jax.export in a store are promised to be read, and who reads them.

    Args:
        paths: Files, folders and globs.
        windows: Which windows decide on the order: ``backward``, ``forward``, ``jax-export``.
        executor: What does the work, as for :func:`migrate`.
        jobs: How many processes do, as for :func:`migrate`.
        exclude: Globs of files and folders that are left out.
        as_of: The day on which releases count as made, by default today.

    Yields:
        Each file, that which leaves a window first before others.

    Raises:
        MigrationError: If a path means no file.
        ValueError: If there is no such window.
    """
    if unknown := sorted(set(windows).difference(WINDOWS)):
        raise ValueError(f"{unknown[0]!r} is no window: expected one of {', '.join(WINDOWS)}")
    return _watched(_texts(paths), tuple(windows), executor, jobs, tuple(exclude), as_of or date.today())


def _watched(
    paths: tuple[str, ...],
    windows: tuple[WindowName, ...],
    executor: Executor | None,
    jobs: int | None,
    exclude: tuple[str, ...],
    today: date,
) -> Iterator[StoreFile]:
    with Workers(executor, jobs) as workers:
        yield from watch_store(paths, workers, windows=windows, today=today, exclude=exclude)


def _texts(paths: Paths) -> tuple[str, ...]:
    return (fspath(paths),) if isinstance(paths, str | PathLike) else tuple(fspath(each) for each in paths)


def _version(target: str | Version, as_of: date | None, provider: str | None) -> Version:
    return resolve_target(str(target), as_of=as_of, provider=provider).specified().version
