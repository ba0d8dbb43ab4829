"""Processes that are compared take turns, so that a machine that gets slower gets slower for all of them."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.processes import Run, run_measured

#: As the script that pip installs does, and not with `-m`, which costs two milliseconds more. With `-P` it imports
#: nothing from the working directory, which may be a checkout.
VHLO: Final = (sys.executable, "-P", "-c", "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())")
#: The same work with nothing but jaxlib; a step, files and a version follow.
RAW: Final = (sys.executable, str(Path(__file__).with_name("raw_script.py")))


@dataclass(frozen=True, slots=True)
class Process:
    """A process to be measured."""

    command: Sequence[str]  # the program and its arguments
    codes: Sequence[int] = (0,)  # the exit codes that are as they should be
    #: the folder whose ``vhlo_tools`` it imports; ``None`` for the one that this process imports
    package: Path | None = None
    output: Path | None = None  # the file that it writes, deleted afterwards; ``None`` if nothing is to be deleted

    def run(self) -> Run:
        """Run it to its end."""
        # A folder in which nothing is kept: every run reads a program for the first time.
        own = {"VHLO_TOOLS_CACHE": os.devnull}
        if self.package:
            own["PYTHONPATH"] = str(self.package)
        taken = run_measured(self.command, codes=self.codes, environment={**os.environ, **own})
        if self.output:
            self.output.unlink(missing_ok=True)
        return taken


def take_turns(processes: Mapping[str, Process], turns: int, *, warm: bool = True) -> dict[str, list[Run]]:
    """Run each process so many times, by turns.

    Args:
        processes: By the names of what is returned.
        turns: How often each runs.
        warm: Whether each runs once more before that, which warms the memory up.
    """
    runs: dict[str, list[Run]] = {name: [] for name in processes}
    for turn in range(turns + warm):
        for name, process in processes.items():
            taken = process.run()
            if turn >= warm:
                runs[name].append(taken)
    return runs


def median(runs: Sequence[Run], what: str) -> float:
    """Return the median of ``seconds``, ``cpu`` or ``peak``."""
    return float(statistics.median(getattr(each, what) for each in runs))


def ratios(ours: Sequence[Run], theirs: Sequence[Run], what: str) -> list[float]:
    """Return the ratios turn by turn."""
    return [getattr(a, what) / getattr(b, what) for a, b in zip(ours, theirs, strict=True)]


def ratio(ours: Sequence[Run], theirs: Sequence[Run], what: str) -> float:
    """Return the median of the ratios turn by turn."""
    return float(statistics.median(ratios(ours, theirs, what)))
