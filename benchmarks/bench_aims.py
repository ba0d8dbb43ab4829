"""The aims of the work on growth, measured in one go: ``bench.py aims --against 02b039d``.

What is compared takes turns: this package, the bare library, and the package as it was at a revision. On a machine that
others use too, the ratios of processor time say more than those of wall time; calls are measured by wall time alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import performance_page
from aim_pairs import CASES
from aims import AIMS, Aim
from bench_growth import Subject
from bench_start import BASE, SCRIPT, measure_start
from growth_commands import COMMANDS
from measurements import MEGABYTE, Outcome, describe_machine, record
from revisions import package_at
from rich.console import Console
from rich.table import Table
from support.processes import Run
from turns import Process, median, ratio, ratios, take_turns

_OPS, _MANY = 100_000, 1_000_000
#: What follows the name of what is measured with the package of the other revision.
_BEFORE: Final = ", before"
_LIBRARY: Final = "library"
#: What is measured as it is: of a run, and so many times more than the unit.
_MEASURED: Final = {"s": ("seconds", 1), "MB": ("peak", MEGABYTE)}
_COMPARED: Final = {"of import click": BASE, "of the raw script": SCRIPT, "of the library": _LIBRARY}


def run(pairs: int, *, against: str | None, quick: bool, keep: bool) -> None:
    """Measure, and print a table.

    Args:
        pairs: How often each command and call is run, by turns.
        against: A revision of git, whose package is measured too; ``None`` for none.
        quick: Whether to leave out a million ops, and to run everything once.
        keep: Whether to keep what was measured, and to write the page on performance anew.
    """
    machine, turns = describe_machine(), 1 if quick else pairs
    with package_at(against) as package:
        packages = {"": None, _BEFORE: package} if package else {"": None}
        outcomes = [
            *_of_processes("start", measure_start(max(3, turns), packages)),
            *_of_processes("processes", _measure(_OPS, turns, packages)),
            *_of_calls(turns, packages),
        ]
        if not quick:
            outcomes += _of_many(_measure(_MANY, 1, packages))
    _print(outcomes)
    if keep:
        record("aims", machine, outcomes, quick=quick, against=against or "", turns=turns)
        performance_page.write()


def _of_group(group: str) -> list[Aim]:
    return [each for each in AIMS if each.group == group]


def _of_processes(group: str, runs: Mapping[str, Sequence[Run]]) -> list[Outcome]:
    """Return the ratios that are aims of a group."""
    outcomes = []
    for aim in _of_group(group):
        if aim.unit not in _COMPARED:
            continue
        compared, ours, before = runs[_COMPARED[aim.unit]], runs[aim.run], runs.get(aim.run + _BEFORE)
        outcomes.append(
            Outcome(
                aim.name,
                ratio(ours, compared, "seconds"),
                ratio(ours, compared, "cpu"),
                ratio(before, compared, "seconds") if before else None,
                median(compared, "seconds"),
                *_spread(ratios(ours, compared, "seconds")),
            )
        )
    return outcomes


def _of_many(runs: Mapping[str, Sequence[Run]]) -> list[Outcome]:
    """Return ratios, seconds and megabytes."""
    group = "a million ops"
    found = {each.aim: each for each in _of_processes(group, runs)}
    for aim in _of_group(group):
        if aim.unit in _MEASURED:
            what, part = _MEASURED[aim.unit]
            before, library = runs.get(aim.run + _BEFORE), runs[_LIBRARY]
            found[aim.name] = Outcome(
                aim.name,
                median(runs[aim.run], what) / part,
                None,
                median(before, what) / part if before else None,
                median(library, what) / part if aim.family == "ops" else None,
            )
    return list(found.values())


def _measure(ops: int, turns: int, packages: Mapping[str, Path | None]) -> dict[str, list[Run]]:
    """Run commands as processes on a program of so many ops, beside the library's round trip."""
    group = "processes" if ops == _OPS else "a million ops"
    wanted = {_LIBRARY: (_LIBRARY, "ops"), **{each.run: (each.subject, each.family) for each in _of_group(group)}}
    known = {each.name: each for each in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        subjects = {family: Subject(family, ops, Path(folder, family)) for _, family in wanted.values()}
        for each in subjects.values():
            each.folder.mkdir()
        processes = {}
        for name, (command_name, family) in wanted.items():
            command, subject = known[command_name], subjects[family]
            for after, package in packages.items():
                if name == _LIBRARY and package:
                    continue
                arguments = subject.arguments(command.arguments)
                processes[name + after] = Process(arguments, command.codes, package, subject.file("to"))
        _say(f"whole processes, {ops:,} ops")
        # What runs once for many seconds needs no run before that.
        return take_turns(processes, turns, warm=turns > 1 or ops == _OPS)


def _of_calls(turns: int, packages: Mapping[str, Path | None]) -> list[Outcome]:
    """Return the ratios of calls; each case has processes of its own, one for each package."""
    outcomes = []
    for aim in _of_group("calls"):
        _say(aim.name)
        found = {after: _call(aim.subject, turns, package) for after, package in packages.items()}
        by_turn = {
            after: [a / b for a, b in zip(each["ours"], each["raw"], strict=True)] for after, each in found.items()
        }
        middle = {after: statistics.median(each) for after, each in by_turn.items()}
        raw = statistics.median(found[""]["raw"])
        outcomes.append(Outcome(aim.name, middle[""], None, middle.get(_BEFORE), raw, *_spread(by_turn[""])))
    return outcomes


def _spread(found: Sequence[float]) -> tuple[float | None, float | None]:
    return (min(found), max(found)) if len(found) > 1 else (None, None)


def _call(case: str, turns: int, package: Path | None) -> dict[str, list[float]]:
    assert case in CASES
    own = {"PYTHONPATH": str(package)} if package else {}
    script = str((package or Path(__file__).parents[1]) / "benchmarks" / "aim_pairs.py")
    command = [sys.executable, script, case, "--pairs", str(turns)]
    done = subprocess.run(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _print(outcomes: Sequence[Outcome]) -> None:
    known = {each.name: each for each in AIMS}
    table = Table(box=None, pad_edge=False)
    table.add_column("what", no_wrap=True)
    table.add_column("")
    for title in ("aim", "measured", "of cpu", "before, here", "before, as the issue has it", "compared, s or MB"):
        table.add_column(title, justify="right")
    for each in outcomes:
        aim = known[each.aim]
        missed = aim.most is not None and each.measured > aim.most
        table.add_row(
            each.aim,
            aim.unit,
            "" if aim.most is None else f"{aim.most:g}",
            f"{each.measured:.2f}{' !' if missed else ''}",
            "" if each.cpu is None else f"{each.cpu:.2f}",
            "" if each.before is None else f"{each.before:.2f}",
            aim.before,
            "" if each.raw is None else f"{each.raw:.3g}",
        )
    console = Console(width=160)
    console.print(table)
    console.print("\nMedians of the ratios turn by turn; ! is an aim that was missed.")
