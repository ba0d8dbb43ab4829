"""``vhlo targets``: shows the table of versions and releases, and the meaning of targets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command
from vhlo_tools.compat import newest_released_by
from vhlo_tools.spec import known_releases, known_versions
from vhlo_tools.version import Version

# The windows shown for a date, in addition to the newest version.
_WINDOWS = ("0d", "4w", "12w", "1y", "2y")


@command()
@click.argument("wanted", metavar="[TARGET]...", nargs=-1)
@options.as_of_option
@options.provider_option
@options.format_option
def targets(wanted: tuple[str, ...], as_of: date | None, provider: str | None, output_format: str) -> None:
    """Show every version with its releases, or the meaning of each TARGET.

    With --as-of alone: the newest version at that date, and the meaning of its windows.
    """
    if wanted:
        rows = [_meaning(spelling, as_of, provider) for spelling in wanted]
    elif as_of:
        newest_released_by(as_of)
        rows = [_meaning(window, as_of, provider) for window in _WINDOWS if _reaches(window, as_of)]
    else:
        rows = _versions()
    if output_format == "json":
        options.echo_json(rows)
    else:
        _show(rows)


def _reaches(window: str, as_of: date) -> bool:
    first = min(release.date for release in known_releases())
    days = int(window[:-1]) * {"d": 1, "w": 7, "y": 366}[window[-1]]
    return (as_of - first).days >= days


def _meaning(spelling: str, as_of: date | None, provider: str | None) -> dict[str, Any]:
    target = api.resolve_target(spelling, as_of=as_of, provider=provider)
    entry = next((each for each in known_versions() if each.version == target.version.minor_release), None)
    return {
        "target": spelling,
        "stablehlo": str(target.version),
        "version_date": str(entry.date) if entry else None,
        "bytecode_version": entry.bytecode if entry else None,
        "meaning": target.reason if entry else f"{target.reason}, but no such version is known",
    }


def _versions() -> list[dict[str, Any]]:
    return [
        {
            "stablehlo": str(entry.version),
            "date": str(entry.date),
            "bytecode_version": entry.bytecode,
            "releases": _releases_with(entry.version),
            "brought": entry.brought,
        }
        for entry in known_versions()
    ]


def _releases_with(version: Version) -> list[str]:
    return [str(release) for release in known_releases() if release.stablehlo.minor_release == version]


def _show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in rows[0]:
        fixed = key not in ("brought", "meaning", "releases")
        table.add_column(key.replace("_", " "), no_wrap=fixed, overflow="fold", ratio=None if fixed else 1)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    # Without wrapping for a program, which reads one row per line.
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else str(value)
