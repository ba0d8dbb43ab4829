"""How long commands take to start: whole processes on a small artifact, by turns with what they are compared with.

``bench.py start`` runs it. The raw script loads jaxlib's bindings and does what ``vhlo retarget`` does. Figures are of
processor time and wall time; on a machine that others use too, the first says more.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench_large import LIBRARY
from processes import Run, run_measured
from rich.console import Console
from rich.table import Table

import vhlo_tools as vt

__all__ = ["run"]

_MEGABYTE: Final = 1 << 20
_PROGRAM: Final = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""

#: What the others are compared with.
_BASE: Final = "import click"
_PYTHON: Final = [sys.executable, "-c"]
# As the script that pip installs does, and not with `-m`, which costs two milliseconds more.
_VHLO: Final = [*_PYTHON, "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())"]
_COMMANDS: Final[dict[str, list[str]]] = {
    "python -c pass": [*_PYTHON, "pass"],
    _BASE: [*_PYTHON, _BASE],
    "raw script": [*_PYTHON, LIBRARY, "{from}", "1.0.0", "{to}"],
    "vhlo inspect": [*_VHLO, "inspect", "{from}"],
    "vhlo check": [*_VHLO, "check", "{from}", "--target", "1.0.0"],
    "vhlo retarget": [*_VHLO, "retarget", "{from}", "--target", "1.0.0", "-o", "{to}", "--force"],
}


def run(turns: int) -> None:
    """Measure, and print a table.

    Args:
        turns: How often each command is run, by turns with the others.
    """
    runs: dict[str, list[Run]] = {name: [] for name in _COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        files = {"from": str(Path(folder) / "small.mlirbc"), "to": str(Path(folder) / "out.mlirbc")}
        vt.serialize(_PROGRAM, "1.9.0").save(files["from"])
        for turn in range(turns + 1):
            for name, command in _COMMANDS.items():
                taken = run_measured([part.format(**files) if part.startswith("{") else part for part in command])
                # The first warms the memory up.
                if turn:
                    runs[name].append(taken)
    table = Table(box=None, pad_edge=False)
    table.add_column("process")
    for column in ("cpu, s", f"to {_BASE}", "wall, s", f"to {_BASE}", "to raw", "peak MB"):
        table.add_column(column, justify="right")
    for name, own in runs.items():
        table.add_row(
            name,
            f"{statistics.median(each.cpu for each in own):.3f}",
            f"{_ratio([each.cpu for each in own], [each.cpu for each in runs[_BASE]]):.2f}",
            f"{statistics.median(each.seconds for each in own):.3f}",
            f"{_ratio([each.seconds for each in own], [each.seconds for each in runs[_BASE]]):.2f}",
            f"{_ratio([each.seconds for each in own], [each.seconds for each in runs['raw script']]):.2f}",
            f"{statistics.median(each.peak for each in own) / _MEGABYTE:.0f}",
        )
    console = Console()
    console.print(table)
    console.print(f"\nMedians of {turns} turns; the ratios are medians of the ratios turn by turn.")


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
