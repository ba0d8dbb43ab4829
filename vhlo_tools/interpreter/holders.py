"""What else refers to an array that is to be written over.

A view of an array holds a reference to it, and so does every name and every container it is known by. Names and
containers are the array itself; what is left of its references when these are found is views of it. Whatever is not
found counts as a view: at worst an array is copied that could have been written over.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final, Protocol

import numpy as np

__all__ = ["Holder", "holders_of"]

_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEPT: Final = (dict, tuple)


class Holder(Protocol):
    """An object that refers to an array once."""

    @property
    def memory(self) -> np.ndarray[Any, Any] | None:
        """The array."""


def holders_of(holder: Holder) -> list[str]:
    """Return what refers to the memory of ``holder`` beside itself, and beside names and containers of that array.

    Args:
        holder: What refers to it; nothing else of the toolkit may.
    """
    unexplained = _references(holder) - _BASELINE
    if unexplained <= 0:
        return []
    array = holder.memory
    counted: set[int] = set()
    unexplained -= sum(_in_frames(array, counted))
    found: list[str] = []
    if unexplained > 0:
        for container in gc.get_referrers(array):
            if container is holder or id(container) in counted or isinstance(container, FrameType):
                continue
            number = _occurrences(array, container)
            unexplained -= number
            if isinstance(container, type(holder)):
                found.append("another Buffer")
            elif type(container).__name__ in ("managedbuffer", "memoryview"):
                found.append("a memoryview")
    if unexplained > 0:
        found.append("a live view" if unexplained == 1 else f"{unexplained} live views")
    return found


def _references(holder: Holder) -> int:
    return sys.getrefcount(holder.memory)


def _in_frames(array: np.ndarray[Any, Any] | None, counted: set[int]) -> Iterator[int]:
    """Yield how often functions that are running refer to ``array``: by their names, and in what these name.

    Args:
        array: The array.
        counted: Gets the identities of the containers that were looked into.
    """
    frames = list(sys._current_frames().values())
    while frames:
        frame = frames.pop()
        if frame.f_back is not None:
            frames.append(frame.f_back)
        # The references of this module came after they were counted.
        if frame.f_globals is not globals():
            # What a generator refers to is found by the garbage collector, and the names of others that share a cell.
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED and not frame.f_code.co_flags & _GENERATOR:
                yield _names_of(frame, array, counted)
            yield _within(frame.f_globals, array, counted, 1)
        # A frame that knows itself would live on, with all that it refers to.
        del frame


def _names_of(frame: FrameType, array: np.ndarray[Any, Any] | None, counted: set[int]) -> int:
    shared = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    names = frame.f_locals
    number = 0
    for name, value in names.items():
        if name not in shared:
            number += value is array
            number += _within(value, array, counted, 2)
        del value
    # Until Python 3.12 this is a copy that the frame keeps, and with it all that its names stood for.
    if isinstance(names, dict) and sys.getrefcount(names) <= _UNSHARED:
        names.clear()
    return number


def _within(value: object, array: np.ndarray[Any, Any] | None, counted: set[int], depth: int) -> int:
    """Return how often ``value`` refers to ``array`` if it is a container, and those within it that are not tracked.

    The garbage collector does not track a dictionary or a tuple of nothing but arrays and numbers, and so does not
    find it.
    """
    if type(value) not in _KEPT or id(value) in counted:
        return 0
    counted.add(id(value))
    parts = gc.get_referents(value)
    number = sum(each is array for each in parts)
    if depth:
        number += sum(_within(each, array, counted, depth - 1) for each in parts if not gc.is_tracked(each))
    return number


def _occurrences(array: np.ndarray[Any, Any] | None, container: object) -> int:
    return sum(each is array for each in gc.get_referents(container))


class _Alone:
    """What refers to an array that nothing else does."""

    __slots__ = ("memory",)

    def __init__(self) -> None:
        self.memory: np.ndarray[Any, Any] | None = np.empty(0)


#: How many references are counted where there is one, and where a frame has a dictionary that nobody else has.
_BASELINE: Final = _references(_Alone())


def _unshared() -> int:
    frame = sys._getframe()
    names = frame.f_locals
    return sys.getrefcount(names)


_UNSHARED: Final = _unshared()
