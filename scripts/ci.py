"""Run what must hold before a change is merged: ``ci.py [--full | --only STEP ... | --list]``; ``.ci/run`` calls it.

Steps run beside each other where the machine has cores for them. What takes seconds always runs, and so do the short
tests, the wheel and the documentation. Of the longer steps, those run that can notice what has changed since the last
commit that passed all of them, beginning with one that differs from commit to commit, as many as fit into
:data:`MINUTES`; what is left is said. ``--full`` runs everything, goes on after a failure, and, where all passed and
nothing is uncommitted, records that in ``.ci/full.toml``, which is to be committed. After a failure it goes on with
what failed, and what can notice the changes since; ``--anew`` runs everything again. ``--list`` prints as JSON what
would run: the jobs of a forge. It needs Python 3.11 or newer and git, and nothing that is installed.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import timeit
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from ci_steps import ENVIRONMENT, ROOT, STEPS, UV, LackingError, Step

#: What a run may take that is not a full one, by what its steps took in the last full one.
MINUTES: Final = 17
RECORD: Final = ROOT / ".ci" / "full.toml"
#: The steps of the last full runs that passed: by their names, the commit, the seconds, and those of all cores.
KEPT: Final = ROOT / "build" / "full-steps.json"
_BY_NAME: Final[Mapping[str, Step]] = {step.name: step for step in STEPS}


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    step: Step  # the step
    #: how it ended; "not started" because one that it waits for did not pass
    result: Literal["passed", "failed", "cannot run here", "not started"]
    seconds: float = 0  # how long it took
    cpu: float = 0  # the seconds of all cores that it took


@dataclass(frozen=True)
class Record:
    """The last run of all steps that passed."""

    commit: str  # the commit that passed them
    #: by the name of each step, the seconds that it took, and those of all cores
    steps: Mapping[str, tuple[float, float]]
    pace: float = 1.0  # what :func:`pace` gave on its machine

    @classmethod
    def read(cls) -> Record | None:
        """Return the record; ``None`` if there is none, or the history here does not have its commit."""
        if not RECORD.exists():
            return None
        found = tomllib.loads(RECORD.read_text(encoding="utf-8"))
        if not _git("cat-file", "-t", found["commit"]):
            return None
        steps = {name: (each[0], each[1]) for name, each in found["steps"].items()}
        return cls(found["commit"], steps, found["pace"])

    @staticmethod
    def write(outcomes: Iterable[Outcome], seconds: float) -> None:
        """Record that the commit which is checked out passed."""
        lines = [
            "# Written by `.ci/full` when all steps passed: what `.ci/run` compares a checkout with.",
            f'commit = "{_git("rev-parse", "HEAD")}"',
            f"date = {datetime.datetime.now(datetime.UTC).date()}",
            f"minutes = {seconds / 60:.1f}",
            f"cores = {_cores()}",
            f"pace = {pace():.3f}",
            "",
            "# The seconds of each step, and those of all cores that it took.",
            "[steps]",
            *(f'"{each.step.name}" = [{each.seconds:.0f}, {each.cpu:.0f}]' for each in outcomes),
        ]
        RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


def chosen(
    changed: Sequence[str] | None, record: Record | None, turn: int, slowness: float = 1.0
) -> tuple[list[Step], list[str]]:
    """Return the steps of a run that is not a full one, and the names of those that are left though concerned.

    Args:
        changed: The files that differ from the last commit that passed all steps; ``None`` if that is unknown.
        record: What that commit took; without it, nothing is left for a lack of time.
        turn: A number that differs from commit to commit, and says which longer step comes first.
        slowness: How many times as long as on the machine of the record anything takes here.
    """
    always = [step for step in STEPS if not step.changes]
    longer = [step for step in STEPS if step.changes and not step.full and not step.name.endswith(": environment")]
    turn %= len(longer)
    ordered = [*longer[turn:], *longer[:turn]]
    # The first one in any case: none goes unrun for long.
    concerned = [step for step in ordered if step is ordered[0] or changed is None or _concerns(step, changed)]
    taken, left = list(always), list[str]()
    for step in concerned:
        if step is ordered[0] or _minutes(_with_needs([*taken, step]), record, slowness) <= MINUTES:
            taken.append(step)
        else:
            left.append(step.name)
    left += [step.name for step in STEPS if step.full and (changed is None or _concerns(step, changed))]
    return _with_needs(taken), left


def passed_before() -> dict[str, Outcome]:
    """Return the longer steps that passed in a full run at a commit since which nothing that concerns them changed."""
    try:
        kept: dict[str, tuple[str, float, float]] = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = {}
    for name, (commit, seconds, cpu) in kept.items():
        step = _BY_NAME.get(name)
        if step and step.changes and _git("cat-file", "-t", commit) and not _concerns(step, _changed_since(commit)):
            found[name] = Outcome(step, "passed", seconds, cpu)
    return found


def _keep(outcomes: Iterable[Outcome]) -> None:
    """Keep what passed, in place of what was kept: it holds for this commit too."""
    commit = _git("rev-parse", "HEAD")
    passed = {each.step.name: (commit, each.seconds, each.cpu) for each in outcomes if each.result == "passed"}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(passed, indent=1), encoding="utf-8")


def pace() -> float:
    """Return the seconds of a fixed computation: a run is planned by those of its machine and of the recorded one."""
    return min(timeit.repeat("for i in range(10**6): i * i", number=5, repeat=5))


def _concerns(step: Step, changed: Iterable[str]) -> bool:
    # The modules that lie beside the rooms, such as records.py, are used by all of them.
    return any(
        Path(file).parent == Path("vhlo_tools") or any(fnmatch.fnmatchcase(file, pattern) for pattern in step.changes)
        for file in changed
    )


def _with_needs(steps: Iterable[Step]) -> list[Step]:
    """Return steps with those that make their environments, in the order of all."""
    names: set[str] = set()

    def add(step: Step) -> None:
        if step.name not in names:
            names.add(step.name)
            for name in step.after:
                add(_BY_NAME[name])

    for step in steps:
        add(step)
    return [step for step in STEPS if step.name in names]


def _minutes(steps: Iterable[Step], record: Record | None, slowness: float) -> float:
    """Return how long steps will take on the cores of this machine, as far as it is known."""
    known = record.steps if record else {}
    return slowness * sum(known.get(step.name, (0, 0))[1] for step in steps) / _cores() / 60


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_steps(steps: Sequence[Step], since: str | None = None) -> list[Outcome]:
    """Run steps, beside each other where there are cores for them, and print what each said when it has ended.

    Args:
        steps: The steps, the most urgent first. Those that another one waits for are among them, or were run before.
        since: The commit whose differences the steps are about that can be narrowed to them.

    Returns:
        How each ended, in the order of their ends.
    """
    outcomes: list[Outcome] = []
    waiting = list(steps)
    with tempfile.TemporaryDirectory(prefix="vhlo-ci-") as logs, _ended_together() as running:
        while waiting or running:
            if running.told_to_end:
                sys.exit(1)
            ended = {each.step.name: each.result for each in outcomes}
            pending = {step.name for step in waiting} | {each.step.name for each in running}
            # One that has no room yet keeps later ones from taking it, but for those that wait for the network.
            is_full = False
            for step in list(waiting):
                if unmet := {ended.get(name, "passed") for name in step.after} - {"passed"}:
                    waiting.remove(step)
                    is_lack = unmet == {"cannot run here"}
                    outcomes.append(Outcome(step, "cannot run here" if is_lack else "not started"))
                    break
                if pending.intersection(step.after) or (is_full and step.cores):
                    continue
                if not _has_room(step, [each.step for each in running]):
                    is_full = is_full or bool(step.cores)
                    continue
                waiting.remove(step)
                try:
                    running.append(_Running(step, Path(logs), since))
                except LackingError as lack:
                    print(f"== {step.name}: not run, {lack}", flush=True)
                    outcomes.append(Outcome(step, "cannot run here"))
                break
            else:
                time.sleep(0.1)
            for each in list(running):
                if (outcome := each.ended()) is not None:
                    running.remove(each)
                    outcomes.append(outcome)
    return outcomes


def _has_room(step: Step, running: Sequence[Step]) -> bool:
    if not step.cores:
        return all(each.cores for each in running)
    busy = sum(min(each.cores, _cores()) for each in running)
    return busy + min(step.cores, _cores()) <= _cores()


class _Running:
    """A step that has been started, in a session of its own, with its output in a file."""

    def __init__(self, step: Step, logs: Path, since: str | None) -> None:
        self.step = step
        # Without what it has compiled, each of thousands of processes would compile the package anew.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables = {**kept, **({"VHLO_TOOLS_UV": str(UV)} if UV.exists() else {}), **step.variables()}
        command = [*step.command, *([f"--changed={since}"] if since and step.narrowed else [])]
        print(f"== {step.name}: {' '.join(command)}", flush=True)
        self._log: IO[bytes] = (logs / step.name.replace(" ", "-")).open("w+b")
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def ended(self) -> Outcome | None:
        """Return how it ended, and show what it said; ``None`` while it runs."""
        number, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not number:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds, cpu = time.monotonic() - self._began, usage.ru_utime + usage.ru_stime
        result: Literal["passed", "failed"] = "failed" if self.process.returncode else "passed"
        self._log.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(self._log.read())
        self._log.close()
        code = f" (exit code {self.process.returncode})" if self.process.returncode else ""
        print(f"== {result}: {self.step.name}{code} ({seconds:.0f} s)", flush=True)
        return Outcome(self.step, result, seconds, cpu)


class _AllRunning(list["_Running"]):
    """What runs; a signal is noted, for what an error here interrupted could be a start that is in no list yet."""

    told_to_end = False

    def end(self, *_: object) -> None:
        self.told_to_end = True


@contextmanager
def _ended_together() -> Iterator[_AllRunning]:
    """Give a list of what runs, which is killed if this process is told to end."""
    running = _AllRunning()
    before = {each: signal.signal(each, running.end) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield running
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in running:
            os.killpg(each.process.pid, signal.SIGKILL)


def _git(*arguments: str) -> str:
    """Return what git prints; nothing if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def _changed_since(commit: str) -> list[str]:
    """Return the files that differ from a commit, those that git does not know yet included, without the record."""
    named = f"{_git('diff', '--name-only', commit)}\n{_git('ls-files', '--others', '--exclude-standard')}"
    return sorted(set(named.split("\n")) - {"", str(RECORD.relative_to(ROOT))})


