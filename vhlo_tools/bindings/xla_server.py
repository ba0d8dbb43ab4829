"""The process of XLA: what it answers, for one device and for several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings.isolation.limits import note
from vhlo_tools.bindings.isolation.worker import CallerFailed, ask
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import (
    ArrayType,
    Callback,
    DeviceArgument,
    XlaArray,
    XlaCall,
    XlaProgram,
    client_of,
    compile_with,
    described,
    put_on_device,
    register_lapack,
    xla_client,
)
from vhlo_tools.records import dataclass

# XLA's CPU client with several devices, which run a program in parallel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Devices:
    #: Several replicas or several partitions, not both.
    replicas: int
    partitions: int = 1  # per replica; XLA splits the values of the program over them
    use_shardy: bool = False  # annotations of Shardy, not of GSPMD, say how


class ParallelProgram:
    def __init__(self, executable: Any, devices: Any, results: Sequence[ArrayType], *, is_split: bool) -> None:
        self._executable, self._devices = executable, devices
        self._results, self._is_split = results, is_split
        xla = xla_client()
        # Each device gets its own array; with a manual sharding jaxlib does not interpret the arrays any further.
        self._sharding = xla.GSPMDSharding(devices, xla.HloSharding.manual())

    def call(self, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Run on contiguous arrays of native byte order: one sequence per device, or one of whole values if split.

        Returns as many sequences of read-only results.
        """
        parts = self._parts(inputs) if self._is_split else inputs
        with XlaCall():
            arguments = [self._placed(each) for each in zip(*parts, strict=True)]
            results = self._executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
            given = [[each._single_device_array_to_np_array_did_copy()[0] for each in result] for result in results]
        for array in (array for result in given for array in result):
            array.flags.writeable = False
        by_device = [[result[device] for result in given] for device in range(len(parts))]
        return self._whole(by_device) if self._is_split else by_device

    def _parts(self, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        (given,) = inputs
        tiles = _tiles(self._executable.get_parameter_shardings(), [each.shape for each in given])
        return [
            [_part(array, tile[device]) if tile else array for array, tile in zip(given, tiles, strict=True)]
            for device in range(len(self._devices))
        ]

    def _whole(self, given: Sequence[Sequence[Array]]) -> list[list[Array]]:
        tiles = _tiles(self._executable.get_output_shardings(), [shape for shape, _ in self._results])
        results = zip(zip(*given, strict=True), tiles, self._results, strict=True)
        return [[_joined(parts, tile, type_) for parts, tile, type_ in results]]

    def _placed(self, arrays: Sequence[Array]) -> Any:
        """Return one array sharded over all devices, from one array per device."""
        kind = described(arrays[0].shape, arrays[0].dtype)
        put = xla_client().batched_device_put
        return put(kind, self._sharding, list(arrays), list(self._devices), True, enable_x64=True)


def _tiles(shardings: Any, shapes: Sequence[tuple[int, ...]]) -> list[list[tuple[slice, ...]]]:
    if shardings is None:
        return [[] for _ in shapes]
    read = xla_client().HloSharding.from_proto
    return [_tiles_of(read(each), shape) for each, shape in zip(shardings, shapes, strict=True)]


def _tiles_of(sharding: Any, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Return the slices of an array for each partition; an empty list if each has the whole array.

    If a dimension is not divided evenly, the last part has the size of the others, and its elements beyond the array
    are undefined.
    """
    if sharding.is_replicated():
        return []
    if not sharding.is_tiled():
        raise XlaFailure(f"the sharding {sharding} of a value of main does not divide it into tiles")
    dimensions = sharding.tile_assignment_dimensions()
    assigned = np.array(sharding.tile_assignment_devices()).reshape(dimensions)
    sizes = [-(-size // parts) for size, parts in zip(shape, dimensions, strict=False)]
    tiles = []
    for partition in range(assigned.size):
        place = np.argwhere(assigned == partition)[0][: len(shape)]
        tiles.append(tuple(slice(int(at) * size, int(at + 1) * size) for at, size in zip(place, sizes, strict=True)))
    return tiles


def _part(array: Array, tile: tuple[slice, ...]) -> Array:
    """The part is padded with zeros where it extends beyond the array."""
    part = array[tile]
    missing = [(0, wanted.stop - wanted.start - size) for wanted, size in zip(tile, part.shape, strict=True)]
    return np.ascontiguousarray(np.pad(part, missing) if any(after for _, after in missing) else part)


def _joined(parts: Sequence[Array], tiles: Sequence[tuple[slice, ...]], type_: ArrayType) -> Array:
    if not tiles:
        return parts[0]
    whole = np.empty(*type_)
    for part, tile in zip(parts, tiles, strict=True):
        place = whole[tile]
        place[...] = part[tuple(slice(size) for size in place.shape)]
    whole.flags.writeable = False
    return whole


# XLA in a child process, the server of :mod:`vhlo_tools.bindings.xla_processes`
#
# The child keeps compiled programs and arrays on its device, by numbers that the caller assigns or gets.


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


def compiled(source: XlaSource, callbacks: Sequence[Callback]) -> XlaProgram | ParallelProgram:
    if source.lapack:
        register_lapack()
    devices = source.devices or Devices(1)
    replicas, partitions = devices.replicas, devices.partitions
    xla, (client, places) = xla_client(), client_of(replicas * partitions)
    options = xla.CompileOptions()
    if source.devices is not None:
        build = options.executable_build_options
        for each in (options, build):
            each.num_replicas, each.num_partitions = replicas, partitions
        build.use_spmd_partitioning = partitions > 1
        build.use_shardy_partitioner = devices.use_shardy
        build.allow_spmd_sharding_propagation_to_parameters = [False]
        build.allow_spmd_sharding_propagation_to_output = [False]
        grid = np.arange(replicas * partitions, dtype=np.int32).reshape(replicas, partitions)
        build.device_assignment = xla.DeviceAssignment.create(grid)
    with XlaCall():
        executable = compile_with(client, source.bytecode, places, options, callbacks)
    if source.devices is None:
        return XlaProgram(executable, source.results, source.opened)
    return ParallelProgram(executable, places, source.results, is_split=partitions > 1)


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
    placed = [DeviceArgument(taken[each] if isinstance(each, int) else each, *flags) for each, *flags in arguments]
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
