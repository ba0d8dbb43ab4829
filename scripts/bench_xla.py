"""Runs on the engine `xla` against jaxlib's client alone: what the checks around a run take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import vhlo_tools as vt

#: How often a small program is run in one measurement.
REPEATED = 1000


def cases() -> Iterator[tuple[str, Callable[[Any], object], Callable[[Any], object], Callable[[], Any]]]:
    """Yield for each case its name, what runs it here, what with jaxlib alone, and what gives the input."""
    for name, number, repeated in (("a scalar", None, REPEATED), ("64 MB in and out", 16 << 20, 1)):
        kind = "tensor<f32>" if number is None else f"tensor<{number}xf32>"
        text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.add %a, %a : {kind} return %0 : {kind} }}"
        array = np.ones(() if number is None else number, np.float32)
        title = f"xla, {name}, {repeated} run{'s' if repeated > 1 else ''}"
        yield title, again(ours(text), repeated), again(raw(text), repeated), array.view


def ours(text: str) -> Callable[[Any], object]:
    """Return what runs a program with this package."""
    executable = vt.load_executable(text, engine="xla")
    return lambda given: executable.run([given])


def again(run: Callable[[Any], object], times: int) -> Callable[[Any], object]:
    """Return what does something so often."""

    def repeated(given: Any) -> None:
        for _ in range(times):
            run(given)

    return repeated


def raw(text: str) -> Callable[[Any], object]:
    """Return what runs a program with jaxlib alone, as this package does: from an array to an array."""
    from jaxlib import xla_client  # after our own first run, which has XLA keep quiet

    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    devices = xla_client.DeviceList((device,))
    sharding = xla_client.GSPMDSharding(devices, xla_client.HloSharding.replicate())
    executable = client.compile_and_load(bytes(vt.serialize(text)), devices, xla_client.CompileOptions())

    def run(array: Any) -> object:
        described = SimpleNamespace(shape=array.shape, dtype=array.dtype, weak_type=False)
        placed = xla_client.batched_device_put(described, sharding, [array], [device], True, enable_x64=True)
        ((result,),) = executable.execute_sharded([placed]).disassemble_into_single_device_arrays()
        return result._single_device_array_to_np_array_did_copy()

    return run
