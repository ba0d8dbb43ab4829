"""``vhlo retarget``: retargets an artifact, or a file that contains one, to another version."""

from __future__ import annotations

from datetime import date
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
def retarget(
    source: str,
    output: str,
    target: str,
    as_of: date | None,
    engine: Any,
    expand: bool,
    allow_relaxed: tuple[str, ...],
    allow_signature_change: bool,
    provider: str | None,
    trusted: bool,
    with_manifest: bool,
    force: bool,
) -> dict[str, Any]:
    """Retarget ARTIFACT to a newer or older version; ops of other dialects that it contains are kept.

    A jax.export file remains one, and its derivatives are retargeted as well.
    """
    if engine == "bytes" and (expand or allow_relaxed):
        raise click.UsageError("--expand and --allow-relaxed need MLIR: give --engine auto or mlir")
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)

    def moved(artifact: Artifact) -> Artifact:
        return api.retarget(
            artifact,
            target,
            engine=engine,
            expand=expand,
            allow_relaxed=allow_relaxed,
            allow_signature_change=allow_signature_change,
            as_of=as_of,
            provider=provider,
            trusted=trusted,
        )

    result: Artifact | JaxContainer
    opened = options.read_artifact(source)
    if not isinstance(opened, Artifact):
        consumers = api.resolve_target(target, as_of=as_of, provider=provider).consumers
        result = opened.checked_for(consumers).with_artifacts(moved)
    else:
        result = moved(opened)
    options.write_artifact(output, result, force=force, with_manifest=with_manifest, source=opened.chunks)
    return options.artifact_report(result, output)
