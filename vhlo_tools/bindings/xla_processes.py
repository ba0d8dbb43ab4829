"""XLA in child processes: each has compiled programs and arrays on its device, and the caller has handles of them.

A crash, a hang or memory exhaustion there does not affect the caller. A program is compiled again in another child if
its child has ended; arrays on the device of a child end with it.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import Callback, DeviceArgument, ExecutionResult, XlaArray
from vhlo_tools.bindings.xla_server import Dropped, XlaSource
from vhlo_tools.errors import BufferDeletedError, EngineCrashError, EngineError
from vhlo_tools.system import after_fork

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.bindings.isolation.process import Worker

_SERVER: Final = "vhlo_tools.bindings.xla_server"

# Each child has as many threads as the machine has processors, so a few keep it busy.
_MOST: Final = min(8, max(2, os.cpu_count() or 2))

#: The modules that a child needs, imported once by the process that forks children.
_MODULES: Final = ("numpy", "ml_dtypes", "jaxlib.xla_client", _SERVER)

#: The bytes of shared memory that an idle child keeps.
_SHARED: Final = 512 << 20


class _Process:
    def __init__(self) -> None:
        self.worker: Worker = isolation.start(_MODULES)
        #: The numbers of the programs that it has compiled.
        self.programs: set[int] = set()
        self.arrays: int = 0
        self.thread: int | None = None
        # What is deleted with the next call. Filled by finalizers, which may run in any thread at any time.
        self.dropped_programs: deque[int] = deque()
        self.dropped_arrays: deque[int] = deque()

    @property
    def has_arrays(self) -> bool:
        return self.arrays > len(self.dropped_arrays)

    def call(self, function: str, *arguments: Any, limits: isolation.Limits, functions: Sequence[Callback] = ()) -> Any:
        dropped = Dropped(tuple(_popped(self.dropped_programs)), tuple(_popped(self.dropped_arrays)))
        self.programs.difference_update(dropped.programs)
        self.arrays -= len(dropped.arrays)
        return self.worker.call(f"{_SERVER}:{function}", (dropped, *arguments), limits, functions)


def _popped(numbers: deque[int]) -> Iterator[int]:
    while numbers:
        yield numbers.popleft()


class _Pool:
    """The children, each used by one thread at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()

    @contextmanager
    def taken(self, wanted: _Process | None = None, program: int | None = None) -> Iterator[_Process]:
        """Use the wanted child, one that has compiled a program, or any.

        A wanted child that has ended is a ``BufferDeletedError``, one that waits for the caller an ``EngineError``.
        """
        thread = threading.get_ident()
        with self._changed:
            while (process := self._available(wanted, program, thread)) is None:
                self._changed.wait()
            process.thread = thread
            self._busy.add(process)
        try:
            yield process
        except EngineCrashError:
            # It may be alive, and have sent nonsense.
            process.worker.end()
            raise
        finally:
            with self._changed:
                process.thread = None
                self._busy.discard(process)
                # The others count that are busy too: more than these are left over from nested calls.
                is_worn = not process.worker.reusable or process.worker.shared > _SHARED
                spare = is_worn or len(self._idle) + len(self._busy) >= _MOST
                if process.worker.alive and (process.has_arrays or not spare):
                    self._idle.append(process)
                else:
                    process.worker.end()
                self._changed.notify_all()

    def forget(self) -> None:
        """For the end of this process, or a forked copy of it."""
        for each in (*self._idle, *self._busy):
            each.worker.forget()

    def _available(self, wanted: _Process | None, program: int | None, thread: int) -> _Process | None:
        for each in [each for each in self._idle if not each.worker.alive]:
            self._idle.remove(each)
            each.worker.end()
        if wanted is not None:
            if wanted in self._idle:
                self._idle.remove(wanted)
                return wanted
            if wanted not in self._busy:
                raise BufferDeletedError(
                    "the process of XLA that held this buffer has ended, because a program crashed it, exceeded a "
                    "limit, or this process is a fork: keep values that must survive as arrays"
                )
            if wanted.thread == thread:
                raise EngineError("a handler uses a buffer on the device of the program that is waiting for it")
            return None
        if self._idle:
            process = next((each for each in reversed(self._idle) if program in each.programs), self._idle[-1])
            self._idle.remove(process)
            return process
        # A handler may run another program while its own waits for it.
        if len(self._busy) < _MOST or any(each.thread == thread for each in self._busy):
            return _Process()
        return None


