"""Mutation testing of the core: change one token, run the tests of the room, and see whether one fails.

`mutants.py [-j N] [--room NAME]` draws the mutants that tests/mutation/rooms.toml asks for, always the same ones, and
runs the tests in temporary copies of the checkout; the checkout itself is never changed. The tests run unchanged first,
under coverage, so that a mutant's are tried in the order of clean_runs.py. Results are appended to a file as they come,
and the next run continues from there. Prints a table and the mutants that survived. The exit code is 1 if fewer than
nine in ten were killed, not counting equivalent ones. Needs `pip install --group mutation`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Final

from clean_runs import PYTEST, CleanRun, MutantsError, say, try_unchanged
from cosmic_ray.mutating import use_mutation
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome
from mutant_drawing import Mutant, draw, mutants_of, operator_named
from mutant_tables import ROOT, Part, Plan, load_equivalents, load_plan

RESULTS: Final = ROOT / "build" / "mutants.jsonl"
WANTED: Final = 0.9
#: A mutant may allocate without end, or never end: bytes of address space, and multiples of the time of the clean
#: run and of each of its tests.
MEMORY: Final = 8 << 30
PATIENCE: Final = 3
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a mutant."""

    key: str  # the key of the mutant
    place: str  # its file and line
    killed: bool  # whether a test failed, or ran out of time
    #: the first test that failed, or the last line of the output; empty for a survivor. Begins with `timeout` if time
    #: ran out
    by: str
    seconds: float  # how long the tests ran


