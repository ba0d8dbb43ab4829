"""``vhlo retarget``: an artifact, or a file with one inside, to another version."""

from __future__ import annotations

from datetime import date
from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.artifact import Artifact, JaxContainer
from vhlo_tools.cli import options


@click.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.target_option(default=None)
@options.as_of_option
@options.engine_option(("auto", "bytes", "mlir"), "What moves it: our rules on its bytes, or the library.")
@options.provider_option
@options.trusted_option
@options.force_option
@options.reporting
def retarget(
    source: str,
    output: str,
    target: str,
    as_of: date | None,
    engine: Any,
    provider: str | None,
    trusted: bool,
    force: bool,
) -> dict[str, Any]:
    """Move ARTIFACT up or down to another version; dialects it holds already stay.

    A jax.export file remains one, with its derivatives moved as well.
    """
    options.check_output(output, force=force, binary=True)

    def moved(artifact: Artifact) -> Artifact:
        return api.retarget(artifact, target, engine=engine, as_of=as_of, provider=provider, trusted=trusted)

    opened = options.read_artifact(source)
    result = opened.with_artifacts(moved) if isinstance(opened, JaxContainer) else moved(opened)
    options.write_output(output, result.chunks, force=force, binary=True)
    return options.artifact_report(result, output)
