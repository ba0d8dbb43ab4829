"""Compile and run an artifact on XLA of the jaxlib of this environment, on one CPU device or on several.

Runs inside a released jaxlib, old ones included, and so imports nothing of this project. Standard input is an ``.npz``
of the artifact (``artifact``, bytes) and the inputs, as unsigned integers: ``0 1 float32`` is the input 1 of device 0,
with the name of its element type, as ``.npy`` does not know those of ``ml_dtypes``. Each device is a replica. Standard
output is an ``.npz`` of the results, named in the same way; or of ``failed``, the step that failed (``read``,
``compile`` or ``run``), and ``error``, what the release said.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import io
import os
import sys
from types import SimpleNamespace

import ml_dtypes  # noqa: F401  # names its element types to numpy
import numpy as np

given = np.load(io.BytesIO(sys.stdin.buffer.read()))
ARTIFACT = given["artifact"].tobytes()
INPUTS = {}
for name in given.files:
    if name != "artifact":
        device, number, dtype = name.split()
        INPUTS[int(device), int(number)] = given[name].view(np.dtype(dtype))
DEVICES = 1 + max((device for device, _ in INPUTS), default=0)
COUNT = 1 + max((number for _, number in INPUTS), default=-1)

# Before the client is made.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from jaxlib import xla_client  # noqa: E402

try:
    from jaxlib import _jax as extension  # since 0.6.1
except ImportError:
    from jaxlib import xla_extension as extension


def prepare():
    """Set what jax sets when it is imported."""
    settings = getattr(extension, "jax_jit", None) or extension.config
    if hasattr(settings, "set_thread_local_state_initialization_callback"):
        settings.set_thread_local_state_initialization_callback(lambda: None)
    if hasattr(settings, "global_state") and hasattr(state := settings.global_state(), "enable_memories"):
        state.enable_memories = False


def read():
    """Return the program as MLIR bytecode, by the function that this release has for it."""
    try:
        from jaxlib.mlir.dialects.stablehlo import deserialize_portable_artifact_str
    except ImportError:
        # Up to jaxlib 0.4.31.
        return extension.mlir.deserialize_portable_artifact(ARTIFACT)
    return deserialize_portable_artifact_str(ARTIFACT)


def compiled(client, program):
    """Return the executable of a program, in the form of calls that this release has."""
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = DEVICES
    options.num_partitions = build.num_partitions = 1
    grid = np.arange(DEVICES, dtype=np.int32).reshape(DEVICES, 1)
    build.device_assignment = xla_client.DeviceAssignment.create(grid)
    if not hasattr(client, "compile_and_load"):
        return client.compile(program, options)
    devices = xla_client.DeviceList(tuple(client.local_devices()[:DEVICES]))
    return client.compile_and_load(program, devices, options)


def placed(client, number):
    """Return an input as one array over all devices, or as a list of an array for each."""
    devices = client.local_devices()[:DEVICES]
    arrays = [INPUTS[device, number] for device in range(DEVICES)]
    put = xla_client.batched_device_put
    if "enable_x64" not in (put.__doc__ or ""):
        # Up to some release before 0.9.1 it needs settings that jax makes, and executables take lists.
        return [client.buffer_from_pyval(array, device) for array, device in zip(arrays, devices, strict=True)]
    described = SimpleNamespace(shape=arrays[0].shape, dtype=arrays[0].dtype, weak_type=False)
    sharding = xla_client.GSPMDSharding(xla_client.DeviceList(tuple(devices)), xla_client.HloSharding.manual())
    return put(described, sharding, arrays, devices, True, enable_x64=True)


def host(array):
    if hasattr(array, "_single_device_array_to_np_array_did_copy"):
        return array._single_device_array_to_np_array_did_copy()[0]
    return np.asarray(array)


def outcome():
    """Return what is written: the results, or what failed."""
    step = "read"
    try:
        prepare()
        program = read()
        step = "compile"
        client = xla_client.make_cpu_client()
        executable = compiled(client, program)
        step = "run"
        results = executable.execute_sharded([placed(client, number) for number in range(COUNT)])
        by_result = results.disassemble_into_single_device_arrays()
        found = [[host(array) for array in arrays] for arrays in by_result]
    except Exception as error:  # what a release raises differs
        return {"failed": np.array(step), "error": np.array(str(error))}
    return {
        f"{device} {number} {array.dtype}": np.array(array, order="C").view(f"u{array.itemsize}")
        for number, arrays in enumerate(found)
        for device, array in enumerate(arrays)
    }


archive = io.BytesIO()
np.savez(archive, **outcome())
sys.stdout.buffer.write(archive.getvalue())
