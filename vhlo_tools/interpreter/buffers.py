"""Execution inputs and results that may be given away: arrays in the memory of the host, or of a device of XLA."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhlo_tools.errors import BufferDeletedError, EngineError
from vhlo_tools.interpreter.holders import holders_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from vhlo_tools.bindings.xla_client import DeviceArray

__all__ = ["Buffer"]


class Buffer:
    """An array that an execution takes or gives, and that can be given away to one.

    An array that is given away for good leaves its memory to a result, and is deleted. ``numpy.asarray`` shows the
    values, read-only and without a copy; while such a view lives, the memory is not written over.

    >>> buffer = Buffer([1.0, 2.0], donate=True)
    >>> buffer.delete()
    >>> buffer
    Buffer(deleted)

    Args:
        array: The array, which is not copied: its memory is what is given away.
        donate: Whether the next execution may take the memory; its ``donate=`` says the same.

    Attributes:
        donate: That.
    """

    __slots__ = ("__weakref__", "_device", "_dtype", "_shape", "donate", "memory")

    def __init__(self, array: ArrayLike, donate: bool = False) -> None:
        if isinstance(array, Buffer):
            raise TypeError("a Buffer is an input as it is: set its attribute donate, and do not wrap it")
        self.memory: np.ndarray[Any, Any] | None = np.asarray(array)
        self._device: DeviceArray | None = None
        self._shape, self._dtype = self.memory.shape, self.memory.dtype
        self.donate = donate

    @classmethod
    def on_xla(cls, array: ArrayLike, donate: bool = False) -> Buffer:
        """Return a buffer with a copy of an array in memory of XLA's own.

        Args:
            array: The array.
            donate: Whether the next execution may take the memory.

        Raises:
            EngineError: If XLA has no elements of its type.
            ProviderError: If jaxlib is not installed.
        """
        from vhlo_tools.bindings.xla import XlaFailure
        from vhlo_tools.bindings.xla_client import put_on_device

        taken = np.asarray(array)
        taken = np.ascontiguousarray(taken, taken.dtype.newbyteorder("=")).reshape(taken.shape)
        try:
            buffer = cls.of_device(put_on_device(taken, own=True))
        except XlaFailure as failure:
            raise EngineError(f"XLA does not take {taken.dtype}{list(taken.shape)}: {failure}") from failure
        buffer.donate = donate
        return buffer

    @classmethod
    def of_device(cls, array: DeviceArray) -> Buffer:
        """Return a buffer for an array on XLA's device."""
        buffer = cls.__new__(cls)
        buffer.memory, buffer._device, buffer.donate = None, array, False
        buffer._shape, buffer._dtype = array.shape, array.dtype
        return buffer

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; known of a deleted buffer too."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements; known of a deleted buffer too."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take in numpy; known of a deleted buffer too."""
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def is_deleted(self) -> bool:
        """Whether it was given away or deleted."""
        return self.memory is None and self._device is None

    @property
    def device(self) -> DeviceArray | None:
        """The array in the memory of XLA's device, if that is where it is."""
        return self._device

    @property
    def address(self) -> int:
        """Where its memory begins.

        Raises:
            BufferDeletedError: If it was given away.
        """
        self._check()
        return self._device.address if self._device is not None else self._host().ctypes.data

    def delete(self) -> None:
        """Let go of the memory; the buffer cannot be used again."""
        self.memory, self._device = None, None

    def read(self) -> np.ndarray[Any, Any]:
        """Return the values as they stand in memory, to read.

        Raises:
            BufferDeletedError: If it was given away.
        """
        self._check()
        return self._device.view() if self._device is not None else self._host()

    @staticmethod
    def holders(buffers: Sequence[Buffer]) -> list[list[str]]:
        """Return, for each buffer, what else refers to its memory, beside names of the array that it was made of."""
        on_host = [each for each in buffers if each._device is None]
        found = iter(holders_of(on_host))
        return [next(found) if each._device is None else each._device.holders() for each in buffers]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the values, read-only unless they are copied.

        Raises:
            BufferDeletedError: If it was given away.
        """
        array = self.read()
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            if copy is False:
                raise ValueError(f"elements of {array.dtype} are no {np.dtype(dtype)} without a copy")
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
                f"this buffer, {self._dtype}{list(self._shape)}, was given away to an execution or deleted: use "
                "what the execution gave instead, or do not donate it"
            )
