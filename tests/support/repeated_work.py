"""A process that converts programs, and prints the digest of all that it wrote: `repeated_work.py [OPTION...] < TASKS`.

Each line of its input is a task: a way to convert, a target, and the path of a program, separated by tabs. It prints a
line for each, in their order, whatever the order of the work: SHA-256 of the artifact and of its manifest, or the
error. `--reversed` begins with the last task, `--threads` works on four at a time, and `--day=N` is N days later.
"""

from __future__ import annotations

import datetime
import hashlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

WAYS: Final = ("serialize", "expand", "strip", "retarget")


def move_clocks(days: int) -> None:
    """Let every clock of Python say that it is some days later."""
    seconds = days * 86_400
    for name, unit in (("time", 1), ("time_ns", 1_000_000_000)):
        now = getattr(time, name)
        setattr(time, name, lambda now=now, unit=unit: now() + seconds * unit)
    now = datetime.datetime.now

    class Day(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return now().date() + datetime.timedelta(days)

    datetime.date = Day  # type: ignore[misc]


def converted(way: str, target: str, path: str) -> str:
    import vhlo_tools as vt

    try:
        if way == "serialize":
            made = vt.serialize(path, target)
        elif way == "expand":
            made = vt.serialize(path, target, expand=True, allow_relaxed="all", allow_signature_change=True)
        elif way == "strip":
            made = vt.strip(vt.open_artifact(path))
        else:
            made = vt.retarget(vt.open_artifact(path), target)
    except vt.VhloToolsError as error:
        return f"{type(error).__name__} {hashlib.sha256(str(error).encode()).hexdigest()}"
    manifest = vt.Manifest.of(made).encode()
    return f"{hashlib.sha256(bytes(made)).hexdigest()} {hashlib.sha256(manifest).hexdigest()}"


def main(options: list[str]) -> None:
    """Do the tasks."""
    for each in options:
        if each.startswith("--day="):
            move_clocks(int(each.removeprefix("--day=")))
    tasks = [tuple(line.rstrip("\n").split("\t")) for line in sys.stdin]
    order = list(reversed(tasks)) if "--reversed" in options else tasks
    with ThreadPoolExecutor(4 if "--threads" in options else 1) as threads:
        done = dict(zip(order, threads.map(lambda task: converted(*task), order), strict=True))
    sys.stdout.writelines(f"{done[task]}\n" for task in tasks)


if __name__ == "__main__":
    main(sys.argv[1:])
