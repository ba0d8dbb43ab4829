"""What crosses between the caller and a child process: values as pickles, with arrays and large views beside them.

A message on the socket is its length, eight bytes, and a pickle. Within it, what a call takes or returns is *packed*: a
pickle without its buffers, and the buffers, small ones inline and large ones in shared memory. PEP 574 does so too, but
there what cannot be written at the one end cannot be written at the other either.
"""

from __future__ import annotations

import io
import pickle
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Any, Final, Literal

from vhlo_tools.bindings.isolation.shared import SharedMemory

__all__ = [
    "Answer",
    "OutputTooLarge",
    "Packed",
    "Request",
    "frame",
    "is_whole",
    "pack",
    "parse_frame",
    "receive",
    "unpack",
]

_LENGTH: Final = struct.Struct("<Q")

# Up to here a copy through the socket costs less than looking after shared memory.
_INLINE: Final = 1 << 14


class OutputTooLarge(Exception):  # noqa: N818 - it never leaves this package
    """A value takes more bytes than it may.

    Attributes:
        size: How many it takes.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


@dataclass(frozen=True, slots=True)
class Packed:
    """A value on its way.

    Attributes:
        chunks: Its pickle, then the buffers that belong to it: each as bytes, or as offset and size in shared memory.
    """

    chunks: tuple[bytes | tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks for.

    Attributes:
        function: ``package.module:function``.
        arguments: A packed tuple.
        memory: How many bytes of memory it may take.
        output: How many bytes it may return.
    """

    function: str
    arguments: Packed
    memory: int | None
    output: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it.

    Attributes:
        kind: ``returned`` with a packed value, ``raised`` with an exception of the toolkit's own, ``failed`` with the
            name, the message and the traceback of another, ``out of memory``, or ``too large`` with the size.
        value: As the kind says.
        retire: Whether the child should make room for a new one.
    """

    kind: Literal["returned", "raised", "failed", "out of memory", "too large"]
    value: Any = None
    retire: bool = False


def pack(value: object, memory: SharedMemory, largest: int | None = None) -> Packed:
    """Pack ``value``, its large buffers into ``memory``.

    Arrays of numpy (of plain dtypes, in any order of bytes and axes) and views of bytes may stand anywhere in it.

    Raises:
        OutputTooLarge: If it takes more than ``largest`` bytes.
        TypeError: If it holds arrays of Python objects.
        pickle.PicklingError: If it holds what has no pickle, as does whatever else its own pickling raises.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5)
    pickler.dump(value)
    chunks = [file.getbuffer(), *pickler.buffers]
    size = sum(chunk.nbytes for chunk in chunks)
    if largest is not None and size > largest:
        raise OutputTooLarge(size)
    large = [chunk for chunk in chunks if chunk.nbytes > _INLINE]
    offsets = iter(memory.fill(large))
    return Packed(tuple((next(offsets), chunk.nbytes) if chunk.nbytes > _INLINE else bytes(chunk) for chunk in chunks))


def unpack(packed: Packed, memory: SharedMemory, *, own: bool) -> Any:
    """Return a packed value.

    Args:
        packed: The value.
        memory: Where its large buffers are.
        own: Whether arrays are copied out of ``memory`` and can be written; otherwise they are views of it that cannot.

    Raises:
        ValueError: If it is not where it should be, as does whatever else unpickling raises.
    """
    pickled, *buffers = (chunk if isinstance(chunk, bytes) else memory.view(*chunk) for chunk in packed.chunks)
    return _Unpickler(io.BytesIO(pickled), list(map(_copy, buffers)) if own else buffers).load()


def frame(message: Request | Answer | str) -> bytes:
    """Return a message as it is sent."""
    pickled = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(pickled)) + pickled


def is_whole(data: bytes | bytearray) -> bool:
    """Tell whether ``data``, the start of a message as it is sent, is all of it."""
    return len(data) >= _LENGTH.size and len(data) >= _LENGTH.size + _LENGTH.unpack_from(data)[0]


def parse_frame(data: bytes | bytearray) -> Any:
    """Return the message in ``data``, all of it."""
    return pickle.loads(memoryview(data)[_LENGTH.size :])


def receive(connection: socket.socket) -> Any:
    """Return the next message on a socket that blocks, or ``None`` if the other side is gone."""
    head = _exactly(connection, _LENGTH.size)
    body = None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])
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
            raise TypeError(f"an array of {value.dtype} cannot cross into another process: expected plain elements")
        # Arrays of ml_dtypes have no buffers: their bytes have.
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


def _copy(data: bytes | memoryview) -> Any:
    if "numpy" in sys.modules and len(data) > _INLINE:
        import numpy as np

        # Numpy takes its memory in large pages, which makes this twice as fast.
        return np.frombuffer(data, np.uint8).copy()
    return bytearray(data)
