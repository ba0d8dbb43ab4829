"""XLA's client for the CPU with several devices: programs run by all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import XlaCall, client_of, described, host_callbacks, xla_client

if TYPE_CHECKING:
    from vhlo_tools.bindings.ir import Module

__all__ = ["ParallelProgram", "compile_cut", "compile_replicated"]

Array = np.ndarray[Any, Any]


class ParallelProgram:
    """A program that was compiled for several devices.

    Args:
        executable: As jaxlib has it.
        devices: The list of the devices.
    """

    def __init__(self, executable: Any, devices: Any) -> None:
        self._executable = executable
        self._devices = devices
        xla = xla_client()
        # Each device has what it is given, and jaxlib does not look for more in it.
        self._sharding = xla.GSPMDSharding(devices, xla.HloSharding.manual())

    def parameter_tiles(self, shapes: Sequence[tuple[int, ...]]) -> list[list[tuple[slice, ...]]]:
        """Return for each parameter, of which these are the whole shapes, the part of it that each partition takes."""
        return _tiles(self._executable.get_parameter_shardings(), shapes)

    def result_tiles(self, shapes: Sequence[tuple[int, ...]]) -> list[list[tuple[slice, ...]]]:
        """Return for each result, of which these are the whole shapes, the part of it that each partition gives."""
        return _tiles(self._executable.get_output_shardings(), shapes)

    def execute(self, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Run it.

        Args:
            inputs: For each device an array for each parameter, contiguous and in the machine's byte order.

        Returns:
            For each device an array for each result, read-only.

        Raises:
            XlaFailure: If XLA refuses or fails.
        """
        with XlaCall():
            arguments = [self._placed(each) for each in zip(*inputs, strict=True)]
            results = self._executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
            given = [[_read(each) for each in result] for result in results]
        return [[result[device] for result in given] for device in range(len(inputs))]

    def _placed(self, arrays: Sequence[Array]) -> Any:
        """Return an array for each device as one of all devices."""
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


def compile_replicated(
    module: Module, devices: int, callbacks: Sequence[Callable[..., tuple[Any, ...]]] = ()
) -> ParallelProgram:
    """Compile a module of StableHLO for so many replicas.

    Args:
        module: The module, whose ``main`` takes and gives arrays of static shapes.
        devices: How many.
        callbacks: As for :func:`compile_for_cpu`.

    Raises:
        XlaFailure: If XLA refuses it.
        ProviderError: If jaxlib is not installed.
    """
    return _compile(module, devices, 1, callbacks, use_shardy=False)


def compile_cut(
    module: Module,
    partitions: int,
    callbacks: Sequence[Callable[..., tuple[Any, ...]]] = (),
    *,
    use_shardy: bool,
) -> ParallelProgram:
    """Compile a module of StableHLO that XLA cuts into partitions, as its annotations say.

    Args:
        module: The module, whose ``main`` takes and gives arrays of static shapes.
        partitions: Into how many.
        callbacks: As for :func:`compile_for_cpu`.
        use_shardy: Whether the annotations are those of Shardy.

    Raises:
        XlaFailure: If XLA refuses it.
        ProviderError: If jaxlib is not installed.
    """
    return _compile(module, 1, partitions, callbacks, use_shardy=use_shardy)


def _compile(module: Module, replicas: int, partitions: int, callbacks: Any, *, use_shardy: bool) -> ParallelProgram:
    xla, (client, devices) = xla_client(), client_of(replicas * partitions)
    options = xla.CompileOptions()
    build = options.executable_build_options
    for each in (options, build):
        each.num_replicas, each.num_partitions = replicas, partitions
    build.use_spmd_partitioning = partitions > 1
    build.use_shardy_partitioner = use_shardy
    build.allow_spmd_sharding_propagation_to_parameters = [False]
    build.allow_spmd_sharding_propagation_to_output = [False]
    grid = np.arange(replicas * partitions, dtype=np.int32).reshape(replicas, partitions)
    build.device_assignment = xla.DeviceAssignment.create(grid)
    with XlaCall():
        executable = client.compile_and_load(module, devices, options, **host_callbacks(callbacks))
    return ParallelProgram(executable, devices)


def _tiles(shardings: Any, shapes: Sequence[tuple[int, ...]]) -> list[list[tuple[slice, ...]]]:
    if shardings is None:
        return [[] for _ in shapes]
    read = xla_client().HloSharding.from_proto
    return [_tiles_of(read(each), shape) for each, shape in zip(shardings, shapes, strict=True)]


def _tiles_of(sharding: Any, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Return the part of an array that each partition has; nothing if each has all of it.

    Of a dimension that is not cut evenly, the last part is as large as the others, and what is in it beyond the array
    means nothing.
    """
    if sharding.is_replicated():
        return []
    if not sharding.is_tiled():
        raise XlaFailure(f"the sharding {sharding} of a value of main cuts nothing into parts")
    dimensions = sharding.tile_assignment_dimensions()
    assigned = np.array(sharding.tile_assignment_devices()).reshape(dimensions)
    sizes = [-(-size // parts) for size, parts in zip(shape, dimensions, strict=False)]
    tiles = []
    for partition in range(assigned.size):
        place = np.argwhere(assigned == partition)[0][: len(shape)]
        tiles.append(tuple(slice(int(at) * size, int(at + 1) * size) for at, size in zip(place, sizes, strict=True)))
    return tiles
