"""``vhlo targets``: shows the table of versions and releases, and the meaning of targets."""

from __future__ import annotations

from datetime import date
from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Column, show_table
from vhlo_tools.cli.helping import command
from vhlo_tools.compat import newest_released_by
from vhlo_tools.spec import known_releases, known_versions

# The columns of a table that no terminal shows, and of a cell that is broken if the table does not fit.
_WIDTH = 100
_LONG = 36
_TITLES = {"version_date": "date", "bytecode_version": "bytecode"}

# The windows shown for a date, in addition to the newest version, with their most days.
_WINDOWS = {"0d": 0, "4w": 28, "12w": 84, "1y": 366, "2y": 732}


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
        known = (as_of - min(release.date for release in known_releases())).days
        rows = [_meaning(window, as_of, provider) for window, days in _WINDOWS.items() if days <= known]
    else:
        rows = _versions()
    if output_format == "json":
        options.echo_json(rows)
    else:
        cells = [list(map(_cell, row.values())) for row in rows]
        long = {key for at, key in enumerate(rows[0]) if any(len(row[at]) > _LONG for row in cells)}
        columns = [Column(_TITLES.get(key, key), whole=key not in long) for key in rows[0]]
        show_table(columns, cells, width=_WIDTH)


def _cell(value: object) -> str:
    text = "" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
    # A list of targets, which has no spaces, is broken between them.
    return text if " " in text or len(text) <= _LONG else text.replace(",", ", ")


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
            "releases": [str(each) for each in known_releases() if each.stablehlo.minor_release == entry.version],
            "brought": entry.brought,
        }
        for entry in known_versions()
    ]
