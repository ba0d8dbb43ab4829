"""``vhlo migrate``: migrates a store of programs to another version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Final

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo, shown_progress
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.reports import encoded, fields_of, json_lines, readable_path, readable_size
from vhlo_tools.files import place, said_of_others, write_atomically
from vhlo_tools.findings import finding_as_json, findings_lines
from vhlo_tools.printable import json_text
from vhlo_tools.stores import (
    MIGRATION_TABLE,
    Migration,
    MigrationRecord,
    MigrationSettings,
    MigrationSummary,
    Workers,
    parquet_chunks,
)

# Output of ``vhlo migrate``: lines of text or of JSON about files

_SAID: Final = {
    "move": "to move",
    "moved": "moved",
    "current": "up to date",
    "blocked": "blocked",
    "mismatch": "with different results",
    "unverified": "not verified",
    "changed": "changed during the migration",
    "failed": "failed",
    "unreadable": "unreadable",
}


def report_lines(
    records: Iterable[MigrationRecord], summary: MigrationSummary, output_format: str, jobs: int, *, dry_run: bool
) -> Iterator[str]:
    """Yield the lines of a report. The text of a plan lists all files, other text those not moved."""
    if output_format == "text":
        for record in records:
            if dry_run or not record.ok:
                yield from _lines(record)
        yield total_line(summary, jobs)
    elif output_format == "jsonl":
        yield from map(record_line, records)
    else:
        estimate = {"estimated_seconds": summary.seconds(jobs)} if dry_run else {}
        yield from json_lines(
            map(record_line, records), lambda: {"summary": summary.as_json() | estimate}, {"ok": summary.ok}
        )


def record_line(record: MigrationRecord) -> str:
    findings = [finding_as_json(each) for each in record.findings]
    values = {"path": record.path, "ok": record.ok, **fields_of(record), "findings": findings}
    return json_text(values)


def total_line(summary: MigrationSummary, jobs: int) -> str:
    counts = [
        f"{summary.files[status]} {said} ({readable_size(summary.sizes[status])})"
        for status, said in _SAID.items()
        if summary.files[status]
    ]
    line = (", ".join(counts) or "no files") + said_of_others(summary.others)
    seconds = summary.seconds(jobs)
    if seconds is None:
        return line
    processes = f"{jobs} processes" if jobs > 1 else "one process"
    return f"{line}; about {_readable_seconds(seconds)} with {processes}"


def _lines(record: MigrationRecord) -> Iterator[str]:
    version = str(record.version) if record.version else "-"
    output = f" -> {readable_path(record.output)}" if record.output else ""
    leads = f" (a link to {readable_path(record.leads_to)})" if record.leads_to else ""
    place = f"{readable_path(record.path)}{leads}{output}"
    yield f"{record.status:<10} {version:<8} {readable_size(record.size):>9}  {place}"
    if record.reason:
        yield from (f"  {line}" for line in record.reason.splitlines())
    if not record.ok:
        yield from findings_lines(record.findings)


def _readable_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{max(seconds, 0.1):.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@command()
@options.paths_argument()
@options.target_option(default=None)
@click.option("--dry-run", is_flag=True, help="Show the planned changes, and write nothing.")
@options.jobs_option()
@options.dask_option
@click.option("--output-dir", metavar="DIR", help="Write results to DIR, and leave the store unchanged.")
@click.option("--backup", is_flag=True, help="Keep every old file beside the new one, as NAME.orig.")
@click.option("--backup-suffix", metavar="SUFFIX", help="Keep every old file as NAME with this suffix.")
@click.option(
    "--verify", is_flag=True, help="Replace a file only if the old and the new program compute the same results."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the random inputs for --verify.")
@options.timeout_option
@click.option("-f", "--force", is_flag=True, help="Replace existing output files.")
@options.exclude_option()
@click.option("--no-follow", "follow", flag_value=False, default=True, help="Leave out links in folders.")
@click.option("--follow-outside", is_flag=True, help="Follow links in folders to files outside of PATH too.")
@click.option("--journal", metavar="FILE", help="Keep the journal in FILE, also after the migration.")
@click.option("--restart", is_flag=True, help="Start again instead of resuming an interrupted migration.")
@click.option("--allow-other-dialects", is_flag=True, help="Let programs contain ops of dialects other than StableHLO.")
@options.no_legalize_option
@options.expand_options
@options.confirm_option
@options.as_of_option
@options.provider_option
@options.trusted_option
@options.format_choice(
    *("text", "json", "jsonl", "parquet"),
    what="The format of the result: jsonl has a line for each file when it is finished, the others are sorted by path; "
    "parquet is a table for other programs, and needs -o FILE and the extra `distributed`.",
)
@click.option("-o", "--output", "report", metavar="FILE", help="Write the result to FILE instead of stdout.")
def migrate(
    target: str,
    dry_run: bool,
    jobs: int | None,
    dask: str | None,
    backup: bool,
    backup_suffix: str | None,
    journal: str | None,
    restart: bool,
    as_of: date | None,
    output_format: str,
    report: str | None,
    **given: Any,
) -> int:
    """Migrate every artifact, MLIR program and jax.export file at PATH to one version.

    A PATH is a file, a folder or a glob. Artifacts and jax.export files are replaced atomically; for a program,
    NAME.mlirbc is written next to it. A link in a folder is followed if it leads to a file at PATH. After an
    interruption, the same command continues the migration. Exit code 0: all files are at the target; 1: some are not;
    2: a bad target, or a file that cannot be read.
    """
    if backup_suffix is not None and (not backup_suffix or "/" in backup_suffix):
        raise click.UsageError(f"{backup_suffix!r} is not a suffix of a name: expected one like .orig")
    resolved = api.resolve_reachable(target, as_of=as_of, provider=given["provider"])
    suffix = backup_suffix or (".orig" if backup else None)
    settings = MigrationSettings(target=resolved.version, consumers=resolved.consumers, backup=suffix, **given)
    if output_format == "parquet" and report is None:
        raise click.UsageError("a Parquet file is not for a terminal: give -o FILE")
    if settings.confirm_with:
        api.install_releases(
            settings.confirm_with, lambda line: echo(f"vhlo: {line}", err=True), versions=[settings.target]
        )
    with (
        options.workers(dask, jobs, (*settings.paths, settings.output_dir or "")) as workers,
        api.opened_migration(settings, journal, dry=dry_run, restart=restart) as migration,
    ):
        live = output_format == "jsonl" and report is None
        summary = _worked(migration, workers, dry_run=dry_run, live=live)
        if output_format == "parquet":
            chunks = parquet_chunks(MIGRATION_TABLE, migration.records(), {"target": str(settings.target)})
        else:
            lines = report_lines(migration.records(), summary, output_format, workers.count, dry_run=dry_run)
            chunks = encoded(lines)
        if report is not None:
            write_atomically(place(report), chunks, force=True)
            echo(f"vhlo: {total_line(summary, workers.count)}", err=True)
            options.say_written(report)
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
            for record in migration.run(workers, dry=dry_run):
                summary.add(record)
                if live:
                    echo(record_line(record))
                progress.expect(migration.files, migration.size, more=not migration.is_listed)
                progress.advance(record.size, ok=record.ok)
        summary.others = migration.others
    except KeyboardInterrupt:
        if not dry_run:
            echo("vhlo: interrupted; every file is intact, and the same command resumes the migration", err=True)
        raise
    return summary