class IsolatedArray:
    __slots__ = ("__weakref__", "_read", "address", "dtype", "is_marked", "number", "process", "shape")

    def __init__(
        self, process: _Process, number: int, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.process: _Process = process
        self.number: int = number
        self.address: int = address  # of its memory in the child process
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype[Any] = dtype
        self.is_marked: bool = False  # as donated to an execution
        self._read: weakref.ref[Any] | None = None
        process.arrays += 1
        weakref.finalize(self, process.dropped_arrays.append, number).atexit = False

    @property
    def is_deleted(self) -> bool:
        """Whether the array was donated to an execution, or its process has ended."""
        return self.is_marked or not self.process.worker.alive

    def view(self) -> np.ndarray[Any, Any]:
        """Return a copy of the values, read-only; the same one while it is in use."""
        known = self._read() if self._read is not None else None
        if known is not None:
            found: np.ndarray[Any, Any] = known.view(self.dtype).reshape(self.shape)
            found.flags.writeable = False
            return found
        with _pool.taken(self.process) as process:
            array: np.ndarray[Any, Any] = process.call("read_here", self.number, limits=_LIMITS)
        _check(array, self.shape, self.dtype)
        array.flags.writeable = False
        # Views of an array refer to the array that owns the memory, here one of bytes.
        self._read = weakref.ref(array.base) if array.base is not None else None
        return array

    def holders(self) -> list[str]:
        """There are none, because values are copied."""
        return []


class IsolatedXlaProgram:
    def __init__(self, source: XlaSource, callbacks: Sequence[Callback] = ()) -> None:
        self._source, self._callbacks = source, callbacks
        self._number = next(_numbers)
        self._processes: weakref.WeakSet[_Process] = weakref.WeakSet()
        weakref.finalize(self, _drop_program, self._number, self._processes).atexit = False

    def prepare(self, limits: isolation.Limits) -> None:
        with self._ready(None, limits):
            pass

    def call(self, inputs: Sequence[Any], limits: isolation.Limits) -> list[Any]:
        with self._ready(None, limits) as process:
            results = process.call("call_here", self._number, list(inputs), limits=limits, functions=self._callbacks)
        if not isinstance(results, list):
            raise _invalid("no list of results")
        of_one = self._source.devices is None
        opened = self._source.opened if of_one else ()
        kinds = self._source.results[: len(opened) or None]
        for each in [results] if of_one else results:
            # A child may send anything.
            if not isinstance(each, list) or len(each) != len(kinds):
                raise _invalid("another number of results")
            for array, (shape, dtype), axes in zip(each, kinds, opened or [()] * len(kinds), strict=True):
                _check(array, shape, dtype, axes)
        return results

    def execute(self, arguments: Sequence[DeviceArgument], limits: isolation.Limits) -> ExecutionResult:
        """An argument on the device of a child that has ended is a ``BufferDeletedError``."""
        wanted = next((each.array.process for each in arguments if isinstance(each.array, IsolatedArray)), None)
        given = [_on_host(each.array, wanted) for each in arguments]
        passed = [
            (each if not isinstance(each, IsolatedArray) else each.number, placed.is_overwritten, placed.is_given)
            for each, placed in zip(given, arguments, strict=True)
        ]
        with self._ready(wanted, limits) as process:
            failure, found, addresses, deleted = _converted(
                process.call("execute_here", self._number, passed, limits=limits, functions=self._callbacks),
                tuple[str | None, list[tuple[int, int, tuple[int, ...]]], list[int], list[int]],
            )
            for each in given:
                if isinstance(each, IsolatedArray) and each.number in deleted:
                    each.is_marked = True
            if failure is not None:
                raise XlaFailure(failure)
            kinds = self._source.results[: len(self._source.opened) or None]
            if len(found) != len(kinds) or len(addresses) != len(arguments):
                raise _invalid(f"{len(found)} results and {len(addresses)} addresses")
            opened = self._source.opened or [()] * len(kinds)
            for (_, _, shape), (expected, _), axes in zip(found, kinds, opened, strict=True):
                _check_shape(shape, expected, axes)
            results = [
                IsolatedArray(process, number, address, tuple(shape), dtype)
                for (number, address, shape), (_, dtype) in zip(found, kinds, strict=True)
            ]
        return ExecutionResult(results, addresses, [not isinstance(each, IsolatedArray) for each in given])

    @contextmanager
    def _ready(self, wanted: _Process | None, limits: isolation.Limits) -> Iterator[_Process]:
        with _pool.taken(wanted, self._number) as process:
            if self._number not in process.programs:
                process.call("compile_here", self._number, self._source, limits=limits)
                process.programs.add(self._number)
                self._processes.add(process)
            yield process


def put_isolated(array: np.ndarray[Any, Any]) -> IsolatedArray:
    """Copy an array to the device of a child process."""
    with _pool.taken() as process:
        returned = process.call("put_here", array, limits=_LIMITS)
        number, address = _converted(returned, tuple[int, int])
        return IsolatedArray(process, number, address, array.shape, array.dtype)


#: The limits of transfers, which need time and memory for the array alone.
_LIMITS: Final = isolation.Limits(seconds=600.0, memory=None, output=None)

_numbers = count()
_pool = _Pool()


def _after_fork() -> None:
    """Start with no children in a fork of this process, because they belong to the original."""
    global _pool
    _pool.forget()
    _pool = _Pool()


# Before the server of child processes ends, which ends them too.
atexit.register(lambda: _pool.forget())
after_fork(_after_fork)


def _drop_program(number: int, processes: weakref.WeakSet[_Process]) -> None:
    for each in processes:
        each.dropped_programs.append(number)


def _on_host(array: XlaArray | np.ndarray[Any, Any], process: _Process | None) -> IsolatedArray | np.ndarray[Any, Any]:
    """Return the values of an array, unless it is on the device of that child."""
    import numpy as np

    if isinstance(array, IsolatedArray) and array.process is process:
        return array
    return array if isinstance(array, np.ndarray) else array.view()


def _converted(value: Any, type_: Any) -> Any:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise _invalid(f"something else: {error}") from error


def _check(array: Any, shape: tuple[int, ...], dtype: Any, open_axes: Sequence[int] = ()) -> None:
    import numpy as np

    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise _invalid(f"{getattr(array, 'dtype', type(array).__name__)} in place of {dtype}")
    _check_shape(array.shape, shape, open_axes)


def _check_shape(found: Sequence[int], expected: tuple[int, ...], open_axes: Sequence[int]) -> None:
    fits = len(found) == len(expected) and all(
        size == most or (axis in open_axes and 0 <= size <= most)
        for axis, (size, most) in enumerate(zip(found, expected, strict=True))
    )
    if not fits:
        raise _invalid(f"the shape {list(found)} in place of {list(expected)}")


def _invalid(what: str) -> EngineCrashError:
    return EngineCrashError(f"the child process of XLA returned {what}")
