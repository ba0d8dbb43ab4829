"""What the caller sends to a child process: pickles, which the child trusts, with arrays and large views apart.

A value is *packed*: a pickle without its buffers, and the buffers, small ones inline and large ones in shared memory.
PEP 574 works the same way, but there a buffer that is read-only at the sender is read-only at the receiver too.
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
    """A value, packed for transfer.

    Attributes:
        chunks: The places of the pickle and of its buffers.
        inline: The small chunks.
    """

    chunks: tuple[Chunk, ...]
    inline: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the caller.

    Attributes:
        function: ``package.module:function``.
        arguments: A packed tuple.
        output: The limit of the size of the result in bytes.
    """

    function: str
    arguments: Packed
    output: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a function of the caller that the child called.

    Attributes:
        value: The packed value that it returned; ``None`` if it raised an exception, which stays with the caller.
        said: The message of that exception.
    """

    value: Packed | None
    said: str = ""


def pack(value: object, memory: SharedMemory, *, after: bool = False) -> Packed:
    """Pack ``value``, with its large buffers in ``memory``.

    It may contain numpy arrays (of plain dtypes, in any order of bytes and axes) and views of bytes at any depth.

    Args:
        value: The value.
        memory: The memory.
        after: Whether to keep what the memory contains.

    Raises:
        TypeError: If it contains arrays of Python objects.
        pickle.PicklingError: If it contains a value that cannot be pickled; pickling may raise other errors too.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5)
    pickler.dump(value)
    chunks, inline = memory.place([file.getbuffer(), *pickler.buffers], after=after)
    return Packed(tuple(chunks), inline)


def unpack(packed: Packed, memory: SharedMemory) -> Any:
    """Return a packed value; its arrays are read-only views, valid until the caller sends the next message.

    Args:
        packed: The value.
        memory: The shared memory with its large buffers.
    """
    inline = memoryview(packed.inline)
    pickled, *buffers = (memory.find(chunk, inline) for chunk in packed.chunks)
    return _Unpickler(io.BytesIO(pickled), buffers).load()


def frame(message: Request | Answer) -> bytes:
    """Return the encoding of a message on the socket."""
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
