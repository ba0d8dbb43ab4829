"""Memory that the caller and a child process share: written by one side, read by the other, kept between calls."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Final

__all__ = ["SharedMemory", "anonymous_file"]

# So that arrays stand where vector instructions, and engines that take arrays without a copy, want them.
_ALIGNMENT: Final = 64

# Mapped at once and not page by page: that takes a third of the time.
_FLAGS: Final = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)


def anonymous_file() -> int:
    """Return the descriptor of a new file in memory that has no name, and is gone with its last descriptor."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    descriptor = os.memfd_create("vhlo_tools", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    import fcntl

    # Reading a mapped file that the other side cut off would end the reader with SIGBUS.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return descriptor


class SharedMemory:
    """One side of a file in memory, which grows and never shrinks.

    First use of a page costs ten times what copying into it costs, so the memory is used again by the next call.

    Args:
        descriptor: The file, which belongs to this object from now on.
        writable: Whether this side writes.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self.descriptor = descriptor
        self._protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._mapped: mmap.mmap | None = None

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return os.fstat(self.descriptor).st_size

    def fill(self, buffers: Sequence[memoryview]) -> list[int]:
        """Copy ``buffers``, of bytes, to its start, and return where each stands.

        Raises:
            OSError: If there is not so much memory.
        """
        offsets, end = [], 0
        for buffer in buffers:
            offsets.append(end)
            end += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        if end > self.size:
            _extend(self.descriptor, end)
        if end:
            target = self._map(end)
            for offset, buffer in zip(offsets, buffers, strict=True):
                target[offset : offset + buffer.nbytes] = buffer
        return offsets

    def view(self, offset: int, size: int) -> memoryview:
        """Return ``size`` bytes at ``offset``, which stay what they are until the other side fills it again.

        Raises:
            ValueError: If it is not so large.
        """
        if min(offset, size) < 0 or offset + size > self.size:
            raise ValueError(f"there are no {size} bytes at {offset} of {self.size}")
        return memoryview(self._map(offset + size))[offset : offset + size]

    def close(self) -> None:
        """Give it up; views stay valid."""
        self._mapped = None
        os.close(self.descriptor)

    def _map(self, end: int) -> mmap.mmap:
        if self._mapped is None or len(self._mapped) < end:
            self._mapped = mmap.mmap(self.descriptor, self.size, flags=_FLAGS, prot=self._protection)
        return self._mapped


def _extend(descriptor: int, size: int) -> None:
    """Make a file larger; where there is not so much memory this fails, and not the first use of what is missing."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)
