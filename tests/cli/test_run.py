"""``vhlo run``: inputs and outputs in files and as literals, donation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES

from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, both = str(tmp_path / "x.npy"), str(tmp_path / "both.npz")
    np.save(x, np.array([1, 2, 3, 4], np.float32))
    np.savez(both, b2=np.ones(4, np.float32), a1=np.array([1, 2, 3, 4], np.float32))
    assert main(["run", SAXPY, "-i", "2", "-i", x, "-i", "[1, 1, 1, 1]", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"dtype": "float32", "shape": [4], "data": [3.0, 5.0, 7.0, 9.0]}]
    assert main(["run", SAXPY, "-i", "2", "-i", both]) == 0
    assert capsys.readouterr().out == "result 0: float32[4]\n[3. 5. 7. 9.]\n"
    for output in ("out.npy", "out.npz"):
        path = str(tmp_path / output)
        assert main(["run", SAXPY, "-i", "2", "-i", both, "-o", path]) == 0
        loaded = np.load(path)
        assert np.array_equal(loaded if output == "out.npy" else loaded["arr_0"], [3, 5, 7, 9])


def test_results_of_ml_dtypes_are_written_as_their_bytes(tmp_path: Path) -> None:
    program, output = tmp_path / "identity.mlir", str(tmp_path / "out.npy")
    program.write_text("func.func @main(%a: tensor<2xf8E5M2>) -> tensor<2xf8E5M2> { return %a : tensor<2xf8E5M2> }")
    assert main(["run", str(program), "-i", "[1, 2]", "-o", output]) == 0
    assert np.load(output).tobytes() == bytes([0x3C, 0x40])
    assert main(["run", str(program), "-i", output]) == 0


def test_run_with_inputs_given_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "increment.mlir"
    program.write_text(
        "func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tuple<tensor<2xf32>>) -> tensor<2xf32> {"
        " %0 = stablehlo.get_tuple_element %b[0] : (tuple<tensor<2xf32>>) -> tensor<2xf32>"
        " %1 = stablehlo.add %a, %0 : tensor<2xf32> return %1 : tensor<2xf32> }"
    )
    inputs = [str(program), "-i", "[1, 2]", "-i", "[[1, 1]]"]
    array = str(tmp_path / "a.npy")
    np.save(array, np.array([1, 2], np.float32))
    for engine in ("reference", "xla"):
        assert main(["run", *inputs, "--engine", engine]) == 0
        assert capsys.readouterr() == ("result 0: float32[2]\n[2. 3.]\n", "")
        given = [str(program), "-i", array, "-i", "[[1, 1]]", "--engine", engine]
        assert main(["run", *given, "--donate", "0", "--donate", "(1,{0})"]) == 0
        first = ", which was copied to XLA's memory first; from then on it is in place" if engine == "xla" else ""
        assert capsys.readouterr().err.splitlines() == [
            f"engine {engine}: as requested",
            f"output {{}}: 8 bytes, in place of parameter 0 {{}}{first}",
            "parameter 1 {0} of 8 bytes was donated, and no output is aliased with it",
        ]
        assert main(["run", *inputs, "--engine", engine, "--details"]) == 0
        assert "over a copy of parameter 0 {}: it was not donated" in capsys.readouterr().err
    assert main(["run", *inputs, "--donate", "7"]) == 2
    assert "there is no parameter 7 to donate" in capsys.readouterr().err
    assert main(["run", *inputs, "--donate", "x"]) == 2
    assert "'x' is not an input: expected its number" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["cut", "flip", "huge"])
def test_damaged_arrays(damage: str, tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / ("x.npy" if damage == "huge" else "x.npz")
    np.savez(tmp_path / "x.npz", np.ones(4))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    if damage == "huge":
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999,), }"
        data = bytearray(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    elif damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[60] ^= 0xFF
    path.write_bytes(data)
    assert main(["run", SAXPY, "-i", str(path)]) == 2
    out, err = capfd.readouterr()
    assert (out, "Traceback" in err) == ("", False)


@pytest.mark.parametrize("literal", ["[" * 100_000, "1" * 5001, "null", "[[1], [2, 3]]", '"a"'])
def test_literals_that_are_no_inputs(literal: str, capfd: Any) -> None:
    assert main(["run", SAXPY, "-i", literal, "-i", "1", "-i", "1"]) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_types_that_numpy_does_not_know_survive_its_files(tmp_path: Path, capfd: Any) -> None:
    program = tmp_path / "bf16.mlir"
    program.write_text("func.func @main(%a: tensor<2xbf16>) -> tensor<2xbf16> { return %a : tensor<2xbf16> }")
    for name in ("a.npy", "b.npz"):
        out = str(tmp_path / name)
        assert main(["run", str(program), "-i", "[1.5, 2]", "-o", out]) == 0
        assert main(["run", str(program), "-i", out, "--format", "json"]) == 0
        assert json.loads(capfd.readouterr().out)[0]["data"] == [1.5, 2.0]


def test_numbers_that_json_does_not_have(tmp_path: Path, capfd: Any) -> None:
    program = tmp_path / "f32.mlir"
    program.write_text("func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> { return %a : tensor<3xf32> }")
    assert main(["run", str(program), "-i", "[NaN, Infinity, 1]", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["data"] == ["nan", "inf", 1.0]
