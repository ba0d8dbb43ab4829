"""What a child process says of itself: what it is doing, in memory that outlives it, and that it is worn out."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Final

__all__ = ["NOTE_SIZE", "attach", "is_worn_out", "note", "read_note", "wear_out"]

#: The bytes of a note, its length included.
NOTE_SIZE: Final = 1024

_LENGTH: Final = struct.Struct("<H")

_slot: mmap.mmap | None = None
_worn_out = False


def note(text: str) -> None:
    """Say what is being done, such as ``stablehlo.divide at model.py:3:4``; what was said before is forgotten.

    It becomes ``op`` of the error if the child dies or is ended meanwhile, cut off where it is long. Outside of a child
    process it does nothing. It costs less than a microsecond.
    """
    if _slot is not None:
        data = text.encode(errors="replace")[: NOTE_SIZE - _LENGTH.size]
        _slot[: _LENGTH.size + len(data)] = _LENGTH.pack(len(data)) + data


def attach(descriptor: int) -> None:
    """Make this process one whose notes stand in a file."""
    global _slot
    _slot = mmap.mmap(descriptor, NOTE_SIZE)


def wear_out() -> None:
    """Let this child answer no other call: what it did may have damaged its memory."""
    global _worn_out
    _worn_out = True


def is_worn_out() -> bool:
    """Tell whether :func:`wear_out` was called."""
    return _worn_out


def read_note(descriptor: int) -> str | None:
    """Return the note in a file, or ``None`` if it is empty."""
    data = os.pread(descriptor, NOTE_SIZE, 0)
    length = _LENGTH.unpack_from(data)[0] if len(data) == NOTE_SIZE else 0
    return data[_LENGTH.size :][:length].decode(errors="replace") or None
