"""XLA in a child process, the server of :mod:`vhlo_tools.bindings.xla_processes`.

The child keeps compiled programs and arrays on its device, by numbers that the caller assigns or gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from vhlo_tools.bindings.isolation.status import note
from vhlo_tools.bindings.isolation.worker import CallerFailed, ask
from vhlo_tools.bindings.lapack_targets import register_lapack
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import (
    ArrayType,
    Placed,
    XlaArray,
    XlaProgram,
    compile_for_cpu,
    put_on_device,
)
from vhlo_tools.bindings.xla_parallel import Devices, ParallelProgram, compile_parallel
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class XlaSource:
    name: str  # for messages
    bytecode: bytes  # ``main`` has arguments and results of static shapes
    results: tuple[ArrayType, ...]
    #: Bounded dimensions of each of the first results, whose sizes follow as results of their own.
    opened: tuple[tuple[int, ...], ...] = ()
    devices: Devices | None = None  # None for one
    callbacks: int = 0  # the number of the caller's functions that compute custom calls
    lapack: bool = False  # it contains custom calls of LAPACK


@dataclass(frozen=True, slots=True)
class Dropped:
    """Programs and arrays that the caller no longer needs, by number."""

    programs: tuple[int, ...] = ()
    arrays: tuple[int, ...] = ()


_programs: Final[dict[int, tuple[str, XlaProgram | ParallelProgram]]] = {}
_arrays: Final[dict[int, XlaArray]] = {}
_numbers: Final = count()


def compile_here(dropped: Dropped, number: int, source: XlaSource) -> None:
    """``dropped`` is deleted first."""
    _drop(dropped)
    note(f"compilation of {source.name}")
    _programs[number] = source.name, compiled(source, [partial(_ask, each) for each in range(source.callbacks)])


def compiled(source: XlaSource, callbacks: Sequence[Any]) -> XlaProgram | ParallelProgram:
    if source.lapack:
        register_lapack()
    if source.devices is not None:
        return compile_parallel(source.bytecode, source.results, source.devices, callbacks)
    return compile_for_cpu(source.bytecode, source.results, callbacks, source.opened)


def call_here(dropped: Dropped, number: int, inputs: list[Any]) -> list[Any]:
    _drop(dropped)
    name, program = _programs[number]
    note(f"execution of {name}")
    return program.call(inputs)


def execute_here(
    dropped: Dropped, number: int, arguments: list[tuple[Any, bool, bool]]
) -> tuple[str | None, list[tuple[int, int, tuple[int, ...]]], list[int], list[int]]:
    """Run a program, and keep its results; an argument is an array, or the number of one, with its flags.

    Returns the failure of XLA, if any; number, address and shape of each result; the address of each argument before
    the run; and the numbers of the deleted arguments.
    """
    _drop(dropped)
    name, program = _programs[number]
    note(f"execution of {name}")
    assert isinstance(program, XlaProgram)
    taken = {each: _arrays[each] for each, _, _ in arguments if isinstance(each, int)}
    placed = [Placed(taken[each] if isinstance(each, int) else each, *flags) for each, *flags in arguments]
    failure, results, addresses = None, [], []
    try:
        executed = program.execute(placed)
        addresses = executed.addresses
        results = [(_keep(each), each.address, each.shape) for each in executed.results]
    except XlaFailure as error:
        failure = str(error)
    deleted = [each for each, array in taken.items() if array.is_deleted]
    for each in deleted:
        del _arrays[each]
    return failure, results, addresses, deleted


def put_here(dropped: Dropped, array: Any) -> tuple[int, int]:
    """Return the number and the address of the copy."""
    _drop(dropped)
    placed = put_on_device(array, own=True)
    return _keep(placed), placed.address


def read_here(dropped: Dropped, number: int) -> Any:
    _drop(dropped)
    return _arrays[number].view()


def _keep(array: XlaArray) -> int:
    number = next(_numbers)
    _arrays[number] = array
    return number


def _drop(dropped: Dropped) -> None:
    for each in dropped.programs:
        _programs.pop(each, None)
    for each in dropped.arrays:
        _arrays.pop(each, None)


def _ask(number: int, *operands: Any) -> tuple[Any, ...]:
    try:
        return tuple(ask(number, *operands))
    except CallerFailed as error:
        raise RuntimeError(str(error)) from None