def copy_checkout(folder: Path) -> None:
    """Copy the files of the checkout, as they are now, without those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    for name in dict.fromkeys(filter(None, listed.stdout.decode().split("\0"))):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def enter(copies: Queue[str]) -> None:
    """Initialize a worker process: it takes a copy of the checkout for itself."""
    copy = copies.get()
    os.chdir(copy)
    os.environ["PYTHONPATH"] = copy
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def try_mutant(mutant: Mutant, clean: CleanRun) -> Result:
    """Run the tests of a mutant in the copy of this worker."""
    begun = time.monotonic()
    order = clean.order(mutant.path, mutant.line)
    limits = Path.cwd().with_suffix(".limits")
    limits.write_text(json.dumps({name: PATIENCE * clean.seconds[name] + 30 for name in order}))
    command = [sys.executable, *shlex.split(PYTEST), f"--limits={limits}", *mutant.part.test_files()]
    with use_mutation(Path(mutant.path), operator_named(mutant.operator), mutant.occurrence):
        outcome, output = run_tests(shlex.join(command), PATIENCE * clean.total + 30)
    if outcome == TestOutcome.INCOMPETENT:
        raise MutantsError(f"{mutant.path}:{mutant.line}: the tests could not be started:\n{output}")
    killed = outcome == TestOutcome.KILLED
    # Where pytest itself does not start, it says so on the standard error.
    failed, lines = _FAILED.search(output), output.splitlines()
    by = "" if not killed else failed[1] if failed else lines[-1] if lines else "an error before the first test"
    if "TooLongError" in output:
        by = f"timeout of {by}"
    return Result(mutant.key, f"{mutant.path}:{mutant.line}", killed, by, round(time.monotonic() - begun, 1))


@contextmanager
def copies_of_checkout(parts: Sequence[Part], jobs: int) -> Iterator[tuple[list[str], dict[Part, CleanRun]]]:
    """Make copies of the checkout, one per job, and yield them with the runs of the unchanged code."""
    with tempfile.TemporaryDirectory(prefix="vhlo-mutants-") as folder:
        first = Path(folder).resolve() / "0"
        first.mkdir()
        copy_checkout(first)
        with ThreadPoolExecutor(jobs) as threads:
            clean = dict(zip(parts, threads.map(partial(try_unchanged, copy=first), parts), strict=True))
        copies = [first, *(first.with_name(str(i)) for i in range(1, jobs))]
        for copy in copies[1:]:
            shutil.copytree(first, copy, symlinks=True)
        yield [str(copy) for copy in copies], clean


def try_all(mutants: Sequence[Mutant], jobs: int, results: Path) -> None:
    """Run the tests of mutants and append the results to a file."""
    results.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    parts = list(dict.fromkeys(mutant.part for mutant in mutants))
    with copies_of_checkout(parts, jobs) as (copies, clean), results.open("a") as file:
        places: Queue[str] = context.Queue()
        for copy in copies:
            places.put(copy)
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=enter, initargs=(places,))
        try:
            tasks = [pool.submit(try_mutant, mutant, clean[mutant.part]) for mutant in mutants]
            for number, task in enumerate(as_completed(tasks), 1):
                result = task.result()
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
                end = f"killed by {result.by}" if result.killed else "SURVIVED"
                say(f"{number}/{len(tasks)} {result.place}: {end} ({result.seconds:.0f} s)")
        finally:
            pool.shutdown(cancel_futures=True)


def tablegen_folder() -> str:
    """Return the folder of LLVM's TableGen, installed or fetched; nothing if it cannot be had."""
    command = [sys.executable, str(ROOT / "scripts" / "find_tablegen.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def read_results(path: Path) -> dict[str, Result]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {result.key: result for result in (Result(**json.loads(line)) for line in lines)}


def report(mutants: Sequence[Mutant], results: dict[str, Result]) -> bool:
    """Print the table and the survivors; return whether enough mutants were killed."""
    listed = load_equivalents()
    equivalent = {mutant.key for mutant in mutants if mutant.is_listed(listed)}
    print("| room | drawn | equivalent | killed | survived | killed of the rest |")
    print("|---|---|---|---|---|---|")
    share = 1.0
    for room in [*dict.fromkeys(mutant.part.room for mutant in mutants), "all"]:
        chosen = [mutant.key for mutant in mutants if room in (mutant.part.room, "all") and mutant.key in results]
        rest = [key for key in chosen if key not in equivalent]
        killed = sum(results[key].killed for key in rest)
        share = killed / len(rest) if rest else 1.0
        unchanged, survived = len(chosen) - len(rest), len(rest) - killed
        print(f"| {room} | {len(chosen)} | {unchanged} | {killed} | {survived} | {share:.0%} |")
    print()
    for mutant in mutants:
        result = results.get(mutant.key)
        if result is not None and mutant.key in equivalent and result.killed:
            print(f"- {mutant.path}:{mutant.line}: listed as equivalent, but killed by {result.by}: `{mutant.after}`")
        elif result is not None and mutant.key not in equivalent and not result.killed:
            print(f"- {mutant.path}:{mutant.line} ({mutant.operator}) in `{mutant.function}`")
            print(f"  - `{mutant.before}`")
            print(f"  + `{mutant.after}`")
    return share >= WANTED


def chosen_mutants(plan: Plan, rooms: Sequence[str], places: Sequence[str]) -> list[Mutant]:
    """Return the drawn mutants, those of some rooms only, or all mutants of some lines."""
    if not places:
        return [mutant for mutant in draw(plan) if not rooms or mutant.part.room in rooms]
    mutants: list[Mutant] = []
    for place in places:
        path, _, line = place.partition(":")
        parts = [part for part in plan.parts if path in part.source_files()]
        if not parts:
            raise MutantsError(f"{path} is in no room of tests/mutation/rooms.toml")
        mutants += mutants_of(parts[0], path, plan.seed, int(line) if line else None)
    return mutants


def main() -> int:
    """Draw mutants, run their tests, and print the report."""
    plan = load_plan()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("-j", "--jobs", type=int, default=1, help="number of mutants tested at once (default: 1)")
    add("--room", action="append", default=[], help="only mutants of this room; may be repeated")
    add("--at", action="append", default=[], metavar="FILE[:LINE]", help="all mutants of a file or line, not the draw")
    add("--drawn", type=int, default=plan.drawn, help=f"number of mutants (default: {plan.drawn})")
    add("--seed", type=int, default=plan.seed, help=f"seed of the draw (default: {plan.seed})")
    add("--again", action="store_true", help="run the tests of survivors again")
    add("--dry-run", action="store_true", help="run no tests; report the results there are")
    add("--results", type=Path, default=RESULTS, help="file of the results (default: build/mutants.jsonl)")
    options = parser.parse_args()
    # As on Ctrl-C, the copies are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        mutants = chosen_mutants(Plan(options.drawn, options.seed, plan.parts), options.room, options.at)
        results = read_results(options.results)
        left = [
            mutant
            for mutant in mutants
            if mutant.key not in results or (options.again and not results[mutant.key].killed)
        ]
        if left and not options.dry_run:
            # Tests that read a fork of VHLO are skipped without it, and notice nothing.
            os.environ["PATH"] = os.pathsep.join(filter(None, (os.environ["PATH"], tablegen_folder())))
            try_all(left, options.jobs, options.results)
    except MutantsError as error:
        say(str(error))
        return 2
    return 0 if report(mutants, read_results(options.results)) else 1


if __name__ == "__main__":
    sys.exit(main())
