"""Counts the groups of other work that have a core or wait for one, until its input ends.

Linux shares cores among groups, and within each among its threads: with `sched_autogroup_enabled` a session is a group,
without it each thread is. `runnable_groups.py SESSION ...` leaves out the sessions that are named, and prints the
average.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Seconds between two looks, each of which takes some milliseconds.
_INTERVAL: Final = 0.2


def is_grouped() -> bool:
    """Return whether the kernel shares cores among sessions."""
    try:
        return Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1"
    except FileNotFoundError:
        return False


def _runnable() -> Iterator[tuple[str, str]]:
    """Yield the session and the number of each thread that has a core or waits for one."""
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in (process / "task").iterdir():
                with suppress(FileNotFoundError, ProcessLookupError):
                    # The name, which may have spaces, stands in parentheses before.
                    state, _, _, session, *_ = (task / "stat").read_text().rpartition(")")[2].split()
                    if state == "R":
                        yield session, task.name


def main() -> None:
    """Count until the input ends, and print the average."""
    left_out, total, number = set(sys.argv[1:]), 0, 0
    # Threads of the kernel have no session, and no group.
    grouped = is_grouped()
    while not select.select([sys.stdin], [], [], _INTERVAL)[0]:
        others = [each for each in _runnable() if each[0] not in left_out]
        total += len({session if grouped and session != "0" else thread for session, thread in others})
        number += 1
    print(total / max(1, number))


if __name__ == "__main__":
    main()
