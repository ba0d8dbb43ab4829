"""Run programs with shardings, of Shardy or of GSPMD, on the CPU devices of an old jaxlib.

Standard input is an ``.npz`` with the number of devices, whether Shardy is to partition programs, and for each program
the artifact, and its inputs as whole values; standard output one with the results as whole values and the shardings of
inputs and results, or the message of the exception.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

with np.load(io.BytesIO(sys.stdin.buffer.read())) as archive:
    given = {name: archive[name] for name in archive.files}
count = int(given.pop("devices"))
shardy = bool(given.pop("shardy"))
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"

from jaxlib import xla_client  # noqa: E402 - XLA reads the number of devices when it is imported

try:
    from jaxlib import xla_extension
except ImportError:
    from jaxlib import _jax as xla_extension
xla = xla_client._xla
jit = xla_extension.jax_jit
# jax does this when it is imported.
if hasattr(jit, "set_thread_local_state_initialization_callback"):
    jit.set_thread_local_state_initialization_callback(lambda: None)
if hasattr(jit.global_state(), "enable_memories"):
    jit.global_state().enable_memories = False
client = xla_client.make_cpu_client()
devices = client.local_devices()[:count]


def tiles(sharding: Any, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    sharding = xla.HloSharding.from_proto(sharding)
    if sharding.is_replicated() or count == 1:
        return [tuple(slice(None) for _ in shape)] * count
    dimensions = sharding.tile_assignment_dimensions()
    ids = np.array(sharding.tile_assignment_devices()).reshape(dimensions)
    parts = []
    for device in range(count):
        place = np.argwhere(ids == device)[0][: len(shape)]
        sizes = [size // number for size, number in zip(shape, dimensions, strict=False)]
        parts.append(tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, sizes, strict=True)))
    return parts


def run(artifact: bytes, inputs: Sequence[np.ndarray[Any, Any]]) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """Return the results of a program, and the shardings of its inputs and results."""
    options = xla.CompileOptions()
    build = options.executable_build_options
    for each in (options, build):
        each.num_replicas, each.num_partitions = 1, count
    build.use_spmd_partitioning = True
    if hasattr(build, "use_shardy_partitioner"):
        build.use_shardy_partitioner = shardy
    if hasattr(build, "allow_spmd_sharding_propagation_to_parameters"):
        build.allow_spmd_sharding_propagation_to_parameters = [False]
    build.allow_spmd_sharding_propagation_to_output = [False]
    build.device_assignment = xla.DeviceAssignment.create(np.arange(count, dtype=np.int32).reshape(1, count))
    program = xla_extension.mlir.deserialize_portable_artifact(artifact)
    if hasattr(client, "compile_and_load"):
        executable = client.compile_and_load(program, xla.DeviceList(tuple(devices)), options)
    else:
        executable = client.compile(program, options)
    arguments = []
    for value, sharding in zip(inputs, executable.get_parameter_shardings() or [], strict=True):
        parts = [np.ascontiguousarray(value[tile]) for tile in tiles(sharding, value.shape)]
        arguments.append([client.buffer_from_pyval(part, device) for part, device in zip(parts, devices, strict=True)])
    found = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    results = []
    for parts, sharding in zip(found, executable.get_output_shardings(), strict=True):
        parts = [np.asarray(each) for each in parts]
        read = xla.HloSharding.from_proto(sharding)
        if read.is_replicated() or count == 1:
            results.append(parts[0])
            continue
        numbers = read.tile_assignment_dimensions()[: parts[0].ndim]
        whole = np.empty([size * number for size, number in zip(parts[0].shape, numbers, strict=True)], parts[0].dtype)
        for part, tile in zip(parts, tiles(sharding, whole.shape), strict=True):
            whole[tile] = part
        results.append(whole)
    told = [*(executable.get_parameter_shardings() or []), *executable.get_output_shardings()]
    return results, [str(xla.HloSharding.from_proto(each)) for each in told]


outputs: dict[str, Any] = {}
for name in [name for name in given if "/" not in name]:
    inputs = [given[each] for each in sorted(given) if each.startswith(f"{name}/")]
    try:
        results, shardings = run(given[name].tobytes(), inputs)
        outputs |= {f"{name}/{number}": result for number, result in enumerate(results)}
        outputs[f"{name}/shardings"] = np.array(shardings)
    except Exception as error:
        outputs[f"{name}/error"] = np.array(f"{type(error).__name__}: {error}")
written = io.BytesIO()
np.savez(written, **outputs)
sys.stdout.buffer.write(written.getvalue())
