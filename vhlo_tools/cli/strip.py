"""``vhlo strip``: an artifact without source locations."""

from __future__ import annotations

from typing import Any

import click

from vhlo_tools.artifact import Artifact
from vhlo_tools.cli import options


@click.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.force_option
@options.reporting
def strip(source: str, output: str, force: bool) -> dict[str, Any]:
    """Write ARTIFACT without its source locations; on the bytes, so that any version and size will do."""
    options.check_output(output, force=force, binary=True)
    data, name = options.read_input(source)
    artifact = Artifact(data, name=name)
    # In pieces, so that constants are never held.
    chunks = list(artifact.stripped())
    options.write_output(output, chunks, force=force, binary=True)
    return {**options.artifact_report(artifact, output), "size": sum(map(len, chunks))}
