"""Files mapped into memory: read where they are looked at, and copied without being looked at.

Constants of gigabytes are handled as views into a mapping. To go through one, :func:`slices` lets go of the pages
behind it; to copy one into a file, :func:`copy` leaves the bytes to the kernel.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["copy", "map_file", "slices"]

_SLICE = 1 << 24
# Below this a call into the kernel costs more than the copy.
_COPIED_FROM = 1 << 16


class _MappedFile(mmap.mmap):
    """A file mapped for reading, which can tell where a view into it stands in the file."""

    _file: int = -1
    _seen = 0

    def hold(self, file: int) -> None:
        """Keep a descriptor of the file, for copies."""
        self._file = os.dup(file)
        self._start = _address_of(memoryview(self))

    def copy_range(self, view: memoryview, out: int) -> int:
        """Copy as much of ``view`` as the kernel will take into the file ``out``, and return how much it was."""
        done, start = 0, _address_of(view) - self._start
        with suppress(OSError):
            while done < len(view):
                copied = os.copy_file_range(self._file, out, len(view) - done, start + done)
                if not copied:
                    break
                done += copied
        return done

    def let_go(self, seen: int) -> None:
        """Take note that ``seen`` bytes were looked at, and let go of all pages once that is much."""
        self._seen += seen
        if self._seen >= _SLICE:
            self.madvise(mmap.MADV_DONTNEED)
            self._seen = 0

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def map_file(path: Path) -> memoryview:
    """Return the contents of a file that is not empty, mapped for reading.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        mapped = _MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.hold(file.fileno())
        return memoryview(mapped)


def slices(data: bytes | memoryview) -> Iterator[memoryview]:
    """Yield ``data`` in slices; those of a mapping are let go of as soon as they were looked at."""
    view = memoryview(data)
    for at in range(0, len(view), _SLICE):
        piece = view[at : at + _SLICE]
        try:
            yield piece
        finally:
            # Also where nobody asks for the next one.
            if isinstance(view.obj, _MappedFile):
                view.obj.let_go(len(piece))


def copy(data: bytes | memoryview, out: int) -> None:
    """Write ``data`` to the end of the open file ``out``; in the kernel, where ``data`` stands in a mapped file.

    Raises:
        OSError: If it cannot be written.
    """
    view, done = memoryview(data), 0
    if len(view) >= _COPIED_FROM and isinstance(view.obj, _MappedFile):
        done = view.obj.copy_range(view, out)
    # What the kernel did not take: another file system, or a full disk, which says so here.
    for piece in slices(view[done:]):
        rest = piece
        while rest:
            rest = rest[os.write(out, rest) :]


def _address_of(view: memoryview) -> int:
    # Only for large files, which most runs have none of.
    import ctypes

    class Buffer(ctypes.Structure):
        """What CPython's buffer protocol fills in; only the first field is used."""

        _fields_ = (("address", ctypes.c_void_p), ("rest", ctypes.c_char * 128))

    buffer = Buffer()
    flags = 0
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), flags)
    try:
        return buffer.address or 0
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
