"""Artifacts compiled and run by XLA on the CPU, through jaxlib alone, to compare results of frameworks with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np


@cache
def _client() -> Any:
    from jaxlib import xla_client

    return xla_client.make_cpu_client()


def run_on_xla(artifact: bytes, inputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return what ``main`` of a portable artifact of static shapes gives for ``inputs``.

    Args:
        artifact: The bytes, which XLA's own reader of portable artifacts takes as they are.
        inputs: An array for each argument, of its very type.
    """
    from jaxlib import xla_client

    client = _client()
    device = client.local_devices()[0]
    devices = xla_client.DeviceList((device,))
    executable = client.compile_and_load(bytes(artifact), devices, xla_client.CompileOptions())
    sharding = xla_client.GSPMDSharding(devices, xla_client.HloSharding.replicate())
    arguments = []
    for each in inputs:
        array = np.asarray(each)
        # In memory as it comes: XLA misreads other orders of bytes without a word.
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
        described = SimpleNamespace(shape=array.shape, dtype=array.dtype, weak_type=False)
        arguments.append(xla_client.batched_device_put(described, sharding, [array], [device], True, enable_x64=True))
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    # Not np.asarray, which knows no bf16 without jax.
    return [np.array(result[0]._single_device_array_to_np_array_did_copy()[0]) for result in results]
