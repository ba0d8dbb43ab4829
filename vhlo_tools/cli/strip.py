"""``vhlo strip``: removes source locations from an artifact, or from a file that contains one."""

from __future__ import annotations

from typing import Any

import click

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli import options


@click.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.force_option
@options.reporting
def strip(source: str, output: str, force: bool) -> dict[str, Any]:
    """Remove the source locations of ARTIFACT; this edits the bytes, and supports any version and size.

    A jax.export file remains one.
    """
    options.check_output(output, force=force, binary=True)
    opened = options.read_artifact(source)
    if isinstance(opened, JaxContainer):
        container = opened.stripped()
        options.write_output(output, container.chunks, force=force, binary=True)
        return options.artifact_report(container, output)
    # In chunks, so that constants are never copied.
    chunks = list(opened.stripped())
    options.write_output(output, chunks, force=force, binary=True)
    return {**options.artifact_report(opened, output), "size": sum(map(len, chunks))}
