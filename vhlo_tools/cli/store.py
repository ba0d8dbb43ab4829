"""``vhlo store``: watches a store of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.cli.reports import check_report, encoded, fields_of, json_lines, readable_path
from vhlo_tools.files import said_of_others
from vhlo_tools.printable import json_text
from vhlo_tools.spec import WindowName
from vhlo_tools.stores import (
    AT_REST,
    STATUS_TABLE,
    WINDOWS,
    FileStatus,
    StoreFile,
    horizon_end,
    parquet_chunks,
)


@click.group(cls=Group)
def store() -> None:
    """Watch a store of programs."""


@store.command()
@options.paths_argument()
@click.option("--horizon", default="90d", show_default=True, help="The period to look ahead: 90d, 4w, 6m, 2y.")
@click.option(
    "--window",
    "windows",
    type=click.Choice(WINDOWS),
    multiple=True,
    help="The windows to consider; by default backward and jax-export. May be repeated.",
)
@options.exclude_option()
@options.jobs_option("The number of processes that read; by default only this one.")
@options.dask_option
@options.as_of_option
@options.format_choice(
    *("text", "json", "parquet"),
    what="parquet is a table for other programs, and needs -o FILE and the extra `distributed`.",
)
@options.result_option()
def status(
    paths: tuple[str, ...],
    horizon: str,
    windows: tuple[WindowName, ...],
    exclude: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    as_of: date | None,
    output_format: str,
    output: str | None,
) -> int:
    """Show which files at PATH leave their windows, and who reads them.

    Files are artifacts and jax.export files. Windows start on the first day of the version that a file was written
    for. backward, 5 years, or 6 months for 0.x: releases made in this time are promised to read the file. jax-export, 6
    months: releases of jax made in this time are promised to call it. With --window forward, 2 years, or a month for
    0.x: releases made in this time are promised to write files that consumers of that version can read.

    Files that leave first are listed first. Exit code 0: no file leaves within the horizon; 1: a file leaves, or has
    left; 2: a file cannot be read.
    """
    binary = check_report(output, output_format)
    today = as_of or date.today()
    end = horizon_end(horizon, today)
    counted = windows or AT_REST
    counts: Counter[str] = Counter()
    with options.cluster(dask) as client:
        found = api.store_status(
            paths,
            windows=counted,
            executor=client,
            jobs=jobs,
            exclude=exclude,
            as_of=today,
            others=lambda _: counts.update(["unrecognised"]),
        )
        judged = _counting((FileStatus.of(each, counted, today, end) for each in found), counts)
        lines = (_json if output_format == "json" else _text)(judged, end, counts)
        if output is None:
            for line in lines:
                echo(line)
        else:
            said = {"day": str(today), "horizon": str(end)}
            chunks = parquet_chunks(STATUS_TABLE, judged, said) if binary else encoded(lines)
            options.write_output(output, chunks, force=True, binary=binary, what=None)
            if output != options.STANDARD:
                echo(f"vhlo: {_total(end, counts)}; the result is in {output}", err=True)
    if counts["unreadable"]:
        return 2
    return 1 if counts["left"] or counts["leaves"] else 0


def _counting(judged: Iterator[FileStatus], counts: Counter[str]) -> Iterator[FileStatus]:
    for each in judged:
        counts[each.status] += 1
        yield each


def _text(judged: Iterator[FileStatus], end: date, counts: Counter[str]) -> Iterator[str]:
    for each in judged:
        seen, leaves = each.file, each.leaves
        version = str(seen.version) if seen.version else "-"
        last = f"{leaves[1]} {leaves[0]}" if leaves else "-"
        yield f"{each.status:<10} {version:<8} {last:<21} {readable_path(seen.path)}"
        if seen.error is not None:
            yield f"  {seen.error}"
        if seen.version is not None:
            others = ", ".join(f"{name} until {day}" for name, day in seen.windows)
            yield f"  written {seen.written or 'for an unknown version'}; {others or 'no windows are known'}"
            yield f"  read by {', '.join(map(str, seen.readers)) or 'no known release'}"
    yield _total(end, counts)


def _total(end: date, counts: Counter[str]) -> str:
    said = {"left": "left", "leaves": f"leave until {end}", "within": "stay longer", "none": "without a window"}
    said["unreadable"] = "unreadable"
    total = ", ".join(f"{counts[state]} {text}" for state, text in said.items() if counts[state]) or "no files"
    return total + said_of_others(counts["unrecognised"])


def _json(judged: Iterator[FileStatus], end: date, counts: Counter[str]) -> Iterator[str]:
    files = (json_text(_as_json(each.file, each.status, each.leaves)) for each in judged)
    return json_lines(files, lambda: {"summary": {"unrecognised": 0, **counts}}, {"horizon": str(end)})


def _as_json(seen: StoreFile, state: str, leaves: tuple[WindowName, date] | None) -> dict[str, Any]:
    return {
        "path": seen.path,
        "status": state,
        "leaves": leaves and leaves[1],
        "window": leaves and leaves[0],
        **fields_of(seen),
        "windows": dict(seen.windows),
        "readers": list(map(fields_of, seen.readers)),
    }
