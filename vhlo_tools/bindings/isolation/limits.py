"""What one call in a child process may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MEMORY", "OUTPUT", "SECONDS", "Limits", "readable_size"]

#: How long a call may run, in seconds, if nothing else is said.
SECONDS: Final = 60.0

#: How many bytes of memory a call may take, if nothing else is said.
MEMORY: Final = 4 << 30

#: How many bytes a call may return, if nothing else is said.
OUTPUT: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take; ``None`` is without limit.

    Attributes:
        seconds: How long it may run, once the child process is ready.
        memory: How many bytes of data the child may hold beyond what it holds before the call (``RLIMIT_DATA``). Arrays
            and views among the arguments are shared with the caller and do not count. Kept on Linux.
        output: How many bytes it may return, pickled values and arrays together.
    """

    seconds: float | None = SECONDS
    memory: int | None = MEMORY
    output: int | None = OUTPUT


def readable_size(size: int) -> str:
    """Return a number of bytes for a message: ``1.5 MiB (1572864 bytes)``."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit} ({size} bytes)"
    return f"{size} bytes"
