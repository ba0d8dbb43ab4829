"""Output of ``vhlo verify`` about two stores: lines of text or of JSON about pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Final

from vhlo_tools.cli.migrate_text import readable_path, readable_size
from vhlo_tools.printable import printable_lines
from vhlo_tools.stores import PairRecord, PairStatus, PairSummary

_SAID: Final[dict[PairStatus, str]] = {
    "same": "the same",
    "mismatch": "with other results",
    "unverified": "not verified",
    "missing": "missing",
    "added": "added",
    "failed": "failed",
    "unreadable": "unreadable",
}


def report(records: Iterable[PairRecord], summary: PairSummary, output_format: str) -> Iterator[str]:
    """Yield lines as soon as they are known; ``summary`` counts the records that are taken.

    Text lists failures only.
    """
    match output_format:
        case "text":
            for record in records:
                if not record.ok:
                    # Reasons have what files say.
                    yield from map(printable_lines, _lines(record))
            yield total(summary)
        case "jsonl":
            yield from map(_as_line, records)
        case _:
            yield "{"
            yield '"files": ['
            last = None
            for record in records:
                if last is not None:
                    yield f"{last},"
                last = _as_line(record)
            if last is not None:
                yield last
            yield "],"
            yield f'"ok": {json.dumps(summary.ok)},'
            yield f'"summary": {json.dumps(summary.as_json())}'
            yield "}"


def total(summary: PairSummary) -> str:
    counts = []
    for status, said in _SAID.items():
        if number := summary.files[status]:
            proofs = _proofs(summary) if status == "same" else ""
            counts.append(f"{number} {said} ({proofs}{readable_size(summary.sizes[status])})")
    return ", ".join(counts)


def _proofs(summary: PairSummary) -> str:
    counts = [f"{number} by {proof.removeprefix('same ')}" for proof, number in sorted(summary.verified.items())]
    return f"{', '.join(counts)}; "


def _lines(record: PairRecord) -> Iterator[str]:
    versions = [str(each or "-") for each in (record.version, record.new_version)]
    said = " -> ".join(versions) if versions[0] != versions[1] else versions[0]
    size = readable_size(record.size or record.new_size)
    yield f"{record.status:<10} {said:<16} {size:>9}  {readable_path(record.path)}"
    if record.reason is not None:
        yield from (f"  {line}" for line in record.reason.splitlines())


def _as_line(record: PairRecord) -> str:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return json.dumps({"path": record.path, "ok": record.ok, **values}, default=str, allow_nan=False)
