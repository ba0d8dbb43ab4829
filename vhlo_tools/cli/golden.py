"""``vhlo golden``: programs recorded with their outputs, and replayed on today's library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.handlers import handler_option, load_handlers
from vhlo_tools.cli.run import input_option, read_inputs
from vhlo_tools.cli.verify import comparison_as_json, drawing_options, tolerance_options

if TYPE_CHECKING:
    from vhlo_tools.golden import Replayed
    from vhlo_tools.verification import Drawing, Tolerance


@click.group()
def golden() -> None:
    """Keep programs with inputs and the outputs that they had, and see that these stay the same."""


@golden.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument("model", metavar="MODEL")
@input_option
@click.option("--name", help="What to call the record; by default as the file is called, without what follows its dot.")
@click.option(
    "--target", default="current", show_default=True, help="The version for a program that is no artifact yet."
)
@drawing_options
@click.option("--engine", type=click.Choice(api.ENGINE_CHOICES), default="auto", show_default=True)
@handler_option
@tolerance_options
@options.provider_option
@options.force_option
def record(
    folder: Path,
    model: str,
    inputs: tuple[str, ...],
    name: str | None,
    target: str,
    drawing: Drawing,
    engine: api.EngineChoice,
    handlers: tuple[str, ...],
    tolerance: Tolerance,
    provider: str | None,
    force: bool,
) -> None:
    """Record MODEL in DIR: its artifact, its inputs, the outputs that it has now, and what they were made with."""
    program, said = options.read_program(model)
    values = read_inputs(inputs)
    name = name or (Path(said).name.partition(".")[0] if model != options.STANDARD else "stdin")
    if Path(name).name != name or name.startswith("."):
        raise click.UsageError(f"{name!r} is no name of a folder")
    made = api.record_golden(
        folder,
        program,
        values if inputs else None,
        name=name,
        target=target,
        seed=drawing.seed,
        drawing=drawing,
        tolerance=tolerance,
        engine=engine,
        handlers=load_handlers(handlers),
        force=force,
        provider=provider,
    )
    click.echo(f"{made.folder}: {len(made.inputs)} inputs, {len(made.outputs)} outputs, on {made.engine}", err=True)


@golden.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--engine", type=click.Choice(api.ENGINE_CHOICES), help="By default what each was recorded on.")
@handler_option
@options.provider_option
@options.format_option
def check(
    folder: Path,
    engine: api.EngineChoice | None,
    handlers: tuple[str, ...],
    provider: str | None,
    output_format: str,
) -> int:
    """Replay every record in DIR: exit code 1 if one has other outputs now, or cannot be run any more."""
    replayed = []
    for each in api.check_golden(folder, engine=engine, handlers=load_handlers(handlers), provider=provider):
        replayed.append(each)
        if output_format == "text":
            click.echo(each)
    failed = sum(not each.passed for each in replayed)
    if output_format == "json":
        options.echo_json({"passed": not failed, "records": [_as_json(each) for each in replayed]})
    else:
        click.echo(f"{len(replayed)} records, {failed} failed", err=True)
    return 1 if failed else 0


def _as_json(replayed: Replayed) -> dict[str, Any]:
    record = replayed.record
    return {
        "name": record.name,
        "passed": replayed.passed,
        "problem": replayed.problem,
        "stablehlo": record.stablehlo,
        "library": record.library,
        "engine": record.engine,
        "outputs": [comparison_as_json(each) for each in replayed.outputs],
    }
