"""What the page on performance is made of: points of growth and measured aims, kept in `performance_measured.json`.

The file has an entry for each Python, and one for compiled modules on it; `bench.py growth --record`, `aims` and
`start` replace their part of it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

MEASURED: Final = Path(__file__).with_name("performance_measured.json")
MEGABYTE: Final = 1 << 20
#: What grows with a higher power of the size is said to grow faster than linearly; below it may be noise.
LINEAR: Final = 1.1
#: A part of the last sizes: growth is that from a tenth of the largest size, or what is next below it.
_DECADE: Final = 10
#: What an artifact must cost beyond a small one for its growth to be told from noise: seconds of processor, and bytes.
_LEAST: Final = {"cpu": 0.04, "peak": 4 * MEGABYTE}


@dataclass(frozen=True, slots=True)
class Point:
    """What one command took of one artifact, a whole process."""

    family: str  # what else is alike of the artifacts: ``ops``, ``constants``, or the name of a shape
    size: int  # the number of ops, or bytes of constants
    command: str  # the name of the command
    seconds: float  # wall time, the median of the runs
    cpu: float  # seconds of processor time, those of child processes included; the median
    peak: int  # bytes of memory of the largest process at the most, pages of files that it mapped included; the median
    turns: int  # the number of runs


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured of an aim."""

    aim: str  # the name of the aim
    measured: float  # in the unit of the aim
    cpu: float | None  # the same of processor time; ``None`` where there is none
    #: the same with the package of another revision, by turns in the same run; ``None`` without one
    before: float | None
    raw: float | None  # seconds of what ours is compared with, in the same run; ``None`` if nothing is
    low: float | None = None  # the least of the turns, and the most; ``None`` where there is one turn
    high: float | None = None


def exponent(points: Sequence[Point], what: Literal["cpu", "peak"]) -> float | None:
    """Return the power of the size that a command grows with over the last decade of sizes.

    It is fitted to what each artifact takes beyond the smallest one, so that the start of a process does not hide how
    the rest grows: the slope of the line of least squares through the logarithms.

    Args:
        points: Of one command and one family, at least two, by size; the first is the smallest.
        what: Processor time or memory.

    Returns:
        ``None`` if the sizes of the last decade take too little beyond the smallest for growth to be told from noise.
    """
    smallest, *others = sorted(points, key=lambda each: each.size)
    if not others:
        return None
    largest = others[-1].size
    before = max((each.size for each in others if each.size * _DECADE <= largest), default=0)
    last = [each for each in others if each.size >= before]
    beyond = [getattr(each, what) - getattr(smallest, what) for each in last]
    if len(last) < 2 or min(beyond) < _LEAST[what]:
        return None
    return statistics.linear_regression(
        [math.log(each.size) for each in last], [math.log(each) for each in beyond]
    ).slope


def describe_machine() -> dict[str, Any]:
    """Return what a reader must know of the machine, the packages and the moment of a measurement."""
    from vhlo_tools.bindings import get_provider
    from vhlo_tools.bytecode import is_compiled

    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=MEASURED.parent, capture_output=True, text=True, check=False
    )
    return {
        "date": str(date.today()),
        "python": platform.python_version(),
        "compiled": is_compiled(),
        "library": get_provider().library.name,
        "revision": revision.stdout.strip() or "unknown",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        # Of the last five minutes: what others did before the measurement began.
        "load": round(os.getloadavg()[1], 1),
    }


def load() -> dict[str, Any]:
    """Return what was measured, by Python; see `record`."""
    found: dict[str, Any] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    return found


def record(
    part: Literal["growth", "aims", "start"], machine: dict[str, Any], entries: Sequence[Any], **more: Any
) -> None:
    """Keep what this Python measured, in place of what it had measured of the same part.

    Args:
        part: What was measured.
        machine: What `describe_machine` said when the measurement began.
        entries: What was measured, dataclasses of one class.
        more: What else is to be known of the run.
    """
    kept = load()
    python = ".".join(map(str, sys.version_info[:2])) + (", compiled" if machine["compiled"] else "")
    titles = [each.name for each in fields(entries[0])]
    rows = [[_rounded(value) for value in asdict(each).values()] for each in entries]
    kept.setdefault(python, {})[part] = {"machine": machine, **more, "titles": titles, "rows": rows}
    # A row of each table is a line, so that a diff shows what changed.
    text = json.dumps(dict(sorted(kept.items())), indent=1)
    MEASURED.write_text(_compact(text) + "\n")


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _compact(text: str) -> str:
    """Return JSON with the innermost lists on a line each."""

    def on_a_line(found: re.Match[str]) -> str:
        values = re.sub(r",\s*\n\s*", ", ", found[1])
        return f"[{values}]"

    return re.sub(r"\[\s*([^][{}]*?)\s*\]", on_a_line, text)
