"""`vhlo verify --engines`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


def test_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", SAXPY, SAXPY, "--rounds", "1", "--engines", "reference, xla"]
    assert main(command) == 0
    assert "engines agree on both programs: reference and xla" in capsys.readouterr().out
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engines"] == ["reference", "xla"]
    assert found["on_engines"]["disagreements"] == []
    for run in found["on_engines"]["runs"]:
        assert run["passed"]
        assert run["refusal"] is None
        assert [each["passed"] for each in run["rounds"]] == [True]


def test_programs_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.mlir"
    other.write_text((EXAMPLES / "saxpy.mlir").read_text().replace("stablehlo.add", "stablehlo.subtract"))
    assert main(["verify", SAXPY, str(other), "--engines", "reference,xla", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["passed"] for each in found["on_engines"]["runs"]] == [False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engines", "reference,gpu"], "'gpu' is not an engine: expected some of reference, xla, iree"),
        (["--engines", "xla"], "expected two or more different ones"),
        (["--engines", "reference,xla", "--engine", "xla"], "--engine is one engine and --engines are several"),
    ],
)
def test_wrong_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", SAXPY, SAXPY, *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_stores_take_one_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path), str(tmp_path), "--engines", "reference,xla"]) == 2
    assert "--engines, --handler and --bisect are for two programs" in " ".join(capsys.readouterr().err.split())


def test_one_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "tensor<2xf32>"
    program = tmp_path / "tanh.mlir"
    program.write_text(
        f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.tanh %a : {kind}\nreturn %0 : {kind} }}"
    )
    command = ["verify", str(program), "--engines", "reference,xla", "-i", "[0.1, 0.7]"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(f"reference and xla agree on {program}")
    assert main([*command, "--ulp", "0", "--bisect", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["divergence"]["op"] == "stablehlo.tanh"
    assert [each["explained"] for each in found["on_engines"]["disagreements"]] == [False]
    assert main(["verify", str(program)]) == 2
    assert "--engines such as reference,xla" in capsys.readouterr().err
