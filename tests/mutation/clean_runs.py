"""What tests do on unchanged code, and the order that follows: first those that are likely to notice a change soon."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coverage import CoverageData
from mutant_tables import Part

#: Tests marked `releases` need environments of old releases, which take minutes to make; they are deselected.
PYTEST: Final = "-m pytest -x -q -n 0 -p no:cacheprovider -p covering --hypothesis-seed=0 -m 'not releases' --tb=line"
_DURATION: Final = re.compile(r"^([\d.]+)s (call|setup|teardown) +(.+)$", re.MULTILINE)


class MutantsError(Exception):
    """Mutants could not be tried; the message says why."""


@dataclass(frozen=True, slots=True)
class CleanRun:
    """A run of the tests of a part on unchanged code."""

    copy: Path  # the copy of the checkout
    lines: Path  # the file in which coverage keeps the lines that each test executed
    total: float  # how many seconds the run took
    #: how many each test took, with what its file sets up once, which may be set up again in another order
    seconds: dict[str, float]

    def order(self, module: str, line: int) -> list[str]:
        """Return the tests, the quickest first; those that execute a line count as a hundred times as quick.

        Where none does, because the line runs on import, those that execute any line of the module count so.
        """
        data = CoverageData(str(self.lines))
        data.read()
        lines = {at: {*names} - {""} for at, names in data.contexts_by_lineno(str(self.copy / module)).items()}
        likely = lines.get(line) or set().union(*lines.values())
        return sorted(self.seconds, key=lambda name: self.seconds[name] / (100 if name in likely else 1))


def try_unchanged(part: Part, copy: Path) -> CleanRun:
    """Run the tests of a part on the unchanged code. They leave compiled modules for the runs that follow.

    Raises:
        MutantsError: If a test fails, or if the tests import another copy of the package.
    """
    # Python 3.14 has a quicker tracer, which sees a line in the first test only.
    environment = {**os.environ, "PYTHONPATH": str(copy), "COVERAGE_CORE": "ctrace"}
    where = [sys.executable, "-c", "import vhlo_tools; print(vhlo_tools.__file__)"]
    found = subprocess.run(where, cwd=copy, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_relative_to(copy):
        raise MutantsError(f"the tests would import {found}, not the copy in {copy}")
    lines = Path(tempfile.mkdtemp(dir=copy.parent)) / "lines"
    recording = ["-m", "coverage", "run", "--source=vhlo_tools", f"--data-file={lines}"]
    shown = ["--durations=0", "--durations-min=0"]
    command = [sys.executable, *recording, *shlex.split(PYTEST), *shown, *part.test_files(copy)]
    begun = time.monotonic()
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    total = time.monotonic() - begun
    if ran.returncode:
        raise MutantsError(f"tests fail on the unchanged code:\n{ran.stdout[-4000:]}{ran.stderr[-2000:]}")
    seconds: defaultdict[str, float] = defaultdict(float)
    set_up: dict[str, float] = {}
    # The slowest come first.
    for taken, phase, name in _DURATION.findall(ran.stdout):
        seconds[name] += float(taken)
        if phase == "setup":
            set_up.setdefault(_file_of(name), float(taken))
    # What is shown as nothing takes pytest itself a hundredth of a second.
    of_tests = {name: taken + set_up[_file_of(name)] + 0.01 for name, taken in seconds.items()}
    say(f"unchanged, {part.room}, {' '.join(part.tests)}: {total:.0f} s")
    return CleanRun(copy, lines, total, of_tests)


def _file_of(name: str) -> str:
    return name.partition("::")[0]


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
