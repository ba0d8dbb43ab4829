"""``vhlo report``: writes a page that shows a program, two programs side by side, or a store."""

from __future__ import annotations

from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command


@command()
@options.input_argument("PROGRAM|STORE")
@click.argument("other", metavar="[OTHER]", required=False)
@options.output_option(required=True)
@click.option(
    "--target",
    metavar="TARGET",
    help="The consumer that findings are about: a version (1.9.0), a release (jaxlib==0.4.31), a window (12w).",
)
@options.as_of_option
@options.read_in_time_option
@options.provider_option
@options.trusted_option
@options.force_option
def report(source: str, other: str | None, output: str, force: bool, **showing: Any) -> None:
    """Write a page to look at: one HTML file, which asks nothing of the network.

    Of PROGRAM, any program or artifact: which versions brought what is in it, which releases read it, and what blocks
    others; the graph of its ops; its constants, inputs, outputs and aliases; the findings. With OTHER, how the two
    differ. Of STORE, a folder, or results of a migration as Parquet: who reads its files, when they leave their
    windows, and what blocks most.
    """
    options.check_output(output, force=force, binary=False)
    if other is None:
        program, name = options.read_program(source)
        page = api.report(program, name=name, **showing)
    else:
        (program, name), (compared, other_name) = options.read_programs(source, other)
        page = api.report(program, compared, name=name, other_name=other_name, **showing)
    if not page.has_picture:
        echo(
            "vhlo: warning: the page has no picture of the graph: elkjs, which lays it out, is not installed; "
            "scripts/page_assets.py fetches it with npm",
            err=True,
        )
    options.write_output(output, [memoryview(bytes(page))], force=force, binary=False)
