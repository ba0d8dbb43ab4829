"""``vhlo strip``: removes source locations from an artifact, or from a file that contains one."""

from __future__ import annotations

from typing import Any

from vhlo_tools.artifact import JaxContainer, Making
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command


@command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.manifest_option
@options.force_option
@options.reporting
def strip(source: str, output: str, with_manifest: bool, force: bool) -> dict[str, Any]:
    """Remove the source locations of ARTIFACT; this edits the bytes, and supports any version and size.

    A jax.export file remains one.
    """
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)
    opened = options.read_artifact(source)
    # In chunks, so that constants are never copied.
    result = opened.stripped() if isinstance(opened, JaxContainer) else opened.without_locations()
    options.write_artifact(
        output, result, force=force, with_manifest=with_manifest, made=Making("strip"), source=opened.chunks
    )
    return options.artifact_report(result, output)
