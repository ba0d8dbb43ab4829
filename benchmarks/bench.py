"""Measure this package against the bare library: `bench.py serialize`, `bench.py growth --record`.

Both run in one process and by turns, so that a machine that gets slower gets slower for both. Printed are the medians,
the median of the ratios pair by pair, and how far the memory of the process peaked above where it stood before.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import bench_aims
import bench_expand
import bench_frameworks
import bench_gate
import bench_growth
import bench_migrate
import bench_opt
import bench_reference
import bench_start
import bench_torch
import bench_xla
from library_cases import bytecode_cases, check_cases, serialize_cases
from pairs import MEGABYTE, Case, measure_pairs, median_ratio
from rich.console import Console
from rich.table import Table

from vhlo_tools.bindings import get_provider


def run_cases() -> Iterator[Case]:
    """Yield runs of compiled programs."""
    for case in bench_xla.cases():
        yield Case(*case)


def expand_cases() -> Iterator[Case]:
    """Yield programs that are expanded."""
    for case in bench_expand.cases():
        yield Case(*case)


def opt_cases() -> Iterator[Case]:
    """Yield whole runs of `vhlo opt`."""
    for case in bench_opt.cases():
        yield Case(*case)


SUITES: dict[str, Callable[[], Iterator[Case]]] = {
    "bytecode": bytecode_cases,
    "check": check_cases,
    "expand": expand_cases,
    "opt": opt_cases,
    "run": run_cases,
    "serialize": serialize_cases,
}
NOTES = {
    "bytecode": "Raw is the library's deserialization of the same file, but where it says otherwise; it parses and "
    "serializes where ours encodes.",
    "check": "Raw is the library's deserialization of the same file, but where it says otherwise.",
    "expand": "Ours expands 1,000 `tan` of 100,000 ops; raw writes the program as it is, for its own version.",
    "opt": "Raw is `python -c 'import jaxlib.mlir.ir'`.",
    "run": "Both go from an array of numpy to an array of numpy, with a program that was compiled before.",
    "serialize": "Ours includes the copy that leaves the caller's module as it is; the library's call rewrites it to "
    "VHLO. Below 1.9.0 ours also makes range locations plain, without which such readers refuse the file.",
}


#: What prints tables of its own.
OTHERS = ("aims", "frameworks", "gate", "growth", "migrate", "reference", "start", "torch")


def main() -> None:
    """Run a suite and print a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", choices=[*SUITES, *OTHERS])
    parser.add_argument("--pairs", type=int, default=9, help="how often each is run (default 9)")
    parser.add_argument(
        "--quick", action="store_true", help="leave the largest out of `aims`, `gate`, `growth` and `migrate`"
    )
    parser.add_argument("--against", metavar="REVISION", help="measure the package of a revision of git too, in `aims`")
    parser.add_argument(
        "--record", action="store_true", help="write docs/performance.md and its pictures, of `aims`, `growth`, `start`"
    )
    parser.add_argument(
        "--python", action="append", metavar="PYTHON", help="an interpreter to measure with; may be repeated"
    )
    arguments = parser.parse_args()
    if arguments.python:
        run_with(arguments.python)
        return
    if arguments.suite == "growth":
        bench_growth.run(quick=arguments.quick, keep=arguments.record)
        return
    if arguments.suite == "aims":
        bench_aims.run(arguments.pairs, against=arguments.against, quick=arguments.quick, keep=arguments.record)
        return
    if arguments.suite == "gate":
        bench_gate.run(arguments.pairs, quick=arguments.quick)
        return
    if arguments.suite == "migrate":
        bench_migrate.run(arguments.pairs, quick=arguments.quick)
        return
    if arguments.suite == "frameworks":
        bench_frameworks.run(arguments.pairs)
        return
    if arguments.suite == "start":
        bench_start.run(arguments.pairs, keep=arguments.record)
        return
    if arguments.suite == "reference":
        bench_reference.run(arguments.pairs)
        return
    if arguments.suite == "torch":
        sys.exit(0 if bench_torch.run(arguments.pairs) else 1)
    table = Table(box=None, pad_edge=False)
    table.add_column("case")
    for column in ("ours, s", "raw, s", "ratio", "ours, peak MB", "raw, peak MB"):
        table.add_column(column, justify="right")
    for case in SUITES[arguments.suite]():
        ours, raw = measure_pairs(case, arguments.pairs)
        table.add_row(
            case.name,
            *(f"{statistics.median(each.seconds for each in runs):.3f}" for runs in (ours, raw)),
            f"{median_ratio(ours, raw):.2f}",
            *(f"{statistics.median(each.peak for each in runs) / MEGABYTE:.0f}" for runs in (ours, raw)),
        )
    console = Console()
    console.print(table)
    console.print(f"\nMedians of {arguments.pairs} pairs, {get_provider().library.name}. {NOTES[arguments.suite]}")


def run_with(interpreters: list[str]) -> None:
    """Run what the command line says with other interpreters, one after the other."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == "--python":
            next(words)
        elif not word.startswith("--python="):
            kept.append(word)
    for each in interpreters:
        print(f"{each}:", flush=True)
        subprocess.run([each, str(Path(__file__)), *kept], check=True)


if __name__ == "__main__":
    main()
