"""``vhlo matrix``: which real releases read and run what real releases wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.verify import drawing_options, loose_tolerance_options
from vhlo_tools.printable import printable

if TYPE_CHECKING:
    from vhlo_tools.releases import Cell, Download, Matrix
    from vhlo_tools.verification import Drawing, Tolerance

# Report of ``vhlo matrix`` as text

#: The cells of one kind that are listed in full.
_MOST: Final = 20


def size_lines(downloads: Sequence[Download]) -> Iterator[str]:
    for each in downloads:
        size = "of unknown size" if each.size is None else f"at most {each.size / 1e6:.0f} MB"
        yield f"{each.release}: {'its environment is made' if each.size == 0 else f'downloads {size}'}"
    yield f"all: downloads at most {sum(each.size or 0 for each in downloads) / 1e6:.0f} MB"


def json_lines(matrix: Matrix) -> Iterator[str]:
    """Yield lines of JSON that people can read: one for each cell."""
    found = matrix.as_json()
    cells = found.pop("cells")
    yield "{"
    for key, value in found.items():
        yield f'  "{key}": {json.dumps(value)},'
    yield '  "cells": ['
    for number, cell in enumerate(cells):
        yield f"    {json.dumps(cell, allow_nan=False)}{',' if number + 1 < len(cells) else ''}"
    yield "  ]"
    yield "}"


def text_lines(matrix: Matrix) -> Iterator[str]:
    """Yield a matrix as a table, and the errors of the specification."""
    yield f"programs that were read, of {len(matrix.programs)}; (=) those that were run and computed the same"
    rows = [["written by", "StableHLO", *(each.name for each in matrix.consumers)]]
    rows.append(["", "", *(str(each.stablehlo or "?") for each in matrix.consumers)])
    for producer in matrix.producers:
        cells = [_count(matrix, producer.name, consumer.name) for consumer in matrix.consumers]
        rows.append([producer.name, str(producer.stablehlo or "?"), *cells])
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    yield from _listed("the specification was wrong", matrix.disagreements)
    yield from _listed("other results", matrix.differing)
    for release in matrix.contradicted:
        yield (
            f"the specification has StableHLO {release.stablehlo} of {release.name}, which says that it has "
            f"{release.said}: run scripts/releases, and report it"
        )
    predicted = [cell for cell in matrix.cells if cell.predicted is not None]
    confirmed = sum(cell.confirmed is True for cell in predicted)
    yield f"{len(matrix.cells)} cells: {confirmed} of {len(predicted)} predictions confirmed"


def _count(matrix: Matrix, producer: str, consumer: str) -> str:
    counts = matrix.counts(producer, consumer)
    written = sum(counts.values()) - counts["unwritten"]
    text = f"{matrix.read(producer, consumer)}/{written}"
    if counts["equal"]:
        text += f" ({counts['equal']}=)"
    return text


def _listed(title: str, cells: Iterable[Cell]) -> Iterator[str]:
    """Yield cells with a title, those of one program with the same words in one line."""
    groups = [list(group) for _, group in groupby(sorted(cells, key=_key), key=_key)]
    for number, group in enumerate(groups):
        if number == _MOST:
            yield f"  ... and {len(groups) - _MOST} more; --output-format json has all"
            return
        if number == 0:
            yield f"{title}:"
        more = f" (and {len(group) - 1} more like it)" if len(group) > 1 else ""
        yield printable(f"  {group[0]}{more}")


def _key(cell: Cell) -> tuple[str, str, str]:
    return cell.program, cell.outcome, cell.words


_FORMATS: Final = ("text", "json", "parquet")


def _releases(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    found = options.releases(context, parameter, value)
    if not found:
        raise click.BadParameter("give at least one release, such as jaxlib==0.4.31", context, parameter)
    return found


@command()
@click.argument("paths", metavar="PROGRAM...", nargs=-1, required=True)
@click.option(
    "--producers",
    multiple=True,
    required=True,
    metavar="RELEASE,...",
    callback=_releases,
    help="The releases that write the programs, such as jaxlib==0.4.31. May be repeated.",
)
@click.option(
    "--consumers",
    multiple=True,
    required=True,
    metavar="RELEASE,...",
    callback=_releases,
    help="The releases that read, and run, what those wrote. May be repeated.",
)
@click.option(
    "--target",
    metavar="TARGET",
    help="Write for TARGET where a producer's own version is newer; by default for its own version.",
)
@click.option("--no-run", is_flag=True, help="Only read the artifacts.")
@click.option("--sizes", is_flag=True, help="Only say what would be downloaded, and make nothing.")
@drawing_options
@loose_tolerance_options
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), help="How many releases work at once; by default one for each core."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="The limit for one artifact in one release.",
)
@options.provider_option
@options.trusted_option
@click.option(
    "--output-format",
    "--format",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="parquet has a row for each cell, and needs -o FILE and the extra `distributed`.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the matrix to FILE, replacing its content, instead of stdout."
)
@click.option("--picture", metavar="FILE", help="Also draw it, as .svg, .png or .pdf; needs the extra `releases`.")
def matrix(
    paths: tuple[str, ...],
    producers: tuple[str, ...],
    consumers: tuple[str, ...],
    target: str | None,
    no_run: bool,
    sizes: bool,
    drawing: Drawing,
    tolerance: Tolerance,
    jobs: int | None,
    timeout: float,
    provider: str | None,
    trusted: bool,
    output_format: str,
    output: str | None,
    picture: str | None,
) -> int:
    """Let real releases write each PROGRAM and others read and run it, beside what the specification says.

    Every release is installed in an environment of its own on first use, and kept. Exit code 1: the specification was
    wrong about a release, or one computes other results.
    """
    if sizes:
        for line in size_lines(api.downloads((*producers, *consumers))):
            echo(line)
        return 0
    if output_format == "parquet" and output is None:
        raise click.UsageError("a Parquet file is not for a terminal: give -o FILE")
    _check_outputs(output, picture, binary=output_format == "parquet")
    found = api.matrix(
        {name: program for program, name in map(options.read_program, paths)},
        producers=producers,
        consumers=consumers,
        target=target,
        run=not no_run,
        drawing=drawing,
        tolerance=tolerance,
        jobs=jobs or os.cpu_count() or 1,
        timeout=timeout,
        provider=provider,
        trusted=trusted,
        say=lambda line: echo(f"vhlo: {line}", err=True),
    )
    _write(found, output_format, output)
    if picture is not None:
        from vhlo_tools.releases import draw_matrix

        options.write_output(picture, [draw_matrix(found, Path(picture).suffix)], force=True, binary=True)
    return 0 if found.passed else 1


def _check_outputs(output: str | None, picture: str | None, *, binary: bool) -> None:
    from vhlo_tools.releases import PICTURE_SUFFIXES, require_drawing

    if output is not None:
        options.check_output(output, force=True, binary=binary)
    if picture is not None:
        if not picture.endswith(PICTURE_SUFFIXES):
            raise click.UsageError(f"--picture {picture}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}")
        options.check_output(picture, force=True, binary=True)
        require_drawing()


def _write(found: Matrix, output_format: str, output: str | None) -> None:
    chunks: Any
    if output_format == "parquet":
        from vhlo_tools.releases import MATRIX_TABLE
        from vhlo_tools.stores import parquet_chunks

        chunks = parquet_chunks(MATRIX_TABLE, found.cells)
    else:
        lines = json_lines(found) if output_format == "json" else text_lines(found)
        chunks = [f"{line}\n".encode("utf-8", "backslashreplace") for line in lines]
    if output is None:
        for chunk in chunks:
            click.echo(chunk, nl=False)
    else:
        options.write_output(output, chunks, force=True, binary=output_format == "parquet")
