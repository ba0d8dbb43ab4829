"""``vhlo golden``: records programs with their outputs, and replays them with the current library."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.cli.run import input_option, read_inputs
from vhlo_tools.cli.verify import comparison_as_json, drawing_options, tolerance_options

if TYPE_CHECKING:
    from vhlo_tools.verification import Drawing, Replayed


@click.group(cls=Group)
def golden() -> None:
    """Record programs with inputs and outputs, and check that the outputs stay the same."""


@golden.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument("model", metavar="MODEL")
@input_option
@click.option("--name", help="The name of the record; by default the name of the file up to its first dot.")
@click.option(
    "--target", default="current", show_default=True, help="The version for a program that is not an artifact."
)
@drawing_options
@options.engine_option(api.ENGINE_CHOICES, plugins=True)
@options.handler_option
@tolerance_options
@options.timeout_option
@options.read_in_time_option
@options.provider_option
@options.force_option
def record(
    folder: Path, model: str, inputs: tuple[str, ...], name: str | None, drawing: Drawing, **recording: Any
) -> None:
    """Record MODEL in DIR, with inputs and outputs. The library and engine in use are recorded too."""
    program, said = options.read_program(model)
    values = read_inputs(inputs)
    name = name or (PurePath(said).name.partition(".")[0] if model != options.STANDARD else "stdin")
    if Path(name).name != name or name.startswith("."):
        raise click.UsageError(f"{name!r} is not a valid name of a folder")
    recording |= {"name": name, "seed": drawing.seed, "drawing": drawing}
    made = api.record_golden(folder, program, values if inputs else None, **recording)
    echo(f"{made.folder}: {len(made.inputs)} inputs, {len(made.outputs)} outputs, on {made.engine}", err=True)


@golden.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@options.engine_option(
    api.ENGINE_CHOICES, "By default the engine that each record was made with.", plugins=True, default=None
)
@options.handler_option
@options.timeout_option
@options.provider_option
@options.format_option
def check(folder: Path, output_format: str, **replaying: Any) -> int:
    """Replay every record in DIR, and compare the outputs.

    Exit code 1: outputs have changed, or a program can no longer be run; 2: a record cannot be read; the others are
    replayed nevertheless.
    """
    replayed = []
    for each in api.check_golden(folder, **replaying):
        replayed.append(each)
        if output_format == "text":
            echo(each)
    failed = sum(not each.passed for each in replayed)
    if output_format == "json":
        options.echo_json({"passed": not failed, "records": [_as_json(each) for each in replayed]})
    else:
        echo(f"{len(replayed)} records, {failed} failed", err=True)
    return 2 if any(not each.readable for each in replayed) else 1 if failed else 0


def _as_json(replayed: Replayed) -> dict[str, Any]:
    record = replayed.record
    return {
        "name": record.name,
        "passed": replayed.passed,
        "problem": replayed.problem,
        "readable": replayed.readable,
        "stablehlo": record.stablehlo or None,
        "library": record.library or None,
        "engine": record.engine or None,
        "outputs": [comparison_as_json(each) for each in replayed.outputs],
    }
