"""``vhlo migrate``: migrates a store of programs to another version."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce
from typing import Any, Final, TypeVar

import click

from vhlo_tools import api
from vhlo_tools.cli import migrate_text, options
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.progress import shown_progress
from vhlo_tools.files import place, write_atomically
from vhlo_tools.stores import (
    MIGRATION_TABLE,
    Migration,
    MigrationRecord,
    MigrationSettings,
    MigrationSummary,
    Workers,
    parquet_chunks,
)

_F = TypeVar("_F", bound=Callable[..., Any])

_DOING: Final = (
    click.option("--dry-run", is_flag=True, help="Show the planned changes, and write nothing."),
    click.option(
        "-j", "--jobs", type=click.IntRange(min=1), help="The number of processes; by default one for each core."
    ),
    options.dask_option,
    click.option("--output-dir", metavar="DIR", help="Write results to DIR, and leave the store unchanged."),
    click.option("--backup", is_flag=True, help="Keep every old file beside the new one, as NAME.orig."),
    click.option("--backup-suffix", metavar="SUFFIX", help="Keep every old file as NAME with this suffix."),
    click.option(
        "--verify", is_flag=True, help="Replace a file only if the old and the new program compute the same results."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="The seed of the random inputs for --verify."),
    options.timeout_option,
    click.option("-f", "--force", is_flag=True, help="Replace existing output files."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Files or folders to exclude. May be repeated."),
    click.option("--no-follow", "follow", flag_value=False, default=True, help="Leave out links in folders."),
    click.option("--follow-outside", is_flag=True, help="Follow links in folders to files outside of PATH too."),
    click.option("--journal", metavar="FILE", help="Keep the journal in FILE, also after the migration."),
    click.option("--restart", is_flag=True, help="Start again instead of resuming an interrupted migration."),
    click.option(
        "--allow-other-dialects", is_flag=True, help="Let programs contain ops of dialects other than StableHLO."
    ),
)
_TELLING: Final = (
    click.option(
        "--output-format",
        "--format",
        type=click.Choice(["text", "json", "jsonl", "parquet"]),
        default="text",
        show_default=True,
        help="The format of the report: jsonl has a line for each file when it is finished, the others are sorted by "
        "path; parquet is a table for other programs, and needs -o FILE and the extra `distributed`.",
    ),
    click.option("-o", "--report", metavar="FILE", help="Write the report to FILE instead of stdout."),
)


def _with(found: Sequence[Callable[[Any], Any]]) -> Callable[[_F], _F]:
    return lambda function: reduce(lambda wrapped, option: option(wrapped), reversed(found), function)


@command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@options.target_option(default=None)
@_with(_DOING)
@options.no_legalize_option
@options.expand_options
@options.confirm_option
@options.as_of_option
@options.provider_option
@options.trusted_option
@_with(_TELLING)
def migrate(
    paths: tuple[str, ...],
    target: str,
    dry_run: bool,
    jobs: int | None,
    dask: str | None,
    output_dir: str | None,
    backup: bool,
    backup_suffix: str | None,
    verify: bool,
    seed: int,
    timeout: float | None,
    force: bool,
    exclude: tuple[str, ...],
    follow: bool,
    follow_outside: bool,
    journal: str | None,
    restart: bool,
    allow_other_dialects: bool,
    legalize: bool,
    expand: bool,
    allow_relaxed: tuple[str, ...],
    allow_signature_change: bool,
    confirm_with: tuple[str, ...],
    as_of: date | None,
    provider: str | None,
    trusted: bool,
    output_format: str,
    report: str | None,
) -> int:
    """Migrate every artifact, MLIR program and jax.export file at PATH to one version.

    A PATH is a file, a folder or a glob. Artifacts and jax.export files are replaced atomically; for a program,
    NAME.mlirbc is written next to it. A link in a folder is followed if it leads to a file at PATH. After an
    interruption, the same command continues the migration. Exit code 0: all files are at the target; 1: some are not;
    2: a bad target, or a file that cannot be read.
    """
    if backup_suffix is not None and (not backup_suffix or "/" in backup_suffix):
        raise click.UsageError(f"{backup_suffix!r} is not a suffix of a name: expected one like .orig")
    resolved = api.resolve_reachable(target, as_of=as_of, provider=provider)
    settings = MigrationSettings(
        paths,
        resolved.version,
        output_dir,
        backup_suffix or (".orig" if backup else None),
        verify,
        seed,
        force,
        exclude,
        allow_other_dialects,
        legalize,
        provider,
        trusted,
        resolved.consumers,
        timeout,
        follow,
        follow_outside,
        expand,
        allow_relaxed,
        allow_signature_change,
        confirm_with,
    )
    if output_format == "parquet" and report is None:
        raise click.UsageError("a Parquet file is not for a terminal: give -o FILE")
    if confirm_with:
        api.install_releases(confirm_with, lambda line: echo(f"vhlo: {line}", err=True), versions=[settings.target])
    with (
        options.cluster(dask) as client,
        Workers(client, options.processes(jobs or os.cpu_count() or 1, (*paths, output_dir or ""))) as workers,
        api.opened_migration(settings, journal, dry=dry_run, restart=restart) as migration,
    ):
        live = output_format == "jsonl" and report is None
        summary = _worked(migration, workers, dry_run=dry_run, live=live)
        if output_format == "parquet":
            chunks = parquet_chunks(MIGRATION_TABLE, migration.records(), {"target": str(settings.target)})
        else:
            lines = migrate_text.report(migration.records(), summary, output_format, workers.count, dry_run=dry_run)
            chunks = (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines)
        if report is not None:
            write_atomically(place(report), chunks, force=True)
            echo(f"vhlo: {migrate_text.total(summary, workers.count)}", err=True)
        elif not live:
            for line in lines:
                echo(line)
    if summary.files["unreadable"]:
        return 2
    return 0 if summary.ok else 1


def _worked(migration: Migration, workers: Workers, *, dry_run: bool, live: bool) -> MigrationSummary:
    """Return the summary of all files, including those of earlier runs."""
    summary = MigrationSummary()
    try:
        with shown_progress() as progress:
            for record in migration.plan(workers) if dry_run else migration.execute(workers):
                _take(record, summary, live=live)
                progress.expect(migration.files, migration.size, more=not migration.is_listed)
                progress.advance(record.size, ok=record.ok)
    except KeyboardInterrupt:
        if not dry_run:
            echo("vhlo: interrupted; every file is intact, and the same command resumes the migration", err=True)
        raise
    return summary


def _take(record: MigrationRecord, summary: MigrationSummary, *, live: bool) -> None:
    summary.add(record)
    if live:
        echo(migrate_text.as_line(record))
