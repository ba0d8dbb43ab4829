"""XLA's CPU client with several devices, which run a program in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import (
    ArrayType,
    Callback,
    XlaCall,
    client_of,
    compile_with,
    described,
    xla_client,
)
from vhlo_tools.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Devices:
    replicas: int
    partitions: int = 1  # per replica; XLA splits the values of the program over them
    use_shardy: bool = False  # annotations of Shardy, not of GSPMD, say how


class ParallelProgram:
    """A program compiled for several devices; ``results`` are unsplit."""

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
            given = [[_read(each) for each in result] for result in results]
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
        return [
            [
                _joined([each[number] for each in given], tiles[number], type_)
                for number, type_ in enumerate(self._results)
            ]
        ]

    def _placed(self, arrays: Sequence[Array]) -> Any:
        """Return one array sharded over all devices, from one array per device."""
        return xla_client().batched_device_put(
            described(arrays[0].shape, arrays[0].dtype),
            self._sharding,
            list(arrays),
            list(self._devices),
            True,
            enable_x64=True,
        )


def _read(array: Any) -> Array:
    viewed, _ = array._single_device_array_to_np_array_did_copy()
    viewed.flags.writeable = False
    read: Array = viewed
    return read


def compile_parallel(
    program: bytes | str, results: Sequence[ArrayType], devices: Devices, callbacks: Sequence[Callback] = ()
) -> ParallelProgram:
    """Compile for several devices: several replicas or several partitions, not both; ``results`` are unsplit."""
    replicas, partitions = devices.replicas, devices.partitions
    xla, (client, places) = xla_client(), client_of(replicas * partitions)
    options = xla.CompileOptions()
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
        executable = compile_with(client, program, places, options, callbacks)
    return ParallelProgram(executable, places, results, is_split=partitions > 1)


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
