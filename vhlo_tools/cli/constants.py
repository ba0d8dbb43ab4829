"""``vhlo constants``: the constants of an artifact, listed, written as files, taken out and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from vhlo_tools import api
from vhlo_tools.artifact import Artifact
from vhlo_tools.cli import options
from vhlo_tools.weights import Constant

_F = TypeVar("_F", bound=Callable[..., Any])

_WIDTH: Final = 80
# As many as tell constants apart; JSON has all.
_DIGITS: Final = 12
_INDENT: Final = " " * 4


@click.group()
def constants() -> None:
    """List the constants of an artifact, write them as files, take them out, put them back."""


def min_size_option(default: int) -> Callable[[_F], _F]:
    """Return the option for the size from which constants count."""
    return click.option(
        "--min-size",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="BYTES",
        help="How many bytes the elements take at least.",
    )


@constants.command("list")
@options.input_argument("ARTIFACT")
@min_size_option(0)
@options.format_option
def list_(source: str, min_size: int, output_format: str) -> None:
    """Show the constants of ARTIFACT: where, type, bytes, uses, digest."""
    data, name = options.read_input(source)
    found = api.constants(Artifact.open(data, name=name), min_size=min_size)
    if output_format == "json":
        options.echo_json({"constants": [{**asdict(each), "type": each.type} for each in found]})
        return
    for line in _lines(found):
        click.echo(line)


def _lines(found: Sequence[Constant]) -> Iterator[str]:
    rows = [("bytes", "in file", "uses", "sha256")]
    rows += [(str(each.bytes), _in_file(each), str(each.uses), each.digest[:_DIGITS]) for each in found]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    numbers = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    yield f"{numbers[0]}  type"
    for line, each in zip(numbers[1:], found, strict=True):
        shared = f", shared with {each.shared_with}" if each.shared_with else ""
        # As many lines as it takes; neither types nor paths are cut.
        yield from _joined(line, f"  {each.type}", "")
        yield from _joined(f"{_INDENT}{each.path}", shared, ", ")


def _joined(start: str, end: str, mark: str) -> Iterator[str]:
    """Yield a line, or two where one is too long."""
    if len(start) + len(end) <= _WIDTH or not end:
        yield start + end
    else:
        yield start
        yield _INDENT + end.removeprefix(mark).strip()


def _in_file(constant: Constant) -> str:
    return f"{constant.bytes_in_file}{' splat' if constant.splat else ''}"


@constants.command()
@options.input_argument("ARTIFACT")
@click.option(
    "-o",
    "--output",
    required=True,
    help="A .safetensors file for all, a .npy file for one, or a folder for .npy files.",
)
@click.option("--only", multiple=True, metavar="PATH", help="A constant, as `list` shows it. May be repeated.")
@options.force_option
@options.format_option
def extract(source: str, output: str, only: tuple[str, ...], force: bool, output_format: str) -> None:
    """Write the constants of ARTIFACT as files that numpy and others read."""
    if Path(output).suffix in (".npy", ".safetensors"):
        options.check_output(output, force=force, binary=True)
    elif output in ("", options.STANDARD):
        raise click.UsageError("constants go to a file or a folder: give -o NAME")
    data, name = options.read_input(source)
    written = api.extract_constants(Artifact.open(data, name=name), output, only=only, force=force)
    for each in written:
        if each.reason is not None:
            click.echo(f"vhlo: warning: {each.path} is not written: {each.reason}", err=True)
    if output_format == "json":
        options.echo_json({"constants": [asdict(each) for each in written]})


@constants.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option("--weights", help="The file for the values.  [default: the output's name with .safetensors]")
@min_size_option(api.LARGE)
@click.option("--function", default="main", show_default=True, help="The function whose constants are taken out.")
@options.force_option
@options.format_option
def externalize(
    source: str, output: str, weights: str | None, min_size: int, function: str, force: bool, output_format: str
) -> None:
    """Make arguments of the large constants of ARTIFACT, and a .safetensors file of their values."""
    if options.STANDARD in (output, weights):
        raise click.UsageError("there are two files to write: give -o FILE, and --weights FILE if need be")
    beside = str(Path(output).with_suffix(".safetensors")) if weights is None and output else weights or ""
    for file in (output, beside):
        options.check_output(file, force=force, binary=True)
    if Path(output).resolve() == Path(beside).resolve():
        raise click.UsageError(f"{output} cannot be both the artifact and its weights: give --weights FILE")
    data, name = options.read_input(source)
    result = api.externalize_constants(Artifact(data, name=name), min_size=min_size, function=function)
    # First the values: an artifact without them is worth nothing.
    options.write_output(beside, result.weights(), force=force, binary=True)
    options.write_output(output, result.artifact.chunks, force=force, binary=True)
    if output_format == "json":
        moved = [asdict(each) for each in result.record.moved]
        report = options.artifact_report(result.artifact, output)
        options.echo_json({**report, "findings": [], "weights": beside, "constants": moved, "notes": result.notes})
        return
    for note in result.notes:
        click.echo(f"vhlo: note: {note}", err=True)
    number = len(result.record.moved)
    click.echo(f"vhlo: {number} constant{'s' * (number != 1)} became arguments of @{function}: {beside}", err=True)


@constants.command()
@options.input_argument("ARTIFACT")
@click.option("--weights", required=True, help="The file with the values.")
@options.output_option(required=True)
@options.force_option
@options.reporting
def restore(source: str, weights: str, output: str, force: bool) -> dict[str, Any]:
    """Put the constants back into ARTIFACT that `externalize` took out."""
    options.check_output(output, force=force, binary=True)
    data, name = options.read_input(source)
    artifact = api.restore_constants(Artifact(data, name=name), weights)
    options.write_output(output, artifact.chunks, force=force, binary=True)
    return options.artifact_report(artifact, output)
