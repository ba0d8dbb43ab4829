"""``vhlo migrate``: migrates a store of programs to another version."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import date
from functools import reduce
from typing import Any, Final, TypeVar

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo, shown_progress
from vhlo_tools.cli.helping import command
from vhlo_tools.files import place, write_atomically
from vhlo_tools.findings import findings_lines
from vhlo_tools.printable import printable
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
        return
    if output_format == "jsonl":
        yield from map(record_line, records)
        return
    # One record at a time, because there may be very many.
    yield "{"
    yield f'"ok": {json.dumps(summary.ok)},'
    yield '"files": ['
    last = None
    for record in records:
        if last is not None:
            yield f"{last},"
        last = record_line(record)
    if last is not None:
        yield last
    yield "],"
    estimate = {"estimated_seconds": summary.seconds(jobs)} if dry_run else {}
    yield f'"summary": {json.dumps({**summary.as_json(), **estimate})}'
    yield "}"


def record_line(record: MigrationRecord) -> str:
    return json.dumps(_as_json(record), default=str, allow_nan=False)


def _as_json(record: MigrationRecord) -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    findings = [options.finding_as_json(each) for each in record.findings]
    return {"path": record.path, "ok": record.ok, **values, "findings": findings}


def total_line(summary: MigrationSummary, jobs: int) -> str:
    counts = [
        f"{summary.files[status]} {said} ({readable_size(summary.sizes[status])})"
        for status, said in _SAID.items()
        if summary.files[status]
    ]
    line = ", ".join(counts) or "no files"
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


def readable_path(path: str) -> str:
    """Return a printable path; the bytes of a file name may not be text."""
    return printable(os.fsencode(path).decode("utf-8", "replace"))


def readable_size(size: int) -> str:
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} B"


def _readable_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{max(seconds, 0.1):.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


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
            lines = report_lines(migration.records(), summary, output_format, workers.count, dry_run=dry_run)
            chunks = (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines)
        if report is not None:
            write_atomically(place(report), chunks, force=True)
            echo(f"vhlo: {total_line(summary, workers.count)}", err=True)
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
        echo(record_line(record))
