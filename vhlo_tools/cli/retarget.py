"""``vhlo retarget``: retargets an artifact, or a file that contains one, to another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from vhlo_tools import api
from vhlo_tools.artifact import Artifact
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command

if TYPE_CHECKING:
    from vhlo_tools.artifact import JaxContainer


@command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.target_option(default=None)
@options.as_of_option
@options.engine_option(("auto", "bytes", "mlir"), "The engine: rules of vhlo_tools on the bytes, or the library.")
@options.expand_options
@options.provider_option
@options.trusted_option
@options.manifest_option
@options.force_option
@options.reporting
def retarget(source: str, output: str, target: str, with_manifest: bool, force: bool, **moving: Any) -> dict[str, Any]:
    """Retarget ARTIFACT to a newer or older version; ops of other dialects that it contains are kept.

    A jax.export file remains one, and its derivatives are retargeted as well.
    """
    if moving["engine"] == "bytes" and (moving["expand"] or moving["allow_relaxed"]):
        raise click.UsageError("--expand and --allow-relaxed need MLIR: give --engine auto or mlir")
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)
    opened = options.read_artifact(source)
    result: Artifact | JaxContainer
    if isinstance(opened, Artifact):
        result = api.retarget(opened, target, **moving)
    else:
        consumers = api.resolve_target(target, as_of=moving["as_of"], provider=moving["provider"]).consumers
        result = opened.checked_for(consumers).with_artifacts(lambda each: api.retarget(each, target, **moving))
    options.write_artifact(output, result, force=force, with_manifest=with_manifest, source=opened.chunks)
    return options.artifact_report(result, output)
