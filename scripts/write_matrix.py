"""Make the matrix of docs/confirming.md: `write_matrix.py [run] [write]`.

`run` lets the releases below write, read and run the programs below, which takes minutes and, once, gigabytes for the
environments, and keeps what came out in tests/releases/release_matrix.json. `write` makes the picture and the
tables of the page from it; it fails if the specification was wrong, or results differed, where nothing explains it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import vhlo_tools as vt
from vhlo_tools.releases import OUTCOMES, Cell, Matrix, ReleaseFacts, draw_matrix

ROOT: Final = Path(__file__).resolve().parents[1]
KEPT: Final = ROOT / "tests" / "releases" / "release_matrix.json"
PAGE: Final = ROOT / "docs" / "confirming.md"
PICTURE: Final = ROOT / "docs" / "release-matrix.svg"
BEGIN, END = "<!-- table: matrix -->", "<!-- table: end -->"

JAXLIBS: Final = (
    *("0.4.13", "0.4.18", "0.4.21", "0.4.23", "0.4.25", "0.4.26", "0.4.28", "0.4.30", "0.4.31", "0.4.35", "0.5.0"),
    *("0.5.3", "0.6.2", "0.7.0", "0.8.3", "0.9.1", "0.10.2", "0.11.2", "0.12.0.1"),
)
OTHERS: Final = ("torch-mlir==20261001", "tensorflow==2.21.0")
PRODUCERS: Final = (*(f"jaxlib=={each}" for each in JAXLIBS), *OTHERS)
CONSUMERS: Final = (
    *(f"jaxlib=={each}" for each in ("0.4.13", "0.4.25", "0.4.31", "0.5.3", "0.7.0", "0.8.3", "0.10.2", "0.12.0.1")),
    *OTHERS,
    "iree-base-compiler==3.13.0",
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the specification was wrong about some cells, or results differed."""

    program: str  # the program; empty for any
    #: the release that did otherwise than was expected: the producer of what was not written, otherwise the consumer
    release: str
    outcome: str  # what happened
    text: str  # the explanation


_QUANTIZED: Final = (
    "Its function from text or bytecode to an artifact makes a context that does not know the types of the dialect "
    "`quant`. The version has them, as the specification says; this door of these releases does not let them in."
)
EXPLANATIONS: Final = (
    *(Explanation("quantized", f"jaxlib==0.4.{each}", "unwritten", _QUANTIZED) for each in (13, 18, 21, 23)),
    Explanation(
        "gather_scatter_batching_dims",
        "jaxlib==0.4.30",
        "unwritten",
        "It reads the artifact, and hands the program on as ordinary bytecode, the only form that its Python functions "
        "have. StableHLO's encoding of gather dimension numbers in ordinary bytecode lacked the batching dimensions "
        "until later, so that they are lost on the way.",
    ),
    Explanation(
        "",
        "jaxlib==0.4.13",
        "read",
        "It reads MLIR bytecode 5, which the specification has of StableHLO 0.14.0: it is of 0.13.4, with an LLVM "
        "three weeks younger than that of 0.13.0. The specification speaks of every reader of 0.13.",
    ),
    Explanation(
        "integers",
        "tensorflow==2.21.0",
        "differs",
        "It gives XLA an argument of `i4` with one element in a byte, and takes the result so, where XLA has two: of "
        "what each element alone makes, the first half is right, and the rest is what stood in memory.",
    ),
)


def programs() -> dict[str, Path]:
    """Return the programs: those of the features, and those of everything that the first versions had."""
    folders = ("history", "features")
    paths = (path for each in folders for path in sorted((ROOT / "tests" / "programs" / each).glob("*.mlir")))
    return {path.stem: path for path in paths}


def explanation_of(cell: Cell) -> Explanation | None:
    """Return the explanation of a cell."""
    release = cell.producer if cell.outcome == "unwritten" else cell.consumer
    outcome = "read" if cell.was_read and cell.outcome != "differs" else cell.outcome
    for each in EXPLANATIONS:
        if each.program in ("", cell.program) and (each.release, each.outcome) == (release, outcome):
            return each
    return None


def kept(matrix: Matrix) -> dict[str, Any]:
    """Return what is kept of a matrix: cells as letters, and words where something was not as expected."""
    letters: dict[str, list[str]] = {}
    for cell in matrix.cells:
        row = letters.setdefault(f"{cell.producer} {cell.consumer}", [])
        expected = {None: "?", True: "+", False: "-"}[cell.predicted]
        row.append(f"{OUTCOMES.index(cell.outcome)}{expected}{'r' if cell.was_read else '.'}")
    telling = (*matrix.disagreements, *matrix.differing, *(cell for cell in matrix.cells if cell.outcome == "crash"))
    return {
        "date": str(date.today()),
        "programs": list(matrix.programs),
        "producers": [[each.name, str(each.stablehlo)] for each in matrix.producers],
        "consumers": [[each.name, str(each.stablehlo)] for each in matrix.consumers],
        "outcomes": list(OUTCOMES),
        "cells": {pair: " ".join(row) for pair, row in letters.items()},
        "words": sorted({f"{cell.program} | {cell.producer} | {cell.consumer} | {cell.words}" for cell in telling}),
    }


