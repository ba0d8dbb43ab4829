"""Kill migrations at random moments, and see that a second run brings the store to the same end.

Each time a store is migrated by `vhlo migrate`, which is killed with SIGKILL at a moment drawn from a seed: by turns
its first process alone, and all of them. Then every file must be whole, old or new; and after the same command has run
again, every file must be what it is after a migration that nobody disturbed, by its digest: none lost, none
half-written, none done twice, and nothing left behind. Every backup must be listed before it is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.corpus_files import corpus_files

VHLO: Final = [sys.executable, "-m", "vhlo_tools.cli.main"]
TARGET: Final = "1.13.0"
JOURNAL: Final = ".vhlo-migration"
LIST: Final = ".vhlo-backups"
BACKUP: Final = ".old"


@dataclass(frozen=True)
class Killed:
    """What was seen of one migration that was killed."""

    after: float | None  # after how many seconds that was; ``None`` if it had ended by then
    new: int  # how many files were new at that moment
    problems: tuple[str, ...]  # what was not as it should be


def fill(store: Path, number: int) -> None:
    """Make a store of artifacts that old releases wrote, each different from all others; some stay as they are."""
    files = (data for _, data in corpus_files(ordinary=False))
    for index, data in zip(range(number), files, strict=False):
        place = store / f"{index % 7}" / f"{index}.mlirbc"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def digests(store: Path) -> dict[str, str]:
    """Return the digests of all files of a store by their names."""
    paths = (each for each in store.rglob("*") if each.is_file())
    return {str(each.relative_to(store)): hashlib.sha256(content(each)).hexdigest() for each in paths}


def content(path: Path) -> bytes:
    """Return the content of a file; of a list of backups the names, in order and each once."""
    if path.name != LIST:
        return path.read_bytes()
    return b"\n".join(sorted(set(path.read_bytes().splitlines())))


def unlisted(store: Path) -> Iterator[str]:
    """Yield the backups that would be taken for programs, because no list names them."""
    for each in store.rglob(f"*{BACKUP}"):
        listed = each.with_name(LIST)
        if not listed.exists() or each.name not in listed.read_text().splitlines():
            yield f"{each.relative_to(store)} is not listed"


def command(store: Path, report: Path) -> list[str]:
    """Return the command that migrates a store, and keeps old files."""
    options = ["-j", "2", "--backup-suffix", BACKUP, "--output-format", "json", "-o", str(report)]
    return [*VHLO, "migrate", str(store), "--target", TARGET, *options]


def killed(template: Path, end: dict[str, str], statuses: dict[str, str], longest: float, seed: int) -> Killed:
    """Migrate a copy of a store, kill that, look, finish it, and look again."""
    moment = random.Random(seed).uniform(0, longest)
    start = digests(template)
    with tempfile.TemporaryDirectory() as folder:
        store, report = Path(folder) / "store", Path(folder) / "report.json"
        shutil.copytree(template, store)
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command(store, report), stdout=quiet, stderr=quiet, start_new_session=True)
        await_journal(store, process)
        time.sleep(moment)
        if seed % 2:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        early = process.wait() == -signal.SIGKILL
        seen = digests(store)
        torn = [name for name in start if seen.get(name) not in (start[name], end[name])]
        again = subprocess.run(command(store, report), capture_output=True, text=True, check=False)
        problems = [f"{name} is neither old nor new" for name in torn]
        problems += unlisted(store)
        problems += _differences(digests(store), end)
        if again.returncode not in (0, 1):
            problems.append(again.stderr)
        elif any(seen.get(name) != digest for name, digest in end.items()):
            # One that had come to its end is not known to the next, which has nothing to do.
            told = read_statuses(store, report)
            wrong = [name for name in statuses if told.get(name) != statuses[name]]
            problems += [f"{name} was {statuses[name]} and is told as {told.get(name)}" for name in wrong]
        new = sum(seen.get(name) == end[name] != start[name] for name in start)
        return Killed(moment if early else None, new, tuple(problems))


def await_journal(store: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a migration has begun; until then its process only starts."""
    while not (store / JOURNAL).exists() and process.poll() is None:
        time.sleep(0.01)


def read_statuses(store: Path, report: Path) -> dict[str, str]:
    """Return what a report says of each file, by its name in the store."""
    files = json.loads(report.read_text())["files"]
    return {str(Path(each["path"]).relative_to(store)): each["status"] for each in files}


def _differences(found: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    for name in sorted({*found, *expected}):
        if name not in found:
            yield f"{name} is lost"
        elif name not in expected:
            yield f"{name} was left behind"
        elif found[name] != expected[name]:
            yield f"{name} is another than without the kill"


def check(kills: int, files: int, seed: int) -> Iterator[Killed]:
    """Yield what was seen of so many killed migrations of a store of so many files."""
    with tempfile.TemporaryDirectory() as folder:
        template, whole = Path(folder) / "template", Path(folder) / "whole"
        report = Path(folder) / "report.json"
        fill(template, files)
        shutil.copytree(template, whole)
        process = subprocess.Popen(command(whole, report), stderr=subprocess.DEVNULL)
        await_journal(whole, process)
        started = time.perf_counter()
        process.wait()
        longest = time.perf_counter() - started
        end, statuses = digests(whole), read_statuses(whole, report)
        assert "moved" in statuses.values()
        for each in range(kills):
            yield killed(template, end, statuses, longest, seed + each)


def main() -> int:
    """Print what was seen of every migration, and return whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes: Counter[bool] = Counter()
    for number, seen in enumerate(check(arguments.kills, arguments.files, arguments.seed), 1):
        outcomes[not seen.problems] += 1
        when = "after its end" if seen.after is None else f"after {seen.after:.2f} s, {seen.new} files new"
        print(f"{number}: killed {when}; {len(seen.problems)} problems", *seen.problems[:5], sep="\n  ", flush=True)
    print(f"{outcomes[True]} of {outcomes.total()} came to the same end")
    return 0 if not outcomes[False] else 1


if __name__ == "__main__":
    sys.exit(main())
