"""``vhlo verify`` of two stores: every program of one is compared with its partner in the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Progress, echo, shown_progress
from vhlo_tools.cli.reports import check_report, encoded, fields_of, json_lines, readable_path, readable_size
from vhlo_tools.files import place, said_of_others
from vhlo_tools.printable import json_text
from vhlo_tools.stores import VERIFICATION_TABLE, PairRecord, PairStatus, PairSummary, Workers, is_store, parquet_chunks

# Output of ``vhlo verify`` about two stores: lines of text or of JSON about pairs

_SAID: Final[dict[PairStatus, str]] = {
    "same": "the same",
    "mismatch": "with other results",
    "unverified": "not verified",
    "missing": "missing",
    "added": "added",
    "failed": "failed",
    "unreadable": "unreadable",
}


def report_lines(records: Iterable[PairRecord], summary: PairSummary, output_format: str) -> Iterator[str]:
    """Yield lines as soon as they are known; ``summary`` counts the records that are taken.

    Text lists failures only.
    """
    match output_format:
        case "text":
            for record in records:
                if not record.ok:
                    # Reasons have what files say.
                    yield from _lines(record)
            yield total_line(summary)
        case "jsonl":
            yield from map(_as_line, records)
        case _:
            yield from json_lines(map(_as_line, records), lambda: {"ok": summary.ok, "summary": summary.as_json()})


def total_line(summary: PairSummary) -> str:
    counts = []
    for status, said in _SAID.items():
        if number := summary.files[status]:
            shown = [f"{files} by {how.removeprefix('same ')}" for how, files in sorted(summary.verified.items())]
            proofs = f"{', '.join(shown)}; " if status == "same" else ""
            counts.append(f"{number} {said} ({proofs}{readable_size(summary.sizes[status])})")
    return ", ".join(counts) + said_of_others(summary.others)


def _lines(record: PairRecord) -> Iterator[str]:
    versions = [str(each or "-") for each in (record.version, record.new_version)]
    said = " -> ".join(versions) if versions[0] != versions[1] else versions[0]
    size = readable_size(record.size or record.new_size)
    yield f"{record.status:<10} {said:<16} {size:>9}  {readable_path(record.path)}"
    if record.reason is not None:
        yield from (f"  {line}" for line in record.reason.splitlines())


def _as_line(record: PairRecord) -> str:
    return json_text({"path": record.path, "ok": record.ok, **fields_of(record)})


def are_stores(before: str, after: str) -> bool:
    """Whether a path stands for many programs: a folder, a prefix of URLs, or a glob."""
    return any(each != options.STANDARD and is_store(str(place(each))) for each in (before, after))


def verify_stores(
    before: str,
    after: str,
    prover: api.EquivalenceChecker,
    *,
    exclude: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    output_format: str,
    output: str | None,
) -> int:
    binary = check_report(output, output_format)
    verification = api.StoreVerification(before, after, prover, exclude)
    summary = PairSummary()
    # On a terminal that shows the report, its lines are the progress.
    shows_report = output is None and sys.stdout is not None and sys.stdout.isatty()
    with options.workers(dask, jobs, (before, after)) as workers, shown_progress(bar=not shows_report) as progress:
        records = _told(verification, workers, summary, progress)
        if binary:
            chunks = parquet_chunks(VERIFICATION_TABLE, records, {"before": before, "after": after})
        else:
            chunks = encoded(report_lines(records, summary, output_format))
        if output is not None:
            options.write_output(output, chunks, force=True, binary=binary, what=None)
        else:
            for chunk in chunks:
                # At once: a comparison may take long, and file names may contain bytes that are not text.
                click.echo(chunk, nl=False)
    if output not in (None, options.STANDARD):
        echo(f"vhlo: {total_line(summary)}; the result is in {output}", err=True)
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
        summary.others = pairs.others
        yield record
        progress.expect(pairs.number, pairs.size, more=not pairs.is_complete)
        progress.advance(record.size + record.new_size, ok=record.ok)
