"""Donation of buffers: inputs that an execution may overwrite."""

from __future__ import annotations

import gc
import inspect
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from vhlo_tools.aliasing import Alias, ShapeIndex, format_index
from vhlo_tools.errors import AliasError, BufferDeletedError, EngineError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from vhlo_tools.bindings import XlaArray

# References to the memory of an array that is to be overwritten
#
# A view of an array holds a reference to the array, and so does every name and every container of it. A name or a
# container refers to the array itself; all references that remain when these are counted are views. A reference that is
# not found counts as a view: at worst an array is copied that could have been overwritten.

_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEPT: Final = (dict, tuple)
_VIEWING: Final = {"managedbuffer": "a memoryview", "memoryview": "a memoryview"}


class BufferReference(Protocol):
    """An object that refers to an array once."""

    @property
    def memory(self) -> np.ndarray[Any, Any] | None: ...


def holders_of(holders: Sequence[BufferReference]) -> list[list[str]]:
    """Other references to the memory of each holder than its own and those of names and containers of the arrays.

    Each holder refers to its memory once; no other object of the toolkit may refer to that memory.
    """
    unexplained = [_references(holder) - _BASELINE for holder in holders]
    found: list[list[str]] = [[] for _ in holders]
    asked = [number for number, count in enumerate(unexplained) if count > 0]
    if not asked:
        return found
    arrays = [holders[number].memory for number in asked]
    explained: Counter[int] = Counter()
    counted = {id(arrays), *(id(holder) for holder in holders)}
    for frame in _running():
        _count_names(frame, {id(each) for each in arrays}, explained, counted)
        del frame
    if any(unexplained[number] > explained[id(array)] for number, array in zip(asked, arrays, strict=True)):
        kinds = _count_containers(arrays, explained, counted, type(holders[0]))
        for number, array in zip(asked, arrays, strict=True):
            found[number] += kinds[id(array)]
    for number, array in zip(asked, arrays, strict=True):
        left = unexplained[number] - explained[id(array)]
        if left > 0:
            found[number].append("a live view" if left == 1 else f"{left} live views")
    return found


def _references(holder: BufferReference) -> int:
    return sys.getrefcount(holder.memory)


def _running() -> Iterator[FrameType]:
    """The references of this module were created after the references were counted, so its frames are left out."""
    frames = list(sys._current_frames().values())
    while frames:
        frame = frames.pop()
        if frame.f_back is not None:
            frames.append(frame.f_back)
        if frame.f_globals is not globals():
            yield frame
        # A frame that refers to itself would stay alive, with everything that it refers to.
        del frame


def _count_names(frame: FrameType, wanted: set[int], explained: Counter[int], counted: set[int]) -> None:
    _count_within(frame.f_globals, wanted, explained, counted, 1)
    # The garbage collector finds the references of a generator, and of names that share a cell.
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED or frame.f_code.co_flags & _GENERATOR:
        return
    shared = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    names = frame.f_locals
    for name, value in names.items():
        if name not in shared:
            if id(value) in wanted:
                explained[id(value)] += 1
            _count_within(value, wanted, explained, counted, 2)
        del value
    # Until Python 3.12 this is a copy that the frame keeps, with references to all values of its names.
    if isinstance(names, dict) and sys.getrefcount(names) <= _UNSHARED:
        names.clear()


def _count_within(value: object, wanted: set[int], explained: Counter[int], counted: set[int], depth: int) -> None:
    """The garbage collector does not track, or find, dictionaries and tuples that contain only arrays and numbers."""
    if type(value) not in _KEPT or id(value) in counted:
        return
    counted.add(id(value))
    for each in gc.get_referents(value):
        if id(each) in wanted:
            explained[id(each)] += 1
        elif depth and not gc.is_tracked(each):
            _count_within(each, wanted, explained, counted, depth - 1)
        del each


