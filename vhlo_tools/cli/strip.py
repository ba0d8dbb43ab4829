"""``vhlo strip``: an artifact, or a file with one inside, without source locations."""

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
    """Write ARTIFACT without its source locations; on the bytes, so that any version and size will do.

    A jax.export file remains one.
    """
    options.check_output(output, force=force, binary=True)
    opened = options.read_artifact(source)
    if isinstance(opened, JaxContainer):
        container = opened.stripped()
        options.write_output(output, container.chunks, force=force, binary=True)
        return options.artifact_report(container, output)
    # In pieces, so that constants are never held.
    chunks = list(opened.stripped())
    options.write_output(output, chunks, force=force, binary=True)
    return {**options.artifact_report(opened, output), "size": sum(map(len, chunks))}
