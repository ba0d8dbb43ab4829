"""The command line as a process: outputs, exit codes, messages, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


def vhlo(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "vhlo_tools.cli.main", *arguments], capture_output=True, **options)


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.mlirbc"
    vt.serialize(SAXPY, "1.4.2").save(path)
    return path


def test_serialize_retarget_deserialize(tmp_path: Path) -> None:
    first, second, text = (str(tmp_path / name) for name in ("a.mlirbc", "b.mlirbc", "c.mlir"))
    assert main(["serialize", SAXPY, "--target", "jaxlib==0.4.31", "-o", first]) == 0
    assert main(["retarget", first, "--target", "0.9.0", "-o", second]) == 0
    assert main(["deserialize", second, "-o", text]) == 0
    assert vt.open_artifact(first).version == vt.Version("1.4.2")
    assert vt.open_artifact(second).bytecode_version == 0
    assert Path(text).read_text() == str(vt.deserialize(first))


def test_pipes(artifact: Path) -> None:
    serialized = vhlo("serialize", "-", "-o", "-", "--target", "1.4.2", input=Path(SAXPY).read_bytes(), check=True)
    assert serialized.stdout == artifact.read_bytes()
    text = vhlo("deserialize", "-", input=serialized.stdout, check=True)
    assert text.stdout.decode() == str(vt.deserialize(artifact))
    assert text.stderr == b""


def test_forms_of_output(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deserialize", str(artifact), "--emit", "vhlo"]) == 0
    assert '"vhlo.func_v1"()' in capsys.readouterr().out
    assert main(["deserialize", str(EXAMPLES / "symbolic_export.jax_export"), "--debug-info"]) == 0
    assert "make_symbolic_export.py" in capsys.readouterr().out
    bytecode = vhlo("deserialize", str(artifact), "--emit", "bytecode", check=True).stdout
    assert vt.serialize(bytecode, "1.4.2") == vt.open_artifact(artifact)


def test_inspect(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(artifact), "--output-format", "json"]) == 0
    described = json.loads(capsys.readouterr().out)
    required = described["requirements"]
    assert (required["readable_since"], required["downgradable_to"]) == ("0.15.0", "0.9.0")
    assert (described["kind"], described["version"]) == ("portable-artifact", "1.4.2")
    assert described["path"] == str(artifact)
    for path in EXAMPLES.iterdir():
        if path.suffix in (".mlir", ".bc", ".jax_export"):
            assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "kind:                jax-export" in out
    assert "  gather_scatter_batching_dims, since 1.1.0: " in out
    assert "StableHLO_v" in out


def test_inspect_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, path = tmp_path / "in.mlir", str(tmp_path / "out.mlirbc")
    program.write_text(
        "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<f32> {jax.buffer_donor = true})"
        " -> tensor<4xf32> { %c = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<4xf32>"
        " func.return %c : tensor<4xf32> }"
    )
    assert main(["serialize", str(program), "-o", path]) == 0
    assert main(["inspect", path]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["vhlo.broadcast_in_dim_v1:", "1"] in lines
    assert ["@main(tensor<4xf32>,", "tensor<f32>)", "->", "(tensor<4xf32>)"] in lines
    assert ["aliases:", "output", "index", "0", "parameter", "number", "0", "kind", "may-alias"] in lines
    assert ["donors:", "parameter", "number", "1"] in lines
    assert ["largest:", "none"] in lines


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
        assert capsys.readouterr().err.splitlines() == [
            f"engine {engine}: as asked for",
            "output {}: 8 bytes, in place of parameter 0 {}",
            "parameter 1 {0} of 8 bytes was given away, and no output is aliased with it",
        ]
        assert main(["run", *inputs, "--engine", engine, "--report"]) == 0
        assert "over a copy of parameter 0 {}: it was not donated" in capsys.readouterr().err
    assert main(["run", *inputs, "--donate", "7"]) == 2
    assert "there is no parameter 7 to donate" in capsys.readouterr().err
    assert main(["run", *inputs, "--donate", "x"]) == 2
    assert "'x' names no input: expected its number" in capsys.readouterr().err


def test_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--output-format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["stablehlo"] for row in rows][:2] == ["0.9.0", "0.10.0"]
    assert "jaxlib==0.4.31" in next(row for row in rows if row["stablehlo"] == "1.4.0")["releases"]
    assert main(["targets", "jaxlib==0.4.31", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["target"], row["stablehlo"], row["bytecode_version"]) == ("jaxlib==0.4.31", "1.4.2", 6)
    assert main(["targets", "--as-of", "2025-06-01", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["target"], row["stablehlo"]) for row in rows[:3]] == [
        ("0d", "1.10.9"),
        ("4w", "1.10.4"),
        ("12w", "1.9.3"),
    ]
    assert main(["targets"]) == 0
    assert "jaxlib==0.12.0.1" in capsys.readouterr().out


BAD_INPUTS = [
    (b"", "is empty"),
    (b" \n\t ", "nothing but white space"),
    (b"module {}", "is text: expected a portable artifact"),
    ((EXAMPLES / "convnet.bc").read_bytes(), "ordinary MLIR bytecode"),
    ("truncated", "cut short"),
    ("version", "ends in no version"),
    (b"\x7fELF\x02\0\0\0", "no kind of program"),
    (b"ML\xefR\x0fStableHLO_v1.0.0\0", "MLIR bytecode version 7 is newer than 6"),
]


@pytest.mark.parametrize(("data", "message"), BAD_INPUTS, ids=[message for _, message in BAD_INPUTS])
@pytest.mark.parametrize("command", ["deserialize", "retarget"])
def test_bad_artifacts(data: bytes | str, message: str, command: str, artifact: Path, capfd: Any) -> None:
    good = artifact.read_bytes()
    damaged = {"truncated": good[:-5], "version": good.replace(b"v1.4.2", b"v1.04.2")}
    bad, output = artifact.with_name("bad"), artifact.with_name("out")
    bad.write_bytes(damaged[data] if isinstance(data, str) else data)
    target = ["--target", "1.0.0"] if command == "retarget" else []
    assert main([command, str(bad), *target, "-o", str(output)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"vhlo: {bad}")
    assert message in err
    assert "Traceback" not in err
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["serialize", str(EXAMPLES / "transformer_step.mlir"), "--target", "1.0.0"], 1, "needs StableHLO 1.1.0"),
        (["serialize", str(EXAMPLES / "sharded_matmul.mlir")], 1, "--allow-other-dialects"),
        (["serialize", SAXPY, "--target", "1.00.0"], 2, "is not a StableHLO version"),
        (["serialize", SAXPY, "--target", "99999999999999999999.0.0"], 2, "is not a StableHLO version"),
        (["serialize", SAXPY, "--target", "9.0.0"], 2, "is newer than"),
        (["serialize", SAXPY, "--target", "jaxlib==0.4.32"], 2, "nearest known are jaxlib==0.4.31"),
        (["serialize", SAXPY, "--provider", "nonsense"], 2, "not a provider"),
        (["serialize", "no_such_file.mlir"], 2, "no_such_file.mlir: No such file or directory"),
        (["serialize", str(EXAMPLES)], 2, "Is a directory"),
    ],
)
def test_refusals(arguments: list[str], code: int, message: str, tmp_path: Path, capfd: Any) -> None:
    assert main([*arguments, "-o", str(tmp_path / "out")]) == code
    out, err = capfd.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", SAXPY], 2, "takes 3 inputs, but 0 were given"),
        (["run", str(EXAMPLES / "custom_calls.mlir"), "-i", "x.npy"], 2, "x.npy"),
        (["run", SAXPY, "-i", "{"], 2, "no JSON literal"),
        (["run", SAXPY, "-o", "out.txt"], 2, "neither a .npy nor a .npz"),
        (["run", SAXPY, "--engine", "gpu"], 2, "'gpu' is not one of"),
        (["targets", "nonsense"], 2, "is not a target"),
        (["targets", "--as-of", "1990-01-01"], 2, "no release is known by 1990-01-01"),
        (["targets", "--as-of", "yesterday"], 2, "does not match the format"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["retarget", SAXPY, "-o", "x"], 2, "Missing option '--target'"),
    ],
)
def test_usage(arguments: list[str], code: int, message: str, capfd: Any) -> None:
    assert main(arguments) == code
    out, err = capfd.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert message in err


@pytest.mark.parametrize(
    "command", [["serialize", SAXPY], ["run", SAXPY, "-i", "2", "-i", "[1,2,3,4]", "-i", "[1,1,1,1]"]]
)
def test_an_existing_output_stays_unless_forced(command: list[str], tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "out.npy"
    path.write_bytes(b"precious")
    assert main([*command, "-o", str(path)]) == 2
    assert "--force replaces it" in capfd.readouterr().err
    assert path.read_bytes() == b"precious"
    assert main([*command, "-o", str(path), "--force"]) == 0
    assert path.read_bytes() != b"precious"


@pytest.mark.parametrize(
    "command", [["serialize", SAXPY, "-o", "-"], ["deserialize", "{artifact}", "--emit", "bytecode"]]
)
def test_bytes_never_go_to_a_terminal(command: list[str], artifact: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = [part.format(artifact=artifact) for part in command]
    result = subprocess.run(
        [sys.executable, "-m", "vhlo_tools.cli.main", *arguments], stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    os.close(ours)
    assert result.returncode == 2
    assert b"refusing to write bytes to a terminal" in result.stderr


def test_warnings_of_what_a_consumer_chokes_on(tmp_path: Path, capfd: Any) -> None:
    path = str(EXAMPLES / "sharded_matmul.mlir")
    assert main(["serialize", path, "--allow-other-dialects", "--target", "1.10.0", "-o", str(tmp_path / "out")]) == 0
    said = capfd.readouterr().err
    assert "warning: sdy.mesh is of the dialect sdy, which readers older than 1.11.0 refuse" in said
    assert "func.func holds something of the dialect sdy" in said


def test_a_reader_that_stops_is_no_error() -> None:
    code = f"{shlex.quote(sys.executable)} -m vhlo_tools.cli.main targets --format json | head -c 10"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", code], capture_output=True)
    assert len(result.stdout) == 10
    assert (result.returncode, result.stderr) == (0, b"")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("serialize", "deserialize", "retarget", "inspect", "run", "targets"):
        assert command in out
        assert main([command, "--help"]) == 0
    assert main(["--version"]) == 0
    assert "vhlo, version" in capsys.readouterr().out


def test_reports_as_json(tmp_path: Path, capfd: Any) -> None:
    out = str(tmp_path / "out.mlirbc")
    transformer = str(EXAMPLES / "transformer_step.mlir")
    assert main(["serialize", transformer, "--target", "1.4.2", "-o", out, "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["ok"], report["version"], report["findings"]) == (True, "1.4.2", [])
    assert report["size"] == Path(out).stat().st_size
    assert main(["retarget", out, "--target", "1.0.0", "-o", out, "--force", "--format", "json"]) == 1
    report = json.loads(capfd.readouterr().out)
    finding = report["findings"][0]
    assert (report["ok"], finding["introduced"], finding["target"]) == (False, "1.1.0", "1.0.0")
    assert finding["location"] == "examples/make_transformer_step.py:74:21"
    assert main(["serialize", transformer, "--target", "nonsense", "-o", "x", "--format", "json"]) == 2
    assert json.loads(capfd.readouterr().out)["ok"] is False
    assert main(["serialize", transformer, "-o", "-", "--format", "json"]) == 2
    assert "give -o FILE for the output" in capfd.readouterr().err


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


def test_closed_streams_and_odd_outputs(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m vhlo_tools.cli.main"
    saxpy, folder = shlex.quote(str(SAXPY)), shlex.quote(str(tmp_path))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for line, code in (
        (f"{command} serialize {saxpy} -o - >&-", 2),
        (f"{command} inspect - <&-", 2),
        (f"{command} serialize {saxpy} -o {folder}/loop", 2),
        (f"{command} serialize {saxpy} -o {folder}/no/such/folder", 2),
        (f"{command} serialize {saxpy} -o ''", 2),
        (f"{command} serialize {saxpy} -o {folder}/{'n' * 250}", 0),
        (f"{command} serialize {saxpy} -o /dev/full", 2),
    ):
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert (result.returncode, "Traceback" in result.stderr) == (code, False), (line, result.stderr)
        assert ".part" not in result.stderr
    for line in (f"{command} targets | true", f"{command} inspect {saxpy} | true"):
        result = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def test_no_interrupt_leaves_half_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vhlo_tools.cli.main", "serialize", str(EXAMPLES / "transformer_step.mlir"), "-o"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    subprocess.run([*command, str(whole)], check=True)
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        process = subprocess.Popen([*command, str(out)], stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (0, 130, 1, -signal.SIGINT)
        # An interrupt may come after the file was written, while the process ends.
        assert out.exists() or process.returncode != 0
        assert not out.exists() or out.read_bytes() == whole.read_bytes()
        out.unlink(missing_ok=True)
        assert set(tmp_path.iterdir()) == {whole}
