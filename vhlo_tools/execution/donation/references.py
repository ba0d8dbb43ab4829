"""References to the memory of an array that is to be overwritten.

A view of an array holds a reference to the array, and so does every name and every container of it. A name or a
container refers to the array itself; all references that remain when these are counted are views. A reference that is
not found counts as a view: at worst an array is copied that could have been overwritten.
"""

from __future__ import annotations

import gc
import inspect
import operator
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Final, Protocol

import numpy as np

_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEPT: Final = (dict, tuple)
_VIEWING: Final = {"managedbuffer": "a memoryview", "memoryview": "a memoryview"}


class Holder(Protocol):
    """An object that refers to an array once."""

    @property
    def memory(self) -> np.ndarray[Any, Any] | None: ...


def holders_of(holders: Sequence[Holder]) -> list[list[str]]:
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


def _references(holder: Holder) -> int:
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
        if copies and type(container) is tuple and _same_objects(container, arrays):
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


def _same_objects(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


class _Alone:
    """A holder with the only reference to its array, for the measurement of :data:`_BASELINE`."""

    __slots__ = ("memory",)

    def __init__(self) -> None:
        self.memory: np.ndarray[Any, Any] | None = np.empty(0)


#: The measured count of a single reference.
_BASELINE: Final = _references(_Alone())


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
