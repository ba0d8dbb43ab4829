"""Report of ``vhlo matrix`` as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from vhlo_tools.printable import printable

if TYPE_CHECKING:
    from vhlo_tools.releases import Cell, Download, Matrix

#: The cells of one kind that are listed in full.
_MOST: Final = 20


def sizes(downloads: Sequence[Download]) -> Iterator[str]:
    for each in downloads:
        size = "of unknown size" if each.size is None else f"at most {each.size / 1e6:.0f} MB"
        yield f"{each.release}: {'its environment is made' if each.size == 0 else f'downloads {size}'}"
    yield f"all: downloads at most {sum(each.size or 0 for each in downloads) / 1e6:.0f} MB"


def as_json(matrix: Matrix) -> Iterator[str]:
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


def report(matrix: Matrix) -> Iterator[str]:
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
