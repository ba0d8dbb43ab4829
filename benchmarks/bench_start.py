"""How long commands take to start: whole processes on a small artifact, by turns with what they are compared with.

``bench.py start`` runs it. The raw script loads jaxlib's bindings and does what ``vhlo retarget`` does. Figures are of
processor time and wall time; on a machine that others use too, the first says more.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Final

import performance_page
from measurements import describe_machine, record
from pairs import MEGABYTE
from rich.console import Console
from rich.table import Table
from start_parts import WHY, Part, parts_of
from support.processes import Run
from turns import RAW, VHLO, Process, median, ratio, take_turns

import vhlo_tools as vt

_PROGRAM: Final = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""

#: What the others are compared with.
BASE: Final = "import click"
SCRIPT: Final = "raw script"
_FROM, _TO, _TARGET = "small.mlirbc", "out.mlirbc", "1.0.0"
_OTHERS: Final[dict[str, list[str]]] = {
    "python -c pass": [sys.executable, "-c", "pass"],
    BASE: [sys.executable, "-c", BASE],
    SCRIPT: [*RAW, "round-trip", _FROM, _TO, _TARGET],
}
_COMMANDS: Final[dict[str, list[str]]] = {
    "inspect": [*VHLO, "inspect", _FROM],
    "check": [*VHLO, "check", _FROM, "--target", _TARGET],
    "retarget": [*VHLO, "retarget", _FROM, "--target", _TARGET, "-o", _TO, "--force"],
}


def measure_start(turns: int, packages: Mapping[str, Path | None]) -> dict[str, list[Run]]:
    """Run the commands and what they are compared with, by turns.

    Args:
        turns: How often each is run.
        packages: What follows the name of a command that is run with the package of a folder, and the folder.

    Returns:
        Runs by name.
    """
    processes = {name: Process(command) for name, command in _OTHERS.items()}
    for name, command in _COMMANDS.items():
        processes |= {f"{name}{after}": Process(command, package=package) for after, package in packages.items()}
    # What commands keep in the working directory is kept there.
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        vt.serialize(_PROGRAM, "1.9.0").save(_FROM)
        return take_turns(processes, turns)


def run(turns: int, *, keep: bool = False) -> None:
    """Measure, and print tables.

    Args:
        turns: How often each command is run, by turns with the others.
        keep: Whether to keep what the starts consist of, and to write the page on performance anew.
    """
    runs = measure_start(turns, {"": None})
    table = Table(box=None, pad_edge=False)
    table.add_column("process")
    for column in ("cpu, s", f"to {BASE}", "wall, s", f"to {BASE}", "to raw", "peak MB"):
        table.add_column(column, justify="right")
    for name, own in runs.items():
        table.add_row(
            f"vhlo {name}" if name in _COMMANDS else name,
            f"{median(own, 'cpu'):.3f}",
            f"{ratio(own, runs[BASE], 'cpu'):.2f}",
            f"{median(own, 'seconds'):.3f}",
            f"{ratio(own, runs[BASE], 'seconds'):.2f}",
            f"{ratio(own, runs[SCRIPT], 'seconds'):.2f}",
            f"{median(own, 'peak') / MEGABYTE:.0f}",
        )
    console = Console()
    console.print(table)
    console.print(f"\nMedians of {turns} turns; the ratios are medians of the ratios turn by turn.")
    machine, parts = describe_machine(), measure_parts(turns)
    table = Table(box=None, pad_edge=False)
    for column in ("command", "part", "modules", "ms", "why"):
        table.add_column(column, justify="right" if column in ("modules", "ms") else "left")
    for each in parts:
        table.add_row(each.command, each.part, str(each.modules), f"{each.milliseconds:.1f}", WHY[each.part])
    console.print(table)
    if keep:
        record("start", machine, parts, turns=turns)
        performance_page.write()


def measure_parts(turns: int) -> list[Part]:
    """Return what the start of each command consists of."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        vt.serialize(_PROGRAM, "1.9.0").save(_FROM)
        return [part for name, command in _COMMANDS.items() for part in parts_of(name, command, turns)]