def _count_containers(
    arrays: Sequence[object], explained: Counter[int], counted: set[int], buffer: type
) -> defaultdict[int, list[str]]:
    """Fills ``explained``; returns, by identity of the array, references that are not names or plain containers."""
    kinds: defaultdict[int, list[str]] = defaultdict(list)
    wanted = {id(each) for each in arrays}
    copies = _COPIES
    for container in gc.get_referrers(*arrays):
        if id(container) in counted or isinstance(container, FrameType):
            continue
        if copies and type(container) is tuple and list(map(id, container)) == list(map(id, arrays)):
            copies -= 1
            continue
        kind = "another Buffer" if isinstance(container, buffer) else _VIEWING.get(type(container).__name__)
        for each in gc.get_referents(container):
            if id(each) in wanted:
                explained[id(each)] += 1
                if kind is not None:
                    kinds[id(each)].append(kind)
            del each
    return kinds


class _SoleOwner:
    """A holder with the only reference to its array, for the measurement of :data:`_BASELINE`."""

    __slots__ = ("memory",)

    def __init__(self) -> None:
        self.memory: np.ndarray[Any, Any] | None = np.empty(0)


#: The measured count of a single reference.
_BASELINE: Final = _references(_SoleOwner())


def _copies() -> int:
    array = [object()]
    return sum(type(each) is tuple for each in gc.get_referrers(*array))


#: The number of tuples of its own arguments that `gc.get_referrers` finds: one from Python 3.13 on.
_COPIES: Final = _copies()


def _unshared() -> int:
    frame = sys._getframe()
    names = frame.f_locals
    return sys.getrefcount(names)


#: The measured reference count of a frame's dictionary of names that nothing else refers to.
_UNSHARED: Final = _unshared()


# Buffers that may be donated: arrays in host memory, or on a device of XLA


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


# Plan of the donation of inputs: which inputs of an execution are overwritten, copied or refused
#
# The rules are those of XLA's runtimes: an input that has an alias and was donated is overwritten. An input that was
# not donated is protected by a copy, or, if it is a must-alias, is an error. An input with other live references counts
# as not donated. Source: ``xla/pjrt/common_pjrt_client.cc`` and ``xla/service/cpu/cpu_executable.cc`` in openxla/xla.


@dataclass(frozen=True, slots=True)
class Input:
    """A leaf of the inputs."""

    parameter_number: int
    parameter_index: ShapeIndex
    buffer: Buffer | None  # new if the input is an array; None for a token
    donated: bool = False
    unfit: str | None = None  # why its memory cannot be overwritten; None if it can

    @property
    def given(self) -> Buffer:
        assert self.buffer is not None
        return self.buffer


@dataclass(frozen=True, slots=True)
class Aliased:
    input: int  # number among all input leaves
    output: int  # number among all output leaves
    reason: str | None  # why a copy of the input is overwritten; None if the input itself is
    moved: bool = False  # the input was first copied to the memory of the engine, which later runs do not need


def plan_donation(inputs: Sequence[Input], aliases: Sequence[Alias], outputs: Sequence[ShapeIndex]) -> list[Aliased]:
    """Decide for each alias whether the output overwrites its input; :class:`AliasError` if a must-alias cannot."""
    number_of = {(each.parameter_number, each.parameter_index): number for number, each in enumerate(inputs)}
    place_of = {index: number for number, index in enumerate(outputs)}
    aliased = [number_of[each.parameter_number, each.parameter_index] for each in aliases]
    reasons = [_reason(inputs[number], inputs) for number in aliased]
    asked = [place for place, reason in enumerate(reasons) if reason is None]
    # In one call, because each search visits all objects of the process.
    held = Buffer.holders([inputs[aliased[place]].given for place in asked])
    for place, found in zip(asked, held, strict=True):
        if found:
            reasons[place] = f"its memory is held by {' and '.join(found)}"
    for alias, reason in zip(aliases, reasons, strict=True):
        if reason is not None and alias.kind == "must-alias":
            raise AliasError(
                f"output {format_index(alias.output_index)} must overwrite parameter {alias.parameter_number} at "
                f"{format_index(alias.parameter_index)}, but {reason}: donate it (donate=({alias.parameter_number},)) "
                f"and keep no reference to its memory, or make the alias a may-alias"
            )
    return [
        Aliased(number, place_of[alias.output_index], reason)
        for alias, number, reason in zip(aliases, aliased, reasons, strict=True)
    ]


