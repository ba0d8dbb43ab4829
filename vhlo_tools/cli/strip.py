"""``vhlo strip``: an artifact without source locations."""

from __future__ import annotations

import click

from vhlo_tools.artifact import Artifact
from vhlo_tools.cli import options


@click.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.force_option
def strip(source: str, output: str, force: bool) -> None:
    """Write ARTIFACT without its source locations; on the bytes, so that any version and size will do."""
    options.check_output(output, force=force, binary=True)
    data, name = options.read_input(source)
    options.write_output(output, Artifact(data, name=name).stripped(), force=force, binary=True)