def _table(outcomes: Iterable[Outcome]) -> str:
    rows: list[tuple[str, ...]] = [("step", "seconds", "of all cores", "")]
    rows += ((each.step.name, f"{each.seconds:.0f}", f"{each.cpu:.0f}", each.result) for each in outcomes)
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:{width}} {seconds:>8} {cpu:>13}  {result}".rstrip() for name, seconds, cpu, result in rows)


def main() -> int:
    """Run the steps, and print a table of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="run all steps, and record that all passed")
    parser.add_argument(
        "--only", nargs="+", choices=list(_BY_NAME), metavar="STEP", help="run these, with what they need"
    )
    parser.add_argument("--anew", action="store_true", help="with --full: run what passed in an earlier run too")
    parser.add_argument("--list", action="store_true", help="print the names of what would run, as JSON")
    options = parser.parse_args()
    record = Record.read()
    changed = _changed_since(record.commit) if record else None
    left: list[str] = []
    before: dict[str, Outcome] = {}
    if options.only:
        steps = _with_needs(_BY_NAME[name] for name in options.only)
    elif options.full:
        # The jobs of a forge are all of them.
        before = {} if options.anew or options.list else passed_before()
        steps = _with_needs(step for step in STEPS if step.name not in before)
    else:
        # The jobs of a forge run beside each other, so that none is left.
        slowness = pace() / record.pace if record and not options.list else 0.0
        steps, left = chosen(changed, record, len(_git("rev-list", "HEAD").split()), slowness)
    if options.list:
        print(json.dumps([step.name for step in steps if not step.name.endswith((ENVIRONMENT, "uv"))]))
        return 0
    clean = not _git("status", "--porcelain")
    began = time.monotonic()
    outcomes = run_steps(steps, None if options.full or record is None else record.commit)
    seconds = time.monotonic() - began
    again = {each.step.name for each in outcomes}
    outcomes = [*(each for name, each in before.items() if name not in again), *outcomes]
    failed = [each.step.name for each in outcomes if each.result in ("failed", "not started")]
    print(f"\n{_table(outcomes)}\n\n{seconds / 60:.1f} minutes on {_cores()} cores")
    is_known = options.full and not options.only and clean and not _git("status", "--porcelain")
    if is_known:
        _keep(outcomes)
    if left:
        print(
            f"left for .ci/full, though what changed since {((record and record.commit) or '')[:9]} concerns them: "
            f"{', '.join(left)}"
        )
    if failed:
        print(f"== FAILED: {', '.join(failed)}")
        return 1
    print("== all passed")
    if is_known:
        Record.write(outcomes, seconds + sum(each.seconds for name, each in before.items() if name not in again))
        print(f"recorded in {RECORD.relative_to(ROOT)}: commit it")
    elif options.full and not options.only:
        print("not recorded, for the checkout differs from its commit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
