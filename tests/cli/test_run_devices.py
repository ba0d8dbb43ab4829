"""`vhlo run` with handlers, and on several devices."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main

PROGRAM = """func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<2xf32>, tensor<ui32>) {
  %0 = stablehlo.custom_call @scale(%a, %b) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.partition_id : tensor<ui32>
  return %0, %1 : tensor<2xf32>, tensor<ui32>
}"""
KERNELS = """
class Kernels:
    @staticmethod
    def scale(call, array, factor):
        return array * factor

constant = 3
"""
HANDLER = ("--handler", "scale=kernels_of_test:Kernels.scale")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "kernels_of_test.py").write_text(KERNELS)
    (tmp_path / "scale.mlir").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("kernels_of_test", None)


def test_a_handler_computes_a_custom_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "scale.mlir", "-i", "[1, 2]", "-i", "3", *HANDLER, "--details"]) == 0
    said = capsys.readouterr()
    assert said.out == "result 0: float32[2]\n[3. 6.]\nresult 1: uint32[]\n0\n"
    assert "engine reference: " in said.err


def test_an_input_is_for_all_devices_or_for_one(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    np.save(folder / "factor.npy", np.float32(10))
    inputs = ["-i", "[1, 2]", "-i", "0:3", "-i", "1:factor.npy"]
    assert main(["run", "scale.mlir", *inputs, "--partitions", "2", *HANDLER, "--format", "json"]) == 0
    devices = json.loads(capsys.readouterr().out)
    assert [[result["data"] for result in device] for device in devices] == [[[3, 6], [0]], [[10, 20], [1]]]
    assert main(["run", "scale.mlir", *inputs, "--partitions", "2", *HANDLER, "-o", "out.npz"]) == 0
    with np.load(folder / "out.npz") as results:
        assert [results[name].tolist() for name in results.files] == [[3, 6], 0, [10, 20], 1]
    assert main(["run", "scale.mlir", *inputs, "--partitions", "2", *HANDLER]) == 0
    assert "device 1.0: float32[2]\n[10. 20.]\n" in capsys.readouterr().out


def test_a_token_is_printed_as_one(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    token = "!stablehlo.token"
    (folder / "token.mlir").write_text(f"func.func @main(%a: {token}) -> {token} {{ return %a : {token} }}")
    assert main(["run", "token.mlir", "-i", "null"]) == 0
    assert capsys.readouterr().out == "result 0: a token\n"
    assert main(["run", "token.mlir", "-i", "null", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [None]


def test_values_of_several_devices_are_probed(folder: Path) -> None:
    (folder / "id.mlir").write_text(
        "func.func @main() -> tensor<ui32> { %0 = stablehlo.replica_id : tensor<ui32> return %0 : tensor<ui32> }"
    )
    assert main(["run", "id.mlir", "--replicas", "2", "--probe", "probes", "--timeout", "100"]) == 0
    found = [(each.site.op, each.device, int(each.read())) for each in vt.read_probes(folder / "probes")]
    assert found == [("stablehlo.replica_id", 0, 0), ("stablehlo.replica_id", 1, 1)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--handler", "scale"), "'scale' is not a handler: expected TARGET=MODULE:FUNCTION"),
        (("--handler", "scale=nowhere:scale"), "cannot be loaded: No module named 'nowhere'"),
        (("--handler", "scale=kernels_of_test:other"), "cannot be loaded: module 'kernels_of_test' has no attribute"),
        (("--handler", "scale=kernels_of_test:constant"), "is a int, not a function"),
        (("--partitions", "2", "-i", "2:1"), "'2:1' is for device 2, but there are 2 devices, numbered from 0"),
        (("--replicas", "2", "--details"), "support one device only: omit --replicas and --partitions"),
        (("--replicas", "0"), "0 is not in the range"),
    ],
)
def test_usage(options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "scale.mlir", *options]) == 2
    # Long lines are wrapped.
    assert said in " ".join(capsys.readouterr().err.split())
