"""``vhlo retarget``: retargets an artifact, or a file that contains one, to another version, or strips it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools import api
from vhlo_tools.artifact import Artifact, Making
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command

if TYPE_CHECKING:
    from vhlo_tools.artifact import JaxContainer


@command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.target_option(default=None, required=False)
@click.option("--strip-debug-info", is_flag=True, help="Remove source locations; without --target, nothing else.")
@options.as_of_option
@options.engine_option(("auto", "bytes", "mlir"), "The engine: rules of vhlo_tools on the bytes, or the library.")
@options.expand_options
@options.provider_option
@options.trusted_option
@options.manifest_option
@options.force_option
@options.reporting
def retarget(
    source: str,
    output: str,
    target: str | None,
    strip_debug_info: bool,
    with_manifest: bool,
    force: bool,
    **moving: Any,
) -> dict[str, Any]:
    """Retarget ARTIFACT to a newer or older version; ops of other dialects that it contains are kept.

    A jax.export file remains one, and its derivatives are retargeted as well. --strip-debug-info alone edits the bytes
    and keeps the version, whichever it is.
    """
    if target is None and not strip_debug_info:
        raise click.UsageError("give --target, or --strip-debug-info, which keeps the version")
    if target is None and (unused := options.given(*moving)):
        raise click.UsageError(f"{unused} needs --target: --strip-debug-info alone keeps the version")
    if moving["engine"] == "bytes" and (moving["expand"] or moving["allow_relaxed"]):
        raise click.UsageError("--expand and --allow-relaxed need MLIR: give --engine auto or mlir")
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)
    opened = options.read_artifact(source)
    result: Artifact | JaxContainer
    if target is None:
        result = opened
    elif isinstance(opened, Artifact):
        result = api.retarget(opened, target, **moving)
    else:
        consumers = api.resolve_target(target, as_of=moving["as_of"], provider=moving["provider"]).consumers
        result = opened.checked_for(consumers).with_artifacts(lambda each: api.retarget(each, target, **moving))
    made = None
    if strip_debug_info:
        # In chunks, so that constants are never copied.
        made = _made_stripped(result if isinstance(result, Artifact) else result.artifacts[0])
        result = result.without_locations() if isinstance(result, Artifact) else result.stripped()
    options.write_artifact(output, result, force=force, with_manifest=with_manifest, made=made, source=opened.chunks)
    return options.artifact_report(result, output)


def _made_stripped(retargeted: Artifact) -> Making:
    if retargeted.made is None:
        return Making("strip")
    return replace(retargeted.made, options={**retargeted.made.options, "strip_debug_info": True})
