"""What is said of growth: the exponents, the programs, and that every command runs on its artifacts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from string import Formatter

import pytest
from support.forked_python import COMMAND, CONVERTING, ForkedPython
from support.processes import Run, run_measured

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import bench_growth
from bench_growth import Subject, measure, subjects
from growth_commands import COMMANDS, LARGEST_FOR_LIBRARY, OPS, OPS_OF_SHAPES, SIZES, turns_of
from measurements import MEGABYTE, Point, exponent
from shapes import SHAPES, chain_of_ops, constants
from turns import RAW, VHLO

import vhlo_tools as vt

START = 0.1


def points(*taken: tuple[int, float]) -> list[Point]:
    """Points of a command that takes some seconds, and as many times 100 MB, beyond a process that does nothing."""
    return [
        Point("ops", size, "strip", 9.0, START + more, int((20 + 100 * more) * MEGABYTE), 1) for size, more in taken
    ]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_a_power_is_found_behind_the_start_of_a_process(power: float) -> None:
    found = points((10, 0.0), *((size, (size / 1_000) ** power) for size in (1_000, 10_000, 100_000)))
    assert exponent(found, "cpu") == pytest.approx(power)
    assert exponent(found, "peak") == pytest.approx(power, rel=1e-3)
    assert exponent(found[::-1], "cpu") == pytest.approx(power)


def test_growth_is_that_of_the_last_decade() -> None:
    # Linear at first, then with the square.
    assert exponent(points((10, 0.0), (1_000, 1.0), (10_000, 10.0), (100_000, 1_000.0)), "cpu") == pytest.approx(2.0)
    # Where no size is a tenth of the largest one, the next smaller one counts, and all between.
    sizes = (64, 1_024, 4_096)
    assert exponent(points((1, 0.0), *((size, size / 64) for size in sizes)), "cpu") == pytest.approx(1.0)
    steep = points((1, 0.0), (64, 1.0), (1_024, 16.0), (4_096, 256.0))
    assert 1.2 < (exponent(steep, "cpu") or 0) < 2.0


@pytest.mark.parametrize("taken", [[(10, 0.0)], [(10, 0.0), (100, 9.0)], [(10, 0.0), (1_000, 0.01), (10_000, 9.0)]])
def test_nothing_is_said_of_what_is_too_little(taken: list[tuple[int, float]]) -> None:
    assert exponent(points(*taken), "cpu") is None
    assert exponent(points(*taken), "peak") is None


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_have_the_ops_that_they_are_asked_for(shape: str) -> None:
    number = 1_000
    ops = vt.serialize(SHAPES[shape](number), "1.9.0").inventory().ops
    assert 0.9 * number < sum(ops.values()) < 1.4 * number


def test_programs_differ_where_they_say_so() -> None:
    plain, changed = (vt.serialize(chain_of_ops(100, changed=each), "1.9.0") for each in (False, True))
    assert changed.inventory().ops["vhlo.divide_v1"] == 1
    assert len(vt.diff(plain, changed)) >= 1
    for size, number in ((1 << 10, 16), (1 << 16, 4)):
        assert vt.serialize(constants(size, number), "1.9.0").inventory().constants.bytes == size


def test_every_command_names_files_that_there_are() -> None:
    assert len({each.name for each in COMMANDS}) == len(COMMANDS)
    names = {each.name for each in COMMANDS}
    for command in COMMANDS:
        files = {
            name
            for part in (*command.arguments, *command.before)
            if part.startswith("{")
            for _, name, _, _ in Formatter().parse(part)
            if name
        }
        assert files <= {"artifact", "copy", "changed", "moving", "text", "to"}
        assert files
        assert command.beside in names


#: Runs a script, which is its first argument.
SCRIPT = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


def run_forked(python: ForkedPython, command: Sequence[str], *, codes: Sequence[int] = (0,)) -> Run:
    """Run a command; in what is forked, if it is of Python. How much memory it takes is not measured then."""
    begun = time.perf_counter()
    if tuple(command[: len(VHLO)]) == VHLO:
        done = python.run(COMMAND, *command[len(VHLO) :])
    elif tuple(command[: len(RAW)]) == RAW:
        done = python.run(SCRIPT, *command[len(RAW) - 1 :])
    else:
        return run_measured(command, codes=codes)
    if done.returncode not in codes:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
    return Run(time.perf_counter() - begun, 2 * MEGABYTE)


@pytest.mark.long
def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one family in processes that are started, as they are measured; of the others, those of Python are forked."""
    found = []
    with ForkedPython(CONVERTING) as python:
        for family, size in (("nested regions", OPS_OF_SHAPES[0]), ("ops", OPS[0]), ("constants", SIZES[0])):
            folder = tmp_path / family
            folder.mkdir()
            found += measure(Subject(family, size, folder), 1)
            monkeypatch.setattr(bench_growth, "run_measured", partial(run_forked, python))
            # What commands wrote is gone; what they read is there for the next.
            names = {"artifact", "text", "copy", "changed", "changed text", "moving", "moving text"}
            assert {path.name for path in folder.iterdir()} <= names
    assert {each.command for each in found} == {each.name for each in COMMANDS}
    for each in found:
        assert 0 < each.seconds < 60
        assert each.peak > MEGABYTE


def test_quick_leaves_out_what_takes_minutes(tmp_path: Path) -> None:
    quick = [(each.family, each.size) for each in subjects(tmp_path, quick=True)]
    assert max(size for family, size in quick if family == "ops") == OPS[-3]
    assert max(size for family, size in quick if family == "constants") == LARGEST_FOR_LIBRARY
    assert {family for family, _ in quick} == {"ops", "constants", *SHAPES}
    assert list(tmp_path.iterdir()) == []
    assert turns_of("ops", OPS[-1], quick=False) == turns_of("ops", 10, quick=True) == 1
    assert turns_of("ops", OPS[-3], quick=False) > 1


def test_the_raw_script_needs_nothing_of_this_package() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "raw_script.py"
    imported = re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.MULTILINE)
    assert set(imported) == {"jaxlib", "pathlib", "sys"}
