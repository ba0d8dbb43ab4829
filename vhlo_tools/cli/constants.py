"""``vhlo constants``: lists, extracts, externalizes and restores the constants of an artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from vhlo_tools import api
from vhlo_tools.artifact import Artifact, Constant, Making, grouped_constants
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.cli.reports import fields_of, readable_size
from vhlo_tools.files import Place, place
from vhlo_tools.printable import json_document, json_record, json_text, printable

_F = TypeVar("_F", bound=Callable[..., Any])

_WIDTH: Final = 80
# Lines that are written at once.
_LINES: Final = 1 << 10
# The beginnings of lines that are kept.
_MOST_STARTS: Final = 1 << 12
# Enough digits to distinguish constants; JSON contains all.
_DIGITS: Final = 12
_INDENT: Final = " " * 4


@click.group(cls=Group)
def constants() -> None:
    """List, extract, externalize and restore the constants of an artifact."""


def min_size_option(default: int) -> Callable[[_F], _F]:
    return click.option(
        "--min-size",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="BYTES",
        help="The minimum size of the elements in bytes.",
    )


@constants.command("list")
@options.input_argument("ARTIFACT")
@min_size_option(0)
@options.format_option
def list_(source: str, min_size: int, output_format: str) -> None:
    """List the constants of ARTIFACT. Each has a path, a type, bytes, uses and a digest."""
    data, name = options.read_input(source)
    artifact = Artifact.open(data, name=name)
    if output_format == "json":
        found = api.constants(artifact, min_size=min_size)
        items = (json_text({**fields_of(each), "type": each.type}) for each in found)
        lines = json_document(json_record({}), "constants", items, dict)
    else:
        lines = _lines(grouped_constants(artifact, min_size=min_size))
    while some := list(islice(lines, _LINES)):
        echo("\n".join(some))


def _lines(found: Sequence[tuple[str, Constant, int]]) -> Iterator[str]:
    firsts = [first for path, first, _ in found if path is first.path]
    widths = {
        "bytes": (str(each.bytes) for each in firsts),
        "in file": map(_in_file, firsts),
        "uses": (str(max([uses for _, _, uses in found], default=0)),),
        "sha256": ("0" * _DIGITS if found else "",),
    }
    row = "  ".join(f"%{max(map(len, (title, *texts)))}s" for title, texts in widths.items())
    yield f"{row % tuple(widths)}  type"
    # Very many may have one value. Two lines if necessary; types and paths are not truncated.
    starts: dict[tuple[str, int], str] = {}
    for path, first, uses in found:
        start = starts.get((first.path, uses))
        if start is None:
            if len(starts) >= _MOST_STARTS:
                starts.clear()
            numbers = row % (first.bytes, _in_file(first), uses, first.digest[:_DIGITS])
            start = starts[first.path, uses] = f"{_joined(numbers, f'  {first.type}', '')}\n{_INDENT}"
        start = f"{start}{_shown(path)}"
        yield start if path is first.path else _joined(start, f", shared with {_shown(first.path)}", ", ")


def _in_file(constant: Constant) -> str:
    return f"{constant.bytes_in_file}{' splat' if constant.splat else ''}"


def _shown(path: str) -> str:
    # A name can have a line break.
    return path if path.isprintable() else printable(path)


def _resolved(path: str) -> Place:
    found = place(path)
    return found.resolve() if isinstance(found, Path) else found


def _joined(start: str, end: str, mark: str) -> str:
    """Return one line, or two if it would be too long."""
    if len(start) - start.rfind("\n") - 1 + len(end) <= _WIDTH:
        return start + end
    return f"{start}\n{_INDENT}{end.removeprefix(mark).strip()}"


@constants.command()
@options.input_argument("ARTIFACT")
@click.option(
    "-o",
    "--output",
    required=True,
    help="A .safetensors file for all, a .npy file for one, or a folder for .npy files.",
)
@click.option("--only", multiple=True, metavar="PATH", help="A constant, as `list` shows it. May be repeated.")
@click.option(
    "--max-size",
    type=click.IntRange(min=0),
    default=api.LARGEST_SUM,
    show_default=True,
    metavar="BYTES",
    help="The maximum size of all files together; a small ARTIFACT may represent terabytes.",
)
@options.force_option
@options.format_option
def extract(source: str, output: str, only: tuple[str, ...], max_size: int, force: bool, output_format: str) -> None:
    """Write the constants of ARTIFACT as files for numpy and others."""
    if place(output).suffix in (".npy", ".safetensors"):
        options.check_output(output, force=force, binary=True)
    elif output in ("", options.STANDARD):
        raise click.UsageError("constants are written to a file or a folder: give -o NAME")
    data, name = options.read_input(source)

    def announce(number: int, total: int) -> None:
        echo(f"vhlo: {number} constant{'s' * (number != 1)}, {readable_size(total)}", err=True)

    artifact = Artifact.open(data, name=name)
    written = api.extract_constants(artifact, output, only=only, force=force, max_size=max_size, announce=announce)
    for each in written:
        if each.reason is not None:
            echo(f"vhlo: warning: {each.path} was not written: {each.reason}", err=True)
    if output_format == "json":
        options.echo_json({"constants": [{**asdict(each), "file": each.file} for each in written]})


@constants.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option("--weights", help="The file for the values.  [default: the output's name with .safetensors]")
@min_size_option(api.LARGE)
@click.option("--function", default="main", show_default=True, help="The function whose constants are externalized.")
@options.force_option
@options.format_option
def externalize(
    source: str, output: str, weights: str | None, min_size: int, function: str, force: bool, output_format: str
) -> None:
    """Replace large constants of ARTIFACT with arguments. Their values go to a .safetensors file."""
    if options.STANDARD in (output, weights):
        raise click.UsageError("there are two output files: give -o FILE, and --weights FILE if necessary")
    beside = str(place(output).with_suffix(".safetensors")) if weights is None and output else weights or ""
    for file in (output, beside):
        options.check_output(file, force=force, binary=True)
    if _resolved(output) == _resolved(beside):
        raise click.UsageError(f"{output} cannot be both the artifact and its weights: give --weights FILE")
    data, name = options.read_input(source)
    result = api.externalize_constants(Artifact(data, name=name), min_size=min_size, function=function)
    if output_format == "json":
        options.say_nothing_of_writing()
    # The values first: an artifact without them is useless.
    options.write_output(beside, result.weights(), force=force, binary=True, what=None)
    made = Making("constants externalize", options={"min_size": min_size, "function": function})
    options.write_artifact(output, result.artifact, force=force, made=made)
    if output_format == "json":
        moved = [asdict(each) for each in result.record.moved]
        report = options.artifact_report(result.artifact, output)
        options.echo_json({**report, "findings": [], "weights": beside, "constants": moved, "notes": result.notes})
        return
    for note in result.notes:
        echo(f"vhlo: note: {note}", err=True)
    number = len(result.record.moved)
    echo(f"vhlo: {number} constant{'s' * (number != 1)} became arguments of @{function}: {beside}", err=True)


@constants.command()
@options.input_argument("ARTIFACT")
@click.option("--weights", required=True, help="The file with the values.")
@options.output_option(required=True)
@options.force_option
@options.reporting
def restore(source: str, weights: str, output: str, force: bool) -> dict[str, Any]:
    """Restore the constants of ARTIFACT that `externalize` replaced."""
    options.check_output(output, force=force, binary=True)
    data, name = options.read_input(source)
    artifact = api.restore_constants(Artifact(data, name=name), weights)
    options.write_artifact(output, artifact, force=force, made=Making("constants restore"))
    return options.artifact_report(artifact, output)
