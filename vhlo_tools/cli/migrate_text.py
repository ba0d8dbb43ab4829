"""Output of ``vhlo migrate``: lines of text or of JSON about files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Final

from vhlo_tools.cli import options
from vhlo_tools.findings import findings_lines
from vhlo_tools.printable import printable
from vhlo_tools.stores import MigrationRecord, MigrationSummary

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


def report(
    records: Iterable[MigrationRecord], summary: MigrationSummary, output_format: str, jobs: int, *, dry_run: bool
) -> Iterator[str]:
    """Yield the lines of a report. The text of a plan lists all files, other text those not moved."""
    if output_format == "text":
        for record in records:
            if dry_run or not record.ok:
                yield from _lines(record)
        yield total(summary, jobs)
        return
    if output_format == "jsonl":
        yield from map(as_line, records)
        return
    # One record at a time, because there may be very many.
    yield "{"
    yield f'"ok": {json.dumps(summary.ok)},'
    yield '"files": ['
    last = None
    for record in records:
        if last is not None:
            yield f"{last},"
        last = as_line(record)
    if last is not None:
        yield last
    yield "],"
    estimate = {"estimated_seconds": summary.seconds(jobs)} if dry_run else {}
    yield f'"summary": {json.dumps({**summary.as_json(), **estimate})}'
    yield "}"


def as_line(record: MigrationRecord) -> str:
    return json.dumps(_as_json(record), default=str, allow_nan=False)


def _as_json(record: MigrationRecord) -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    findings = [options.finding_as_json(each) for each in record.findings]
    return {"path": record.path, "ok": record.ok, **values, "findings": findings}


def total(summary: MigrationSummary, jobs: int) -> str:
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
