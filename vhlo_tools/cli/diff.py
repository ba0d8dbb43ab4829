"""``vhlo diff``: how two programs differ."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Final

import click

from vhlo_tools import api
from vhlo_tools.artifact import DIFFERENCE_KINDS, Difference, DifferenceKind
from vhlo_tools.cli import options
from vhlo_tools.errors import UnsupportedFeatureError

_WIDTH: Final = 80
# Of each kind; JSON has all.
_SHOWN: Final = 50


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--locations", is_flag=True, help="Compare source locations too.")
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice(DIFFERENCE_KINDS),
    help="A kind of differences that do not count. May be repeated.",
)
@options.provider_option
@options.trusted_option
@options.format_option
def diff(
    before: str,
    after: str,
    locations: bool,
    ignore: tuple[DifferenceKind, ...],
    provider: str | None,
    trusted: bool,
    output_format: str,
) -> int:
    """Show how the programs A and B differ, each of any kind; - is stdin.

    Exit code 0: they do not; 1: they do; 2: one of them cannot be read.
    """
    if before == after == options.STANDARD:
        raise click.UsageError("only one of the programs can come from stdin")
    (one, name), (other, other_name) = options.read_program(before), options.read_program(after)
    try:
        found = api.diff(
            one,
            other,
            locations=locations,
            ignore=ignore,
            names=(name, other_name),
            provider=provider,
            trusted=trusted,
        )
    except UnsupportedFeatureError as error:
        # No answer, for it is not known whether the programs differ.
        click.echo(f"vhlo: {error}", err=True)
        return 2
    if output_format == "json":
        options.echo_json({"equal": not found, "differences": [asdict(each) for each in found]})
    else:
        for line in _lines(found):
            click.echo(line)
    return 1 if found else 0


def _lines(found: Sequence[Difference]) -> Iterator[str]:
    for kind, differences in groupby(found, key=lambda each: each.kind):
        group = list(differences)
        yield f"{kind}: {len(group)} difference{'s' if len(group) > 1 else ''}"
        for each in group[:_SHOWN]:
            if each.path:
                yield f"  {each.path}"
            for sign, text in (("-", each.before), ("+", each.after)):
                if text is not None:
                    yield from textwrap.wrap(
                        text,
                        _WIDTH,
                        initial_indent=f"    {sign} ",
                        subsequent_indent="      ",
                        break_on_hyphens=False,
                    )
        if len(group) > _SHOWN:
            yield f"  and {len(group) - _SHOWN} more; --output-format json has all"
