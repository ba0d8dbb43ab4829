"""``vhlo report``: writes a page that shows a program."""

from __future__ import annotations

from datetime import date

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.helping import command


@command()
@options.input_argument("MODEL")
@options.output_option(required=True)
@click.option(
    "--target",
    metavar="TARGET",
    help="The consumer that the findings are about: a version (1.9.0), a release (jaxlib==0.4.31), a window (12w).",
)
@options.as_of_option
@options.provider_option
@options.trusted_option
@options.force_option
def report(
    source: str,
    output: str,
    target: str | None,
    as_of: date | None,
    provider: str | None,
    trusted: bool,
    force: bool,
) -> None:
    """Write a page that shows MODEL, any program or artifact: one HTML file, which asks nothing of the network.

    Which versions brought what is in it, which releases read it, and what blocks others; the graph of its ops; its
    constants, inputs, outputs and aliases; the findings.
    """
    options.check_output(output, force=force, binary=False)
    program, name = options.read_program(source)
    page = api.report(program, target, as_of=as_of, name=name, provider=provider, trusted=trusted)
    if not page.has_picture:
        echo(
            "vhlo: warning: the page has no picture of the graph: elkjs, which lays it out, is not installed; "
            "scripts/page_assets.py fetches it with npm",
            err=True,
        )
    options.write_output(output, [memoryview(bytes(page))], force=force, binary=False)
