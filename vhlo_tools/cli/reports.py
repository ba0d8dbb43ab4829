"""Reports about many files: what those of `migrate`, `store`, `verify` and `matrix` have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import click

from vhlo_tools.cli import options
from vhlo_tools.printable import json_document, json_record, printable, printable_lines


def check_report(output: str | None, output_format: str) -> bool:
    """Reject, before any work, a report that could not be written; return whether it is binary."""
    binary = output_format == "parquet"
    if binary and output is None:
        raise click.UsageError("a Parquet file is not for a terminal: give -o FILE")
    if output is not None:
        options.check_output(output, force=True, binary=binary)
    return binary


def encoded(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines of text or of JSON, which stays as it is."""
    return (f"{printable_lines(line)}\n".encode() for line in lines)


def json_lines(
    files: Iterable[str], after: Callable[[], Mapping[str, object]], before: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Yield the lines of an object with a list of files, which are JSON, one at a time."""
    return json_document(json_record(before or {}), "files", files, after)


def fields_of(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def readable_path(path: str) -> str:
    """Return a printable path; the bytes of a file name may not be text."""
    return printable(os.fsencode(path).decode("utf-8", "replace"))


def readable_size(size: int) -> str:
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} B"
