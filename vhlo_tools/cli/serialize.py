"""``vhlo serialize``: writes any accepted program as a portable artifact."""

from __future__ import annotations

from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.artifact import Making
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command
from vhlo_tools.files import identify


@command()
@options.input_argument("PROGRAM")
@options.output_option(required=True)
@options.target_option(default="current")
@options.as_of_option
@click.option("--allow-other-dialects", is_flag=True, help="Keep ops of dialects other than StableHLO, such as sdy.")
@options.no_legalize_option
@options.expand_options
@click.option(
    "--no-alias-lint", "alias_lint", flag_value=False, default=True, help="Accept aliases and donors that XLA rejects."
)
@click.option(
    "--weights",
    metavar="FILE",
    help="Make the weights of a framework's program arguments, and write their values to this safetensors file.",
)
@click.option("--signature", metavar="NAME", help="Of a SavedModel, the signature; by default serving_default.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=0),
    help="Of a SavedModel, the size of the first dimension of inputs that do not specify it.",
)
@click.option(
    "--importer",
    type=click.Choice(["auto", "torchax", "torch-mlir"]),
    help="Of a torch.export file, the importer; by default auto: torchax if it is installed, and the other one for "
    "what the first refuses.",
)
@click.option(
    "--import-timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Of a torch.export file, the time limit of torch-mlir; by default 600.",
)
@click.option(
    "--import-memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GIB",
    help="Of a torch.export file, the memory limit of torch-mlir; by default 8.",
)
@click.option(
    "--verify/--no-verify",
    default=None,
    help="Of a framework's program, whether its results are compared with the framework's, on the example inputs in it "
    "or on random ones; by default where it has example inputs.",
)
@options.read_with_option
@click.option("--strip-debug-info", is_flag=True, help="Omit source locations.")
@options.provider_option
@options.trusted_option
@options.manifest_option
@options.force_option
@options.reporting
def serialize(
    source: str,
    output: str,
    target: str,
    alias_lint: bool,
    weights: str | None,
    import_memory: float | None,
    read_with: str | None,
    strip_debug_info: bool,
    trusted: bool,
    with_manifest: bool,
    force: bool,
    **writing: Any,
) -> dict[str, Any]:
    """Write PROGRAM as a portable artifact that the target can read.

    PROGRAM is MLIR text or bytecode, a portable artifact, a jax.export file, or, with the extra "torch", a torch.export
    file (.pt2), distinguished by content; - is stdin. Read a .pt2 file only if you trust it: torch unpickles parts of
    it.

    With the extra "tensorflow" it may also be the folder of a SavedModel, of which one signature is written. Read one
    only if you trust it: TensorFlow runs ops of it.
    """
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)
    given, name = options.read_program(source)
    program = identify(given, name)
    writing["import_memory"] = None if import_memory is None else int(import_memory * (1 << 30))
    if weights is not None:
        if read_with is not None:
            raise click.UsageError("--read-with is for MLIR text, and --weights for the programs of frameworks")
        options.check_output(weights, force=force, binary=True)
        model = api.export_model(program, target, weights="arguments", name=name, **writing)
        artifact = api.linted(model.artifact) if alias_lint else model.artifact
        artifact = api.strip(artifact) if strip_debug_info else artifact
        artifact = artifact.with_making(Making("serialize", target, None, {"weights": "arguments"}))
        options.write_output(weights, model.weights_file(), force=force, binary=True)
    else:
        writing |= {"alias_lint": alias_lint, "strip_debug_info": strip_debug_info, "trusted": trusted}
        if read_with is not None:
            options.install_reader(read_with)
            writing["read_with"] = read_with
        artifact = api.serialize(program, target, name=name, **writing)
    read = None if program.data is None else [program.data]
    options.write_artifact(output, artifact, force=force, with_manifest=with_manifest, source=read)
    return options.artifact_report(artifact, output)
