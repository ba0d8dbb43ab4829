"""``vhlo deserialize``: converts an artifact to a program."""

from __future__ import annotations

from typing import get_args

import click

from vhlo_tools import api
from vhlo_tools.api import Emit
from vhlo_tools.artifact import Artifact
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.printable import hlo_text, mlir_text


@command()
@options.input_argument("ARTIFACT")
@options.output_option(required=False)
@click.option(
    "--emit",
    type=click.Choice(get_args(Emit)),
    default="text",
    show_default=True,
    help="StableHLO as text or as ordinary bytecode, VHLO as generic text, or HLO.",
)
@click.option("--debug-info", is_flag=True, help="Show locations in text.")
@options.provider_option
@options.trusted_option
@options.force_option
def deserialize(
    source: str, output: str, emit: Emit, debug_info: bool, provider: str | None, trusted: bool, force: bool
) -> None:
    """Convert ARTIFACT, or the artifact inside a jax.export file, to a program."""
    binary = emit in ("bytecode", "hlo-proto")
    options.check_output(output, force=force, binary=binary)
    data, name = options.read_input(source)
    opened = api.open_artifact(data, name=name)
    program = api.program_of(opened, emit, debug_info=debug_info, provider=provider, trusted=trusted)
    if emit != "vhlo":
        _note_newer(opened, provider)
    if output == options.STANDARD and not binary:
        program = (hlo_text if emit == "hlo-text" else mlir_text)(program.decode()).encode()
    options.write_output(output, [program], force=force, binary=binary)


def _note_newer(artifact: Artifact, provider: str | None) -> None:
    """Note that an artifact newer than the library was brought down before it was read."""
    from vhlo_tools.bindings import get_provider

    library = get_provider(provider).library
    if artifact.version.minor_release > library.current.minor_release:
        echo(
            f"vhlo: note: {artifact.name} is of StableHLO {artifact.version}, newer than {library.name}, and was read "
            f"at {library.current}",
            err=True,
        )
