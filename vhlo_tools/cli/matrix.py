"""``vhlo matrix``: which real releases read and run what real releases wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Column, echo, plain_rows
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.reports import check_report, encoded
from vhlo_tools.cli.verify import drawing_options, loose_tolerance_options
from vhlo_tools.printable import json_document, json_record, json_text, printable

if TYPE_CHECKING:
    from vhlo_tools.files import Chunk
    from vhlo_tools.releases import Cell, Matrix

# Report of ``vhlo matrix`` as text

#: The cells of one kind that are listed in full.
_MOST: Final = 20


def json_lines(matrix: Matrix) -> Iterator[str]:
    """Yield lines of JSON that people can read: one for each cell."""
    found = json_record(matrix.as_json())
    cells = found.pop("cells")
    return json_document(found, "cells", map(json_text, cells), dict)


def text_lines(matrix: Matrix) -> Iterator[str]:
    """Yield a matrix as a table, and the errors of the specification."""
    yield f"programs that were read, of {len(matrix.programs)}; (=) those that were run and computed the same"
    columns = [Column(name) for name in ("written by", "StableHLO", *(each.name for each in matrix.consumers))]
    rows = [["", "", *(str(each.stablehlo or "?") for each in matrix.consumers)]]
    for producer in matrix.producers:
        cells = [_count(matrix, producer.name, consumer.name) for consumer in matrix.consumers]
        rows.append([producer.name, str(producer.stablehlo or "?"), *cells])
    yield from plain_rows(columns, rows)
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


def _releases(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    found = options.releases(context, parameter, value)
    if not found:
        raise click.BadParameter("give at least one release, such as jaxlib==0.4.31", context, parameter)
    return found


@command()
@options.paths_argument("PROGRAM...")
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
@options.jobs_option("How many releases work at once; by default one for each core.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="The limit for one artifact in one release.",
)
@options.read_in_time_option
@options.provider_option
@options.trusted_option
@options.format_choice(
    *("text", "json", "parquet"), what="parquet has a row for each cell, and needs -o FILE and the extra `distributed`."
)
@options.result_option("matrix")
@click.option("--picture", metavar="FILE", help="Also draw it, as .svg, .png or .pdf; needs the extra `releases`.")
def matrix(
    paths: tuple[str, ...],
    no_run: bool,
    sizes: bool,
    jobs: int | None,
    output_format: str,
    output: str | None,
    picture: str | None,
    **crossing: Any,
) -> int:
    """Let real releases write each PROGRAM and others read and run it, beside what the specification says.

    Every release is installed in an environment of its own on first use, and kept. Exit code 1: the specification was
    wrong about a release, or one computes other results.
    """
    if sizes:
        downloads = api.downloads((*crossing["producers"], *crossing["consumers"]))
        for each in downloads:
            size = "of unknown size" if each.size is None else f"at most {each.size / 1e6:.0f} MB"
            echo(f"{each.release}: {'its environment is made' if each.size == 0 else f'downloads {size}'}")
        echo(f"all: downloads at most {sum(each.size or 0 for each in downloads) / 1e6:.0f} MB")
        return 0
    binary = check_report(output, output_format)
    if picture is not None:
        _check_picture(picture)
    found = api.matrix(
        {name: program for program, name in map(options.read_program, paths)},
        run=not no_run,
        jobs=jobs or os.cpu_count() or 1,
        say=lambda line: echo(f"vhlo: {line}", err=True),
        **crossing,
    )
    chunks = _report(found, output_format)
    if output is None:
        for chunk in chunks:
            click.echo(chunk, nl=False)
    else:
        options.write_output(output, chunks, force=True, binary=binary)
    if picture is not None:
        from vhlo_tools.releases import draw_matrix

        options.write_output(picture, [draw_matrix(found, Path(picture).suffix)], force=True, binary=True)
    return 0 if found.passed else 1


def _check_picture(picture: str) -> None:
    from vhlo_tools.releases import PICTURE_SUFFIXES, require_drawing

    if not picture.endswith(PICTURE_SUFFIXES):
        raise click.UsageError(f"--picture {picture}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}")
    options.check_output(picture, force=True, binary=True)
    require_drawing()


def _report(found: Matrix, output_format: str) -> Iterable[Chunk]:
    if output_format != "parquet":
        return encoded(json_lines(found) if output_format == "json" else text_lines(found))
    from vhlo_tools.releases import MATRIX_TABLE
    from vhlo_tools.stores import parquet_chunks

    return parquet_chunks(MATRIX_TABLE, found.cells)