def restored(found: dict[str, Any]) -> Matrix:
    """Return a matrix from what was kept of it."""
    words = {tuple(line.split(" | ", 3)[:3]): line.split(" | ", 3)[3] for line in found["words"]}
    cells = []
    for pair, row in found["cells"].items():
        producer, consumer = pair.split()
        for program, (outcome, expected, read) in zip(found["programs"], map(tuple, row.split()), strict=True):
            predicted = {"?": None, "+": True, "-": False}[expected]
            said = words.get((program, producer, consumer), "")
            name = found["outcomes"][int(outcome)]
            cells.append(Cell(program, producer, consumer, None, predicted, (), name, read == "r", said))
    facts = {
        key: tuple(ReleaseFacts(name, vt.Version(version), None, {}) for name, version in found[key])
        for key in ("producers", "consumers")
    }
    return Matrix(facts["producers"], facts["consumers"], tuple(found["programs"]), tuple(cells))


def tables(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the page that come from the matrix.

    Raises:
        SystemExit: If something is not explained.
    """
    matrix = restored(found)
    outcomes = Counter(cell.outcome for cell in matrix.cells)
    predicted = [cell for cell in matrix.cells if cell.predicted is not None]
    confirmed = sum(cell.confirmed is True for cell in predicted)
    unexpected = [*(cell for cell in predicted if not cell.confirmed), *matrix.differing]
    groups: dict[Explanation, int] = Counter()
    for cell in unexpected:
        explanation = explanation_of(cell)
        if explanation is None:
            raise SystemExit(f"write_matrix: nothing explains: {cell}")
        groups[explanation] += 1
    yield (
        f"Run on {found['date']}: {len(matrix.producers)} producers, {len(matrix.consumers)} consumers and "
        f"{len(matrix.programs)} programs are {len(matrix.cells):,} cells. The specification says something of "
        f"{len(predicted):,} of them, and {confirmed:,} times that is what happened; the other "
        f"{len(predicted) - confirmed} are explained below. {outcomes['equal']:,} artifacts were run and computed the "
        f"same as `vt.run`, {outcomes['differs']} did not."
    )
    yield ""
    yield "![The matrix: a field for each pair of releases, with a square for each program](release-matrix.svg)"
    yield ""
    yield "| cells | programs | release | what happened | why |"
    yield "|---|---|---|---|---|"
    shown: dict[tuple[str, str, str], tuple[list[str], int]] = {}
    for explanation, number in groups.items():
        key = (explanation.program, explanation.outcome, explanation.text)
        releases, total = shown.get(key, ([], 0))
        shown[key] = [*releases, explanation.release], total + number
    phrases = {"unwritten": "not written", "read": "read", "differs": "other results", "refused": "refused"}
    for (program, outcome, text), (releases, number) in shown.items():
        yield f"| {number} | {program or 'all'} | {', '.join(releases)} | {phrases[outcome]} | {text} |"
    died = Counter(
        (cell.program, cell.consumer, cell.words) for cell in matrix.cells if cell.outcome in ("crash", "timeout")
    )
    if died:
        yield ""
        yield "Releases that died of a program, which is a cell and no end:"
        yield ""
        yield "| cells | program | release | last words |"
        yield "|---|---|---|---|"
        for (program, release, words), number in sorted(died.items()):
            yield f"| {number} | {program} | {release} | {words.partition(': ')[2].partition('. ')[0]} |"


def write(found: dict[str, Any]) -> None:
    """Write the picture, and the page."""
    PICTURE.write_bytes(draw_matrix(restored(found), ".svg"))
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([before + BEGIN, "", *tables(found), "", END + after]))


def main() -> None:
    """Run the releases, and write the page."""
    parser = argparse.ArgumentParser(description="make the matrix of docs/confirming.md")
    parser.add_argument("steps", nargs="+", choices=["run", "write"])
    steps = parser.parse_args().steps
    if "run" in steps:
        matrix = vt.matrix(
            programs(),
            producers=PRODUCERS,
            consumers=CONSUMERS,
            jobs=2,
            say=lambda line: print(line, file=sys.stderr),
        )
        KEPT.write_text(json.dumps(kept(matrix), indent=1) + "\n")
    if "write" in steps:
        write(json.loads(KEPT.read_text()))


if __name__ == "__main__":
    main()
