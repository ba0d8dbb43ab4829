"""``vhlo verify`` of two stores: every program of one is compared with its partner in the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from vhlo_tools import api
from vhlo_tools.cli import options, verify_stores_text
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.progress import Progress, shown_progress
from vhlo_tools.files import place
from vhlo_tools.stores import VERIFICATION_TABLE, PairRecord, PairSummary, Workers, is_store, parquet_chunks

FORMATS = ("text", "json", "jsonl", "parquet")


def are_stores(before: str, after: str) -> bool:
    """Whether a path stands for many programs: a folder, a prefix of URLs, or a glob."""
    return any(each != options.STANDARD and is_store(str(place(each))) for each in (before, after))


def verify_stores(
    before: str,
    after: str,
    prover: api.Prover,
    *,
    exclude: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    output_format: str,
    output: str | None,
) -> int:
    binary = output_format == "parquet"
    if binary and output is None:
        raise click.UsageError("a Parquet file is not for a terminal: give -o FILE")
    if output is not None:
        options.check_output(output, force=True, binary=binary)
    verification = api.StoreVerification(before, after, prover, exclude)
    summary = PairSummary()
    processes = options.processes(jobs or os.cpu_count() or 1, (before, after))
    # On a terminal that shows the report, its lines are the progress.
    shows_report = output is None and sys.stdout is not None and sys.stdout.isatty()
    with (
        options.cluster(dask) as client,
        Workers(client, processes) as workers,
        shown_progress(bar=not shows_report) as progress,
    ):
        records = _told(verification, workers, summary, progress)
        if binary:
            chunks = parquet_chunks(VERIFICATION_TABLE, records, {"before": before, "after": after})
        else:
            lines = verify_stores_text.report(records, summary, output_format)
            chunks = (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines)
        if output is not None:
            options.write_output(output, chunks, force=True, binary=binary)
        else:
            for chunk in chunks:
                # At once: a comparison may take long, and file names may contain bytes that are not text.
                click.echo(chunk, nl=False)
    if output not in (None, options.STANDARD):
        echo(f"vhlo: {verify_stores_text.total(summary)}; the report is in {output}", err=True)
    if summary.files["unreadable"]:
        return 2
    return 0 if summary.ok else 1


def _told(
    verification: api.StoreVerification, workers: Workers, summary: PairSummary, progress: Progress
) -> Iterator[PairRecord]:
    """Yield the records, counted, and report progress."""
    pairs = verification.pairs
    for record in verification.records(workers):
        summary.add(record)
        yield record
        progress.expect(pairs.number, pairs.size, more=not pairs.is_complete)
        progress.advance(record.size + record.new_size, ok=record.ok)
