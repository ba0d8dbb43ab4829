"""Runs on the engine `xla`, in a child process and in this process, against jaxlib's client alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from jaxlib import xla_client

import vhlo_tools as vt

#: How often a small program is run in one measurement.
REPEATED = 1000


def cases() -> Iterator[tuple[str, Callable[[Any], object], Callable[[Any], object], Callable[[], Any]]]:
    """Yield for each case its name, what runs it with this package and with jaxlib alone, and what gives the input."""
    for name, number, repeated in (("a scalar", None, REPEATED), ("64 MB in and out", 16 << 20, 1)):
        kind = "tensor<f32>" if number is None else f"tensor<{number}xf32>"
        text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.add %a, %a : {kind} return %0 : {kind} }}"
        array = np.ones(() if number is None else number, np.float32)
        for place, in_process in (("in a child", False), ("in this process", True)):
            title = f"xla {place}, {name}, {repeated} run{'s' if repeated > 1 else ''}"
            yield title, again(ours(text, in_process), repeated), again(raw(text), repeated), array.view
    state = np.zeros(16 << 20, np.float32)
    for place, in_process in (("in a child", False), ("in this process", True)):
        title = f"xla {place}, {STEPS} steps with 64 MB of donated state"
        yield title, training(in_process), training_raw(), state.copy


def ours(text: str, in_process: bool) -> Callable[[Any], object]:
    """Return what runs a program with this package."""
    executable = vt.load_executable(text, engine="xla", in_process=in_process)
    return lambda given: executable.run([given])


#: A step of training: state that is overwritten, a small input, and a small output.
STEP = """func.func @main(%state: tensor<16777216xf32> {tf.aliasing_output = 0 : i32}, %a: tensor<f32>)
    -> (tensor<16777216xf32>, tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<16777216xf32>
  %1 = stablehlo.add %state, %0 : tensor<16777216xf32>
  return %1, %a : tensor<16777216xf32>, tensor<f32>
}"""
#: The number of steps in one measurement.
STEPS = 20


def training(in_process: bool) -> Callable[[Any], object]:
    """Return what runs steps with this package, whose state stays on the device."""
    executable = vt.load_executable(STEP, engine="xla", in_process=in_process)
    rate = np.ones((), np.float32)

    def run(initial: Any) -> None:
        state = vt.Buffer.on_xla(initial, in_process=in_process)
        for _ in range(STEPS):
            execution = executable.execute([state, rate], donate=(0,))
            state = execution.buffers[0]
            assert execution.report.bytes_copied == 0
            assert execution.report.outputs[0].placement == "in-place"

    return run


def training_raw() -> Callable[[Any], object]:
    """Return what runs steps with jaxlib alone."""
    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    devices = xla_client.DeviceList((device,))
    sharding = xla_client.GSPMDSharding(devices, xla_client.HloSharding.replicate())
    executable = client.compile_and_load(bytes(vt.serialize(STEP)), devices, xla_client.CompileOptions())
    kept = xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

    def put(array: Any) -> Any:
        described = SimpleNamespace(shape=array.shape, dtype=array.dtype, weak_type=False)
        return xla_client.batched_device_put(
            described, sharding, [array], [device], True, host_buffer_semantics=kept, enable_x64=True
        )

    def run(initial: Any) -> None:
        state, rate = put(initial), np.ones((), np.float32)
        for _ in range(STEPS):
            (state,), (loss,) = executable.execute_sharded([state, put(rate)]).disassemble_into_single_device_arrays()
            loss._single_device_array_to_np_array_did_copy()
        state.block_until_ready()

    return run


def again(run: Callable[[Any], object], times: int) -> Callable[[Any], object]:
    """Return what does something so often."""

    def repeated(given: Any) -> None:
        for _ in range(times):
            run(given)

    return repeated


def raw(text: str) -> Callable[[Any], object]:
    """Return what runs a program with jaxlib alone, as this package does: from an array to an array."""
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
