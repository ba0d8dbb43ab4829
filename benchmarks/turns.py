"""Processes that are compared take turns, so that a machine that gets slower gets slower for all of them."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processes import Run, run_measured

__all__ = ["RAW", "VHLO", "Process", "median", "ratio", "take_turns"]

#: As the script that pip installs does, and not with `-m`, which costs two milliseconds more.
VHLO: Final = (sys.executable, "-c", "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())")
#: The same work with nothing but jaxlib; a step, files and a version follow.
RAW: Final = (sys.executable, str(Path(__file__).with_name("raw_script.py")))


@dataclass(frozen=True, slots=True)
class Process:
    """A process to be measured.

    Attributes:
        command: The program and its arguments.
        codes: The exit codes that are as they should be.
        package: The folder whose ``vhlo_tools`` it imports; ``None`` for the one that this process imports.
    """

    command: Sequence[str]
    codes: Sequence[int] = (0,)
    package: Path | None = None

    def run(self) -> Run:
        """Run it to its end."""
        own = {"PYTHONPATH": str(self.package)} if self.package else {}
        return run_measured(self.command, codes=self.codes, environment={**os.environ, **own})


def take_turns(processes: Mapping[str, Process], turns: int) -> dict[str, list[Run]]:
    """Run each process so many times, by turns, after once that warms the memory up."""
    runs: dict[str, list[Run]] = {name: [] for name in processes}
    for turn in range(turns + 1):
        for name, process in processes.items():
            taken = process.run()
            if turn:
                runs[name].append(taken)
    return runs


def median(runs: Sequence[Run], what: str) -> float:
    """Return the median of ``seconds``, ``cpu`` or ``peak``."""
    return statistics.median(getattr(each, what) for each in runs)


def ratio(ours: Sequence[Run], theirs: Sequence[Run], what: str) -> float:
    """Return the median of the ratios turn by turn."""
    return statistics.median(getattr(a, what) / getattr(b, what) for a, b in zip(ours, theirs, strict=True))
