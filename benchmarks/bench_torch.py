"""What exporting ResNet-18 takes, beside torch-mlir's own import of it, each as a process of its own.

``bench.py torch`` runs it, with the Python of an environment that has the extra ``torch``.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from support.processes import Run, run_measured

MEGABYTE = 1 << 20
#: Ours may take this much of what torch-mlir's import alone takes.
BOUND = 2.0

_PREPARE = f"""
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {str(Path(__file__).parent)!r})
from resnet18 import image, resnet18
import torch_mlir.fx
from vhlo_tools.integrations.torch import export
model, inputs = resnet18(), (image(),)
"""
IDLE = "nothing but torch, torch-mlir and the model"
THEIRS = "torch_mlir.fx.export_and_import"
PROGRAMS = {
    IDLE: _PREPARE,
    THEIRS: f'{_PREPARE}\ntorch_mlir.fx.export_and_import(model, *inputs, output_type="stablehlo")',
    "export, weights as constants": f'{_PREPARE}\nexport(model, inputs, importer="torch-mlir")',
    "export, weights as arguments": f'{_PREPARE}\nexport(model, inputs, importer="torch-mlir", weights="arguments")',
    "export to 1.0.0, saved": f'{_PREPARE}\nexport(model, inputs, importer="torch-mlir", target="1.0.0")'
    '.save("/dev/null", force=True)',
}


def _median(runs: list[Run]) -> Run:
    return Run(statistics.median(each.seconds for each in runs), int(statistics.median(each.peak for each in runs)))


def run(turns: int) -> bool:
    """Measure, print a table, and return whether all is within the bound.

    Args:
        turns: How often each is run, in turn.
    """
    runs: dict[str, list[Run]] = {name: [] for name in PROGRAMS}
    for turn in range(turns + 1):
        for name, program in PROGRAMS.items():
            taken = run_measured([sys.executable, "-c", program])
            # The first warms the files up.
            if turn:
                runs[name].append(taken)
    medians = {name: _median(taken) for name, taken in runs.items()}
    idle, theirs = medians[IDLE], medians[THEIRS]
    table = Table(box=None, pad_edge=False)
    table.add_column("process")
    for column in ("s", "peak MB", "time ratio", "memory ratio", "net time ratio", "net memory ratio"):
        table.add_column(column, justify="right")
    fine = True
    for name, taken in medians.items():
        ratios = [taken.seconds / theirs.seconds, taken.peak / theirs.peak]
        net = [
            (taken.seconds - idle.seconds) / (theirs.seconds - idle.seconds),
            (taken.peak - idle.peak) / (theirs.peak - idle.peak),
        ]
        fine = fine and max(*ratios, *net) <= BOUND
        table.add_row(
            name, f"{taken.seconds:.2f}", f"{taken.peak / MEGABYTE:.0f}", *(f"{each:.2f}" for each in (*ratios, *net))
        )
    console = Console()
    console.print(table)
    console.print(
        f"\nMedians of {turns} runs. Ratios are to {THEIRS}: of whole processes, and net of the first line. "
        f"{'All' if fine else 'NOT all'} are within {BOUND:g}."
    )
    return fine
