"""``vhlo migrate``: a store of programs brought to another version."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from vhlo_tools import api
from vhlo_tools.cli import migrate_text, options
from vhlo_tools.cli.progress import shown_progress
from vhlo_tools.files import write_atomically
from vhlo_tools.migration import Migration, MigrationRecord, MigrationSummary, Settings, Workers

_F = TypeVar("_F", bound=Callable[..., Any])

_DOING: Final = (
    click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing."),
    click.option(
        "-j", "--jobs", type=click.IntRange(min=1), help="How many processes do the work; by default one for each core."
    ),
    click.option("--output-dir", metavar="DIR", help="Write results there, and leave the store alone."),
    click.option("--backup", is_flag=True, help="Keep every old file beside the new one, as NAME.orig."),
    click.option("--backup-suffix", metavar="SUFFIX", help="Keep it, under NAME and this."),
    click.option("--verify", is_flag=True, help="Move a file only if old and new were shown to compute the same."),
    click.option("--seed", type=int, default=0, show_default=True, help="What inputs are drawn from to run both."),
    click.option("-f", "--force", is_flag=True, help="Replace other files that stand where results shall be."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Leave files or folders out. May be repeated."),
    click.option("--journal", metavar="FILE", help="Keep the journal there, also afterwards."),
    click.option("--restart", is_flag=True, help="Begin anew where an interrupted migration would go on."),
    click.option("--allow-other-dialects", is_flag=True, help="Let programs keep ops of dialects beside StableHLO."),
)
_TELLING: Final = (
    click.option(
        "--output-format",
        "--format",
        type=click.Choice(["text", "json", "jsonl"]),
        default="text",
        show_default=True,
        help="How to report: jsonl has a line for each file as it is finished, the others all by their paths.",
    ),
    click.option("-o", "--report", metavar="FILE", help="Write the report there, and not to stdout."),
)


def _with(found: Sequence[Callable[[Any], Any]]) -> Callable[[_F], _F]:
    return lambda function: reduce(lambda wrapped, option: option(wrapped), reversed(found), function)


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@options.target_option(default=None)
@_with(_DOING)
@options.no_legalize_option
@options.as_of_option
@options.provider_option
@options.trusted_option
@_with(_TELLING)
def migrate(
    paths: tuple[str, ...],
    target: str,
    dry_run: bool,
    jobs: int | None,
    output_dir: str | None,
    backup: bool,
    backup_suffix: str | None,
    verify: bool,
    seed: int,
    force: bool,
    exclude: tuple[str, ...],
    journal: str | None,
    restart: bool,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
    trusted: bool,
    output_format: str,
    report: str | None,
) -> int:
    """Bring every artifact, MLIR program and jax.export file at PATH to one version.

    A PATH is a file, a folder or a glob. Artifacts and jax.export files are replaced where they stand, each whole or
    not at all; of a program, NAME.mlirbc is written beside it. Interrupted at any moment, the same command finishes.
    Exit code 0: all are at the target; 1: one is not; 2: a bad target, or a file that cannot be read.
    """
    if backup_suffix is not None and (not backup_suffix or "/" in backup_suffix):
        raise click.UsageError(f"{backup_suffix!r} is no suffix of a name: expected one like .orig")
    resolved = api.resolve_target(target, as_of=as_of, provider=provider).specified()
    settings = Settings(
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
    )
    jobs = jobs or os.cpu_count() or 1
    with api.opened_migration(settings, journal, dry=dry_run, restart=restart) as migration:
        live = output_format == "jsonl" and report is None
        summary = _worked(migration, jobs, dry_run=dry_run, live=live)
        lines = migrate_text.report(migration.records(), summary, output_format, jobs, dry_run=dry_run)
        if report is not None:
            write_atomically(Path(report), (f"{line}\n".encode() for line in lines), force=True)
            click.echo(f"vhlo: {migrate_text.total(summary, jobs)}", err=True)
        elif not live:
            for line in lines:
                click.echo(line)
    if summary.files["unreadable"]:
        return 2
    return 0 if summary.ok else 1


def _worked(migration: Migration, jobs: int, *, dry_run: bool, live: bool) -> MigrationSummary:
    """Do the work, and return what became of all files, those of earlier runs too."""
    summary = MigrationSummary()
    try:
        with shown_progress() as progress, Workers(jobs=jobs) as workers:
            for number in migration.find():
                progress.found(number)
            for record in migration.records():
                # Of an earlier run, or in conflict with another.
                _take(record, summary, live=live)
            progress.begin(*migration.totals())
            for record in migration.plan(workers) if dry_run else migration.execute(workers):
                _take(record, summary, live=live)
                progress.advance(record.size, ok=record.ok)
    except KeyboardInterrupt:
        if not dry_run:
            click.echo("vhlo: interrupted; every file is whole, and the same command goes on from here", err=True)
        raise
    return summary


def _take(record: MigrationRecord, summary: MigrationSummary, *, live: bool) -> None:
    summary.add(record)
    if live:
        click.echo(migrate_text.as_line(record))
