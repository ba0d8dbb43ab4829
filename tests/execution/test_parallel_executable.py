"""Programs loaded once and run often by several devices: with time limits, probes, and the engine that can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.execution.xla import engine as parallel_engine

V, GROUP = "tensor<2xf32>", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def reduced(op: str, element: str = "f32") -> str:
    kind = f"tensor<2x{element}>"
    return f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = stablehlo.add %a, %a : {kind}
      %1 = "stablehlo.all_reduce"(%0) ({{ ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
        %2 = stablehlo.{op} %x, %y : tensor<{element}>
        stablehlo.return %2 : tensor<{element}> }}) {{{GROUP}}} : ({kind}) -> {kind}
      return %1 : {kind}
    }}"""


def inputs(dtype: Any = np.float32) -> list[list[Any]]:
    return [[np.array([1, 2], dtype)], [np.array([10, 20], dtype)]]


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = vt.load_parallel_executable(reduced("add"), replicas=2)
    assert (executable.engine, executable.inputs) == ("xla", 2)
    monkeypatch.setattr(parallel_engine, "prepared", None)
    for _ in range(3):
        assert [each.tolist() for (each,) in executable.run(inputs())] == [[22, 44]] * 2


def test_what_xla_cannot_run_is_run_by_the_interpreter() -> None:
    executable = vt.load_parallel_executable(reduced("xor", "i32"), replicas=2)
    assert executable.engine == "reference"
    assert executable.why.startswith("XLA cannot run it: ")
    assert [each.tolist() for (each,) in executable.run(inputs(np.int32))] == [[2 ^ 20, 4 ^ 40]] * 2


@pytest.mark.long
def test_a_run_of_several_devices_is_ended_in_time() -> None:
    endless = f"""func.func @main(%a: {V}) -> {V} {{
      %id = stablehlo.replica_id : tensor<ui32>
      %t = stablehlo.constant dense<true> : tensor<i1>
      %r = stablehlo.while(%v = %a) : {V} cond {{ stablehlo.return %t : tensor<i1> }} do {{
        stablehlo.return %v : {V} }}
      return %r : {V}
    }}"""
    with pytest.raises(vt.EngineTimeoutError, match=r"stablehlo.while exceeds the time limit"):
        vt.run_parallel(endless, inputs(), replicas=2, engine="reference", timeout=2.0)


def test_values_are_probed_with_the_device_that_they_are_of(tmp_path: Path) -> None:
    probe = vt.Probe(folder=tmp_path)
    vt.run_parallel(reduced("add"), inputs(), replicas=2, probe=probe)
    found = [(each.site.op, each.device, each.read().tolist()) for each in vt.read_probes(tmp_path)]
    assert sorted(found) == [
        ("stablehlo.add", 0, [2, 4]),
        ("stablehlo.add", 1, [20, 40]),
        ("stablehlo.all_reduce", 0, [22, 44]),
        ("stablehlo.all_reduce", 1, [22, 44]),
    ]
    with pytest.raises(vt.EngineError, match="XLA does not expose intermediate values"):
        vt.run_parallel(reduced("add"), inputs(), replicas=2, engine="xla", probe=vt.Probe())
