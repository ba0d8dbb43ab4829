"""Limits of an isolated process, and what it uses of them."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable
from typing import Final

from vhlo_tools.records import dataclass

# Resource limits of a call in a child process


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a call; ``None`` means unlimited."""

    seconds: float | None = 60.0  # counted from when the child process is ready
    #: Bytes of data that the child may allocate in addition to those before the call (``RLIMIT_DATA``, enforced on
    #: Linux). Arrays and views among the arguments are shared with the caller and do not count.
    memory: int | None = 4 << 30
    output: int | None = 1 << 30  # bytes of the result, pickled values and arrays together
    #: How many times ``seconds`` a child may take that has had less than ``seconds`` of a processor, because the
    #: machine is busy or has suspended it. Only where the system tells the time of a child (Linux).
    patience: float = 1.0


class Deadline:
    """The end of a call; ``cpu_seconds`` returns the child's processor time, ``None`` if it is unknown."""

    def __init__(self, limits: Limits, cpu_seconds: Callable[[], float | None]) -> None:
        self._seconds = limits.seconds
        self._cpu_seconds = cpu_seconds
        self._before = cpu_seconds()
        now = time.monotonic()
        self._end = now + (limits.seconds or 0)
        self._last = now + limits.patience * (limits.seconds or 0)

    @property
    def left(self) -> float | None:
        """The seconds that are left, at most 0 at the end; ``None`` without an end."""
        if self._seconds is None:
            return None
        now = time.monotonic()
        if now >= self._end and now < self._last and (used := self.used) is not None:
            self._end = min(self._last, now + max(self._seconds - used, 0))
        return self._end - now

    @property
    def used(self) -> float | None:
        """The seconds of a processor that the child has had during the call."""
        now = self._cpu_seconds()
        return None if self._before is None or now is None else now - self._before

    def postpone(self, seconds: float) -> None:
        self._end += seconds
        self._last += seconds


def readable_size(size: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit} ({size} bytes)"
    return f"{size} bytes"


# State that a child process records: the op in progress, in memory that outlives it, and its need to retire

#: The bytes of a note, its length included.
NOTE_SIZE: Final = 1024

_LENGTH: Final = struct.Struct("<H")

_slot: mmap.mmap | None = None
_retiring = _settling = False
_is_child = False


def note(text: str) -> None:
    """Record the op in progress, such as ``stablehlo.divide at model.py:3:4``, in less than a microsecond.

    It becomes ``op`` of the error if the child crashes or is terminated, truncated if long; without effect elsewhere.
    """
    if _slot is not None:
        data = text.encode(errors="replace")[: NOTE_SIZE - _LENGTH.size]
        _slot[: _LENGTH.size + len(data)] = _LENGTH.pack(len(data)) + data


def become_child() -> None:
    """Say that the death of this process is an error and nothing more."""
    global _is_child
    _is_child = True


def in_child() -> bool:
    """Return whether the death of this process is an error and nothing more."""
    return _is_child


def attach(descriptor: int) -> None:
    global _slot
    become_child()
    _slot = mmap.mmap(descriptor, NOTE_SIZE)


def retire_after_call() -> None:
    """Retire this child after the current call, because its memory may have been corrupted."""
    global _retiring
    _retiring = True


def is_retiring() -> bool:
    return _retiring


def settle_after_call() -> None:
    """Count the growth of this child from after the current call, which has loaded what later ones use."""
    global _settling
    _settling = True


def is_settling() -> bool:
    global _settling
    was, _settling = _settling, False
    return was


def read_note(descriptor: int) -> str | None:
    data = os.pread(descriptor, NOTE_SIZE, 0)
    length = _LENGTH.unpack_from(data)[0] if len(data) == NOTE_SIZE else 0
    return data[_LENGTH.size :][:length].decode(errors="replace") or None


def memory_usage(process: int | str) -> list[int] | None:
    """Return the pages of ``statm`` of proc(5); ``None`` without such a file. ``process`` may be ``self``."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123 - in every call, and twice as fast
            return [int(each) for each in file.read().split()]
    except OSError:
        return None


def cpu_seconds(process: int) -> float | None:
    """Return the CPU time in ``stat`` of proc(5); ``None`` without such a file."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 - in every call, and twice as fast
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
