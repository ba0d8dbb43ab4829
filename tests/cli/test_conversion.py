"""``vhlo serialize``, ``retarget`` and ``deserialize``: outputs, exit codes, and what is said of what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


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


BAD_INPUTS = [
    (b"", "is empty"),
    (b" \n\t ", "contains only white space"),
    (b"module {}", "is text: expected a portable artifact"),
    ((EXAMPLES / "convnet.bc").read_bytes(), "ordinary MLIR bytecode"),
    ("truncated", "cut short"),
    ("version", "whose version is invalid"),
    (b"\x7fELF\x02\0\0\0", "no known program format"),
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
        (["serialize", str(EXAMPLES / "sharded_matmul.mlir"), "--target", "1.10.0"], 1, "choose 1.11.0 or later"),
        (["serialize", SAXPY, "--target", "1.00.0"], 2, "is not a StableHLO version"),
        (["serialize", SAXPY, "--target", "99999999999999999999.0.0"], 2, "is not a StableHLO version"),
        (["serialize", SAXPY, "--target", "9.0.0"], 2, "is newer than"),
        (["serialize", SAXPY, "--target", "jaxlib==0.1"], 2, "nearest known are jaxlib==0.4.13"),
        (["serialize", SAXPY, "--provider", "nonsense"], 2, "not a known provider"),
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


def test_warnings_of_what_a_consumer_chokes_on(tmp_path: Path, capfd: Any) -> None:
    path = str(EXAMPLES / "sharded_matmul.mlir")
    assert main(["serialize", path, "--allow-other-dialects", "--target", "1.10.0", "-o", str(tmp_path / "out")]) == 0
    said = capfd.readouterr().err
    assert "warning: sdy.mesh is of the dialect sdy, which readers older than 1.11.0 reject" in said
    assert "func.func contains something of the dialect sdy" in said


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