def _reason(each: Input, inputs: Sequence[Input]) -> str | None:
    """The reason as far as the inputs show it; other references are counted separately."""
    if not each.donated:
        return "it was not donated"
    if each.unfit is not None:
        return each.unfit
    for other in inputs:
        if other is not each and other.buffer is not None and _overlap(each.given, other.buffer):
            return f"its memory is also passed for parameter {other.parameter_number}"
    return None


def _overlap(one: Buffer, other: Buffer) -> bool:
    if one is other:
        return True
    return one.memory is not None and other.memory is not None and np.may_share_memory(one.memory, other.memory)


# Report of the use of input memory by an execution

#: ``in-place``: over the input that the output is aliased with. ``copied``: over a copy that
#: protects the input. ``new``: the output has no alias.
Placement = Literal["in-place", "copied", "new"]


class DonationWarning(UserWarning):
    """A warning about a donated buffer that no output reuses."""


@dataclass(frozen=True, slots=True)
class OutputReport:
    """The placement of an output in memory.

    Attributes:
        output_index: The index in the result; ``()`` for a program with one result.
        placement: The memory that the output was written to.
        bytes: The size in bytes.
        parameter_number: The number of the parameter that the output is aliased with.
        parameter_index: The index in that parameter.
        reason: The reason for copying the input, if it was copied.
        moved: Whether an input that was overwritten was copied to the memory of the engine first. Its result is there,
            so that passing it on copies nothing.
    """

    output_index: ShapeIndex
    placement: Placement
    bytes: int
    parameter_number: int | None = None
    parameter_index: ShapeIndex = ()
    reason: str | None = None
    moved: bool = False

    def __str__(self) -> str:
        place = f"output {format_index(self.output_index)}: {self.bytes} bytes"
        if self.parameter_number is None:
            return f"{place}, in memory of its own"
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        if self.placement == "in-place":
            first = ", which was copied to XLA's memory first; from then on it is in place" if self.moved else ""
            return f"{place}, in place of {number}{first}"
        return f"{place}, over a copy of {number}: {self.reason}"


@dataclass(frozen=True, slots=True)
class UnusableDonation:
    """A donated input that no output overwrites.

    Attributes:
        parameter_number: The number of the parameter.
        parameter_index: The index in that parameter.
        bytes: The size in bytes.
    """

    parameter_number: int
    parameter_index: ShapeIndex
    bytes: int

    def __str__(self) -> str:
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        return f"{number} of {self.bytes} bytes was donated, and no output is aliased with it"


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of an execution.

    Attributes:
        engine: The engine that ran the program.
        why: The reason for the choice of that engine.
        outputs: The placement of each output; the elements of tuples are listed separately.
        unusable: The donated inputs that no output overwrites.
        notes: Where the program was not run as StableHLO specifies, but as XLA runs it, and the known faults of the
            engine that it would show if they were not avoided.
    """

    engine: str
    why: str
    outputs: tuple[OutputReport, ...]
    unusable: tuple[UnusableDonation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes_in_place(self) -> int:
        """The number of bytes of outputs that were written over inputs."""
        return sum(each.bytes for each in self.outputs if each.placement == "in-place")

    @property
    def bytes_moved(self) -> int:
        """The number of bytes of overwritten inputs that were copied to the memory of the engine first."""
        return sum(each.bytes for each in self.outputs if each.moved)

    @property
    def bytes_copied(self) -> int:
        """The number of bytes of inputs that were copied to protect them."""
        return sum(each.bytes for each in self.outputs if each.placement == "copied")

    def __str__(self) -> str:
        lines = [f"engine {self.engine}: {self.why}", *map(str, self.outputs), *map(str, self.unusable), *self.notes]
        return "\n".join(lines)
