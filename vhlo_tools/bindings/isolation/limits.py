"""Resource limits of a call in a child process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vhlo_tools.records import dataclass

#: The default time limit of a call, in seconds.
SECONDS: Final = 60.0

#: The default memory limit of a call, in bytes.
MEMORY: Final = 4 << 30

#: The default limit of the size of a call's result, in bytes.
OUTPUT: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a call; ``None`` means unlimited."""

    seconds: float | None = SECONDS  # counted from when the child process is ready
    #: Bytes of data that the child may allocate in addition to those before the call (``RLIMIT_DATA``, enforced on
    #: Linux). Arrays and views among the arguments are shared with the caller and do not count.
    memory: int | None = MEMORY
    output: int | None = OUTPUT  # bytes of the result, pickled values and arrays together
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
    """Format a number of bytes for a message: ``1.5 MiB (1572864 bytes)``."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit} ({size} bytes)"
    return f"{size} bytes"
