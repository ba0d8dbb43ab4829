"""What threads took of the cores, and what they waited for them, as Linux accounts for it.

The scheduler of the kernel counts for each thread the time on a core, and the time in which it could run and none was
free. What is left of a span of time is waiting for something else: the disk, a message, a lock. So a measurement on a
machine that others use can say what was waited for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self


@dataclass(frozen=True, slots=True)
class Account:
    """What a thread, or several, took until a moment or between two."""

    cpu: float = 0.0  # seconds on a core
    queued: float = 0.0  # seconds of waiting for a core
    waits: int = 0  # how often they waited for something else
    turns: int = 0  # how often a core was taken from them

    def __add__(self, other: Account) -> Account:
        return Account(
            self.cpu + other.cpu, self.queued + other.queued, self.waits + other.waits, self.turns + other.turns
        )

    def __sub__(self, other: Account) -> Account:
        return Account(
            self.cpu - other.cpu, self.queued - other.queued, self.waits - other.waits, self.turns - other.turns
        )

    @classmethod
    def of_task(cls, folder: Path) -> Self:
        """Return that of a thread, by its folder in ``/proc``."""
        cpu, queued, _ = (folder / "schedstat").read_text().split()
        lines = (folder / "status").read_text().splitlines()
        waits, turns = (int(line.split()[1]) for line in lines if "voluntary_ctxt_switches" in line)
        return cls(int(cpu) / 1e9, int(queued) / 1e9, waits, turns)

    @classmethod
    def of_this_thread(cls) -> Self:
        """Return that of the calling thread."""
        return cls.of_task(Path("/proc/thread-self"))


def accounts_of(process: int | str = "self") -> dict[str, Account]:
    """Return the accounts of the threads of a process, by their numbers; none of a process that has ended."""
    found = {}
    with suppress(FileNotFoundError):
        for folder in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found[folder.name] = Account.of_task(folder)
    return found


def named_accounts() -> dict[str, Account]:
    """Return the accounts of the threads of this process that Python has started, summed by their names."""
    names = {str(each.native_id): each.name for each in threading.enumerate()}
    found: dict[str, Account] = {}
    for number, account in accounts_of().items():
        name = names.get(number, "other")
        found[name] = found.get(name, Account()) + account
    return found


@dataclass(slots=True)
class Load:
    """What a machine did between two moments."""

    foreign: float = 0.0  # how many groups of other work had a core or waited for one, on average
    busy: float = 0.0  # seconds of its cores that were used, by all
    idle: float = 0.0  # seconds of its cores that were not
    stolen: float = 0.0  # seconds of its cores that other machines had, on the hardware that they share
    seconds: float = 0.0  # the seconds in between


_COUNTER: Final = Path(__file__).with_name("runnable_groups.py")


@contextmanager
def observed_load(sessions: Iterable[int]) -> Iterator[Load]:
    """Yield what says, after the block, what the machine did in it.

    Args:
        sessions: The sessions that are no other work, beside that of this process.
    """
    load = Load()
    command = [sys.executable, "-I", "-S", str(_COUNTER), str(os.getsid(0)), *map(str, sessions)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as counter:
        before, began = _ticks(), time.perf_counter()
        try:
            yield load
        finally:
            load.seconds = time.perf_counter() - began
            user, nice, system, idle, waiting, hard, soft, stolen = (
                (new - old) / os.sysconf("SC_CLK_TCK") for old, new in zip(before, _ticks(), strict=True)
            )
            load.busy, load.idle, load.stolen = user + nice + system + hard + soft, idle + waiting, stolen
            load.foreign = float(counter.communicate()[0])


def _ticks() -> list[int]:
    return [int(each) for each in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]
