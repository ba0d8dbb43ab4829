"""Memory shared by the caller and a child process: written by one side, read by the other, kept between calls."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

# Up to this size a copy through the socket costs less than managing shared memory.
_INLINE: Final = 1 << 14

# The alignment that vector instructions require, and engines that use arrays without copying them.
_ALIGNMENT: Final = 64

# Mapping all pages at once takes a third of the time of mapping them on first use.
_FLAGS: Final = getattr(mmap, "MAP_SHARED", 0) | getattr(mmap, "MAP_POPULATE", 0)


def anonymous_file() -> int:
    """Return the descriptor of a new anonymous file in memory, which is deleted with its last descriptor."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    descriptor = os.memfd_create("vhlo_tools", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    import fcntl

    # Without the seal, truncation by the other side would terminate a reader of the mapping with SIGBUS.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return descriptor


class Chunk(NamedTuple):
    offset: int
    size: int  # in bytes
    inline: bool  # in the message, not in shared memory


class SharedMemory:
    """One side's access to a file in memory, whose descriptor it owns; the file grows and never shrinks.

    The first use of a page costs ten times as much as copying into it, so later calls reuse the memory.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self.descriptor = descriptor
        self._protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._mapped: mmap.mmap | None = None
        self._end = 0

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def place(self, buffers: Sequence[memoryview], *, after: bool = False) -> tuple[list[Chunk], bytes]:
        """Copy large buffers to the memory; return the place of each buffer, and the small ones.

        With ``after``, they go behind the buffers of the last call without it.
        """
        chunks, small, inline, end = [], [], 0, self._end if after else 0
        large = []
        for buffer in buffers:
            if buffer.nbytes <= _INLINE:
                chunks.append(Chunk(inline, buffer.nbytes, True))
                small.append(buffer)
                inline += buffer.nbytes
            else:
                chunks.append(Chunk(end, buffer.nbytes, False))
                large.append((end, buffer))
                end += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        if end > self.size:
            _extend(self.descriptor, end)
        if large:
            target = self._map(end)
            for offset, buffer in large:
                target[offset : offset + buffer.nbytes] = buffer
        if not after:
            self._end = end
        return chunks, b"".join(small)

    def find(self, chunk: Chunk, inline: memoryview) -> memoryview:
        """Return the bytes of a chunk; those in the memory are valid until the other side writes there again."""
        offset, size, is_inline = chunk
        available = len(inline) if is_inline else self.size
        if min(offset, size) < 0 or offset + size > available:
            raise ValueError(f"there are no {size} bytes at {offset} of {available}")
        whole = inline if is_inline else memoryview(self._map(offset + size))
        return whole[offset : offset + size]

    def close(self) -> None:
        """Views remain valid."""
        self._mapped = None
        os.close(self.descriptor)

    def _map(self, end: int) -> mmap.mmap:
        if self._mapped is None or len(self._mapped) < end:
            self._mapped = mmap.mmap(self.descriptor, self.size, flags=_FLAGS, prot=self._protection)
        return self._mapped


def copied(data: memoryview) -> Any:
    import numpy as np

    # Numpy allocates large pages, which makes this twice as fast as a copy by Python.
    return np.frombuffer(data, np.uint8).copy()


def _extend(descriptor: int, size: int) -> None:
    """Allocate the memory of the file, so that a lack of memory fails here and not on the first access."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)
