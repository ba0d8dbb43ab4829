"""Requests to a child: pickles (PEP 574), which the child trusts, with arrays and large views in shared memory.

A value is *packed*: a pickle without its buffers, and the buffers, small ones inline and large ones in shared memory.
Plain PEP 574 would make a buffer that is read-only at the sender read-only at the receiver too.
"""

from __future__ import annotations

import io
import pickle
import socket
import struct
import sys
from typing import Any, Final

from vhlo_tools.bindings.isolation.shared import Chunk, SharedMemory
from vhlo_tools.records import dataclass

#: The length of a message, which precedes it.
LENGTH: Final = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Packed:
    chunks: tuple[Chunk, ...]  # the places of the pickle and of its buffers
    inline: bytes  # the small chunks


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
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5)
    pickler.dump(value)
    chunks, inline = memory.place([file.getbuffer(), *pickler.buffers], after=after)
    return Packed(tuple(chunks), inline)


def unpack(packed: Packed, memory: SharedMemory) -> Any:
    """The arrays are read-only views, valid until the caller sends the next message."""
    inline = memoryview(packed.inline)
    pickled, *buffers = (memory.find(chunk, inline) for chunk in packed.chunks)
    return _Unpickler(io.BytesIO(pickled), buffers).load()


def frame(message: Request | Answer) -> bytes:
    pickled = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(pickled)) + pickled


def receive(connection: socket.socket) -> Any:
    """Return the next message on a blocking socket, or ``None`` if the other side has closed it."""
    head = _exactly(connection, LENGTH.size)
    body = None if head is None else _exactly(connection, LENGTH.unpack(head)[0])
    return None if body is None else pickle.loads(body)


def _exactly(connection: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            return None
        done += count
    return data


@dataclass(frozen=True, slots=True)
class _Buffer:
    data: memoryview


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.buffers: list[memoryview] = []

    def persistent_id(self, value: Any) -> int | None:
        if type(value) is not _Buffer:
            return None
        self.buffers.append(value.data)
        return len(self.buffers) - 1

    def reducer_override(self, value: Any) -> Any:
        if type(value) is memoryview:
            return _same, (_Buffer(value.cast("B") if value.c_contiguous else memoryview(value.tobytes())),)
        numpy = sys.modules.get("numpy")
        if numpy is None or type(value) not in (numpy.ndarray, numpy.memmap):
            return NotImplemented
        if value.dtype.hasobject:
            raise TypeError(
                f"an array of {value.dtype} cannot be passed to another process: expected elements "
                f"without Python objects"
            )
        # Arrays of ml_dtypes dtypes do not support the buffer protocol; their bytes do.
        data = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
        return _as_array, (value.dtype, value.shape, _Buffer(memoryview(data)))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, buffers: list[Any]) -> None:
        super().__init__(file)
        self._buffers = buffers

    def persistent_load(self, index: int) -> Any:
        return self._buffers[index]


def _as_array(dtype: Any, shape: tuple[int, ...], data: Any) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)


def _same(data: Any) -> Any:
    return data
