"""State that a child process records: the op in progress, in memory that outlives it, and its need to retire."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Final

#: The bytes of a note, its length included.
NOTE_SIZE: Final = 1024

_LENGTH: Final = struct.Struct("<H")

_slot: mmap.mmap | None = None
_worn_out = False


def note(text: str) -> None:
    """Record the op in progress, such as ``stablehlo.divide at model.py:3:4``, in less than a microsecond.

    It becomes ``op`` of the error if the child crashes or is terminated, truncated if long; without effect elsewhere.
    """
    if _slot is not None:
        data = text.encode(errors="replace")[: NOTE_SIZE - _LENGTH.size]
        _slot[: _LENGTH.size + len(data)] = _LENGTH.pack(len(data)) + data


def attach(descriptor: int) -> None:
    global _slot
    _slot = mmap.mmap(descriptor, NOTE_SIZE)


def wear_out() -> None:
    """Retire this child after the current call, because its memory may have been corrupted."""
    global _worn_out
    _worn_out = True


def is_worn_out() -> bool:
    return _worn_out


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
