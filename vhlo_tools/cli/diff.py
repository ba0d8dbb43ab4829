"""``vhlo diff``: shows the differences of two programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

import click

from vhlo_tools import api
from vhlo_tools.artifact import DIFFERENCE_KINDS, Difference
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Column, echo, show_table, window_width
from vhlo_tools.cli.helping import command
from vhlo_tools.errors import UnsupportedFeatureError
from vhlo_tools.printable import printable

_WIDTH: Final = 80
# The limit for each kind; JSON contains all.
_SHOWN: Final = 50


@command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--locations", is_flag=True, help="Compare source locations too.")
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice(DIFFERENCE_KINDS),
    metavar="KIND",
    help=f"A kind of difference to ignore: {', '.join(DIFFERENCE_KINDS)}. May be repeated.",
)
@options.read_in_time_option
@options.provider_option
@options.trusted_option
@options.format_option
def diff(before: str, after: str, output_format: str, **comparing: Any) -> int:
    """Show the differences of the programs A and B, each in any accepted format; - is stdin.

    Exit code 0: no differences; 1: differences; 2: a program cannot be read.
    """
    (one, name), (other, other_name) = options.read_programs(before, after)
    try:
        found = api.diff(one, other, names=(name, other_name), **comparing)
    except UnsupportedFeatureError as error:
        # Exit code 2, because it is unknown whether the programs differ.
        echo(f"vhlo: {error}", err=True)
        return 2
    if output_format == "json":
        options.echo_json({"equal": not found, "differences": [asdict(each) for each in found]})
    else:
        _show(found, name, other_name)
    return 1 if found else 0


def _show(found: Sequence[Difference], name: str, other_name: str) -> None:
    columns = (Column(""), Column(name, style="red"), Column(other_name, style="green"))
    for kind, differences in groupby(found, key=lambda each: each.kind):
        group = list(differences)
        heading = f"{kind}: {len(group)} difference{'s' if len(group) > 1 else ''}"
        if window_width() is None:
            echo("\n".join(map(printable, [heading, *_lines(group[:_SHOWN])])))
        else:
            rows = [(each.path, each.before or "", each.after or "") for each in group[:_SHOWN]]
            show_table(columns, rows, title=heading, indent=2)
        if len(group) > _SHOWN:
            echo(f"  and {len(group) - _SHOWN} more in --output-format json")


def _lines(differences: Sequence[Difference]) -> Iterator[str]:
    for each in differences:
        if each.path:
            yield f"  {each.path}"
        for sign, text in (("-", each.before), ("+", each.after)):
            if text is not None:
                yield from textwrap.wrap(
                    text, _WIDTH, initial_indent=f"    {sign} ", subsequent_indent="      ", break_on_hyphens=False
                )
