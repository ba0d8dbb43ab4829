"""Buffers that may be donated: arrays in host memory, or on a device of XLA."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhlo_tools.errors import BufferDeletedError, EngineError
from vhlo_tools.execution.donation.references import holders_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from vhlo_tools.bindings import XlaArray


class Buffer:
    """An array that is an input or a result of an execution, and can be donated to an execution.

    Donation, if it takes effect, passes the memory to a result and deletes the buffer. ``numpy.asarray`` returns a
    read-only view without a copy; while such a view exists, the memory is not overwritten. Of a buffer on the device of
    XLA in a child process it returns a copy.

    >>> buffer = Buffer([1.0, 2.0], donate=True)
    >>> buffer.delete()
    >>> buffer
    Buffer(deleted)

    Args:
        array: The array, which is not copied: its memory is what is donated.
        donate: Whether the next execution may reuse the memory; equivalent to the argument ``donate`` of the execution.

    Attributes:
        donate: Whether the next execution may reuse the memory.
    """

    __slots__ = ("__weakref__", "_device", "_dtype", "_shape", "donate", "memory")

    def __init__(self, array: ArrayLike, donate: bool = False) -> None:
        if isinstance(array, Buffer):
            raise TypeError("a Buffer is already an input: set its attribute donate instead of wrapping it")
        self.memory: np.ndarray[Any, Any] | None = np.asarray(array)
        self._device: XlaArray | None = None
        self._shape, self._dtype = self.memory.shape, self.memory.dtype
        self.donate: bool = donate

    @classmethod
    def on_xla(cls, array: ArrayLike, donate: bool = False, *, in_process: bool = False) -> Buffer:
        """Return a buffer with a copy of an array in memory that XLA allocated.

        Args:
            array: The array.
            donate: Whether the next execution may reuse the memory.
            in_process: Whether it is in this process, for executables that are loaded so, and not in a child process.

        Raises:
            EngineError: If XLA does not support the element type.
            ProviderError: If jaxlib is not installed.
        """
        from vhlo_tools.bindings import XlaFailure, put_isolated, put_on_device

        taken = np.asarray(array)
        taken = np.ascontiguousarray(taken, taken.dtype.newbyteorder("=")).reshape(taken.shape)
        try:
            buffer = cls.of_device(put_on_device(taken, own=True) if in_process else put_isolated(taken))
        except XlaFailure as failure:
            raise EngineError(f"XLA does not accept {taken.dtype}{list(taken.shape)}: {failure}") from failure
        buffer.donate = donate
        return buffer

    @classmethod
    def of_device(cls, array: XlaArray) -> Buffer:
        """Return a buffer for an array on XLA's device."""
        buffer = cls.__new__(cls)
        buffer.memory, buffer._device, buffer.donate = None, array, False
        buffer._shape, buffer._dtype = array.shape, array.dtype
        return buffer

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions; also available for a deleted buffer."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements; also available for a deleted buffer."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """The size in bytes of the elements in numpy; also available for a deleted buffer."""
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def is_deleted(self) -> bool:
        """Whether the buffer was donated or deleted."""
        return self.memory is None and self._device is None

    @property
    def device(self) -> XlaArray | None:
        """The array in the memory of XLA's device; ``None`` for an array in host memory."""
        return self._device

    @property
    def address(self) -> int:
        """The address of the first byte of the memory, in the process that has it.

        Raises:
            BufferDeletedError: If the buffer was donated or deleted.
        """
        self._check()
        return self._device.address if self._device is not None else self._host().ctypes.data

    def delete(self) -> None:
        """Release the memory; the buffer cannot be used afterwards."""
        self.memory, self._device = None, None

    def read(self) -> np.ndarray[Any, Any]:
        """Return the values as they are in memory, for reading.

        Raises:
            BufferDeletedError: If the buffer was donated or deleted.
        """
        self._check()
        return self._device.view() if self._device is not None else self._host()

    @staticmethod
    def holders(buffers: Sequence[Buffer]) -> list[list[str]]:
        """Return, for each buffer, other references to its memory, except names of the wrapped array."""
        on_host = [each for each in buffers if each._device is None]
        found = iter(holders_of(on_host))
        return [next(found) if each._device is None else each._device.holders() for each in buffers]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The values are read-only unless they are copied."""
        array = self.read()
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            if copy is False:
                raise ValueError(f"elements of {array.dtype} cannot be viewed as {np.dtype(dtype)} without a copy")
            return array.astype(dtype if dtype is not None else array.dtype)
        view = array.view()
        view.flags.writeable = False
        return view

    def __repr__(self) -> str:
        if self.is_deleted:
            return "Buffer(deleted)"
        place = ", on XLA's device" if self._device is not None else ""
        return f"Buffer({self._dtype}{list(self._shape)}{place}{', donate=True' if self.donate else ''})"

    def _host(self) -> np.ndarray[Any, Any]:
        assert self.memory is not None
        return self.memory

    def _check(self) -> None:
        if self.is_deleted:
            raise BufferDeletedError(
                f"this buffer, {self._dtype}{list(self._shape)}, was donated to an execution or deleted: use the "
                f"result of the execution instead, or do not donate it"
            )
