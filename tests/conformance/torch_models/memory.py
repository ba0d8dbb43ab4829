"""The peak memory of a process, measured by itself; imports nothing, for it runs in child processes too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

#: The name of :func:`peak_here` for calls in a child process.
PEAK_HERE: Final = f"{__name__}:peak_here"


def peak_here() -> int:
    """Return the peak of the resident memory of this process in bytes, without that of a process before ``exec``."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
