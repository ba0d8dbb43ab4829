"""Messages to isolated processes: frames, and large arrays in shared memory."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vhlo_tools.records import dataclass

# Memory shared by the caller and a child process: written by one side, read by the other, kept between calls

# Up to this size a copy through the socket costs less than managing shared memory.
_INLINE: Final = 1 << 14

# Above this size memory is written and not mapped, whose pages would count as those of this process.
_MAPPED: Final = 1 << 26

# The alignment that vector instructions require, and engines that use arrays without copying them.
_ALIGNMENT: Final = 64

# Mapping all pages at once takes a third of the time of mapping them on first use.
_FLAGS: Final = getattr(mmap, "MAP_SHARED", 0) | getattr(mmap, "MAP_POPULATE", 0)


def anonymous_file(*, shared: bool = True) -> int:
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    descriptor = os.memfd_create("vhlo_tools", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    if shared:
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
        chunks, small, inline, end = list[Chunk](), [], 0, self._end if after else 0
        for buffer in buffers:
            if buffer.nbytes <= _INLINE:
                chunks.append(Chunk(inline, buffer.nbytes, True))
                small.append(buffer)
                inline += buffer.nbytes
            else:
                chunks.append(Chunk(end, buffer.nbytes, False))
                end += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        if end > self.size:
            # Allocated where the system can, so that a lack of memory fails here and not on the first access.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.descriptor, 0, end)
            else:
                os.ftruncate(self.descriptor, end)
        for (offset, size, is_inline), buffer in zip(chunks, buffers, strict=True):
            if is_inline:
                continue
            if end > _MAPPED:
                self._write(buffer, offset)
            else:
                self._map(end)[offset : offset + size] = buffer
        if not after:
            self._end = end
        return chunks, b"".join(small)

    def _write(self, buffer: memoryview, offset: int) -> None:
        data = buffer.cast("B")
        while len(data):
            written = os.pwrite(self.descriptor, data[:_MAPPED], offset)
            data, offset = data[written:], offset + written

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


def flat(view: memoryview) -> memoryview:
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def bytes_of(array: Any) -> memoryview:
    """Arrays of ml_dtypes dtypes do not support the buffer protocol; their bytes do."""
    import numpy as np

    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


# Requests to a child: pickles (PEP 574), which the child trusts, with arrays and large views in shared memory
#
# A value is *packed*: a pickle without its buffers, and the buffers, small ones inline and large ones in shared memory.

#: The length of a message, which precedes it.
LENGTH: Final = struct.Struct("<Q")


#: The places of the pickle and of its buffers, and the small ones of these.
Packed = tuple[list[Chunk], bytes]


@dataclass(frozen=True, slots=True)
class Request:
    function: str  # ``package.module:function``
    arguments: Packed  # a tuple
    output: int | None  # the limit of the size of the result in bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a function of the caller that the child called."""

    value: Packed | None  # None if it raised an exception, which stays with the caller
    said: str = ""  # the message of that exception


def pack(value: object, memory: SharedMemory, *, after: bool = False) -> Packed:
    """Pack a value, which may contain numpy arrays of plain dtypes and views of bytes at any depth.

    ``after`` keeps the present contents of ``memory``.
    """
    file, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(file, 5, buffer_callback=buffers.append).dump(value)
    return memory.place([file.getbuffer(), *(each.raw() for each in buffers)], after=after)


def unpack(packed: Packed, memory: SharedMemory) -> Any:
    """The arrays are read-only views, valid until the caller sends the next message."""
    chunks, inline = packed
    pickled, *buffers = (memory.find(chunk, memoryview(inline)) for chunk in chunks)
    return pickle.loads(pickled, buffers=buffers)


def frame(message: Request | Answer) -> bytes:
    pickled = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(pickled)) + pickled


def receive(connection: socket.socket) -> Any:
    """``None`` if the other side has closed the socket."""
    head = exactly(connection, LENGTH.size)
    body = None if head is None else exactly(connection, LENGTH.unpack(head)[0])
    return None if body is None else pickle.loads(body)


def exactly(connection: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            return None
        done += count
    return data


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is memoryview:
            return memoryview, (pickle.PickleBuffer(flat(value)),)
        numpy = sys.modules.get("numpy")
        if numpy is None or type(value) not in (numpy.ndarray, numpy.memmap):
            return NotImplemented
        if value.dtype.hasobject:
            raise TypeError(
                f"an array of {value.dtype} cannot be passed to another process: expected elements "
                f"without Python objects"
            )
        return _as_array, (value.dtype, value.shape, pickle.PickleBuffer(bytes_of(value)))


def _as_array(dtype: Any, shape: tuple[int, ...], data: Any) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)
