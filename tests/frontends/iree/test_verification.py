"""Two programs on three engines: the one that stands alone is named, and one that cannot run ends nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.execution import EngineName

ENGINES: tuple[EngineName, ...] = ("reference", "xla", "iree")
F32 = "tensor<3xf32>"
POWER = f"func.func @main(%a: {F32}) -> {F32} {{ %0 = stablehlo.OP %a, %a : {F32}\n return %0 : {F32} }}"
CHOLESKY = """func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.cholesky"(%a) {lower = true} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}"""


def power(op: str = "power") -> str:
    return POWER.replace("OP", op)


def test_the_engine_that_stands_alone_is_named() -> None:
    report = vt.verify(power(), power(), [[-2, 3, -1]], engines=ENGINES, names=("before", "after"))
    assert report.passed
    assert report.engines == ENGINES
    assert report.on_engines is not None
    before, after = report.on_engines.disagreements
    assert (before.program, after.program) == ("before", "after")
    assert (before.alone, before.place, before.inputs) == ("iree", "0", "given")
    assert list(before.differing) == [("iree", "reference"), ("iree", "xla")]
    said = str(report)
    assert said.startswith("after computes the same as before, within 4 ulp, on reference, xla and iree\n")
    assert "engines disagree: before, output 0, given: reference and xla agree, iree stands alone; iree with" in said


def test_agreement_is_said_too(saxpy: str) -> None:
    report = vt.verify(saxpy, saxpy, rounds=3, engines=ENGINES)
    assert report.passed
    assert "engines agree on both programs: reference, xla and iree" in str(report)
    assert report.on_engines is not None
    assert [len(each.rounds) for each in report.on_engines.runs] == [3, 3, 3]


def test_programs_that_differ_differ_on_every_engine() -> None:
    report = vt.verify(power("add"), power("multiply"), [[1, 3, 4]], engines=ENGINES)
    assert not report.passed
    assert report.on_engines is not None
    assert report.on_engines.differing == ENGINES
    with pytest.raises(vt.VerificationError, match=r"does not compute the same .* on reference, xla and iree"):
        report.require()


def test_an_engine_that_cannot_run_a_program_is_no_end_to_the_others() -> None:
    report = vt.verify(CHOLESKY, CHOLESKY, [[[4, 0], [0, 9]]], engines=ENGINES)
    assert report.passed
    assert report.engines == ("reference", "xla")
    assert report.on_engines is not None
    (*_, run) = report.on_engines.runs
    assert (run.engine, run.rounds) == ("iree", ())
    assert run.refusal is not None
    assert "no lowering of stablehlo.cholesky" in run.refusal
    assert "on iree: not run: IREE cannot compile" in str(report)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "power.mlir"
    path.write_text(power())
    command = ["verify", str(path), str(path), "-i", "[-2, 3, -1]", "--engines", "reference,xla,iree"]
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"]
    assert [each["engine"] for each in found["on_engines"]["runs"]] == list(ENGINES)
    (disagreement,) = found["on_engines"]["disagreements"]
    assert disagreement["alone"] == "iree"
    assert [each["engines"] for each in disagreement["differing"]] == [["iree", "reference"], ["iree", "xla"]]
    assert main(command) == 0
    assert "iree stands alone" in capsys.readouterr().out
    assert main(["run", str(path), "-i", "[2, 3, 1]", "--engine", "iree", "--details"]) == 0
    said = capsys.readouterr()
    assert "float32[3]\n[ 4." in said.out
    assert "engine iree: as requested" in said.err


def test_a_recorded_result_is_replayed_on_it(tmp_path: Path, saxpy: str) -> None:
    path = tmp_path / "saxpy.mlir"
    path.write_text(saxpy)
    assert main(["golden", "record", str(tmp_path / "suite"), str(path), "--engine", "iree"]) == 0
    (manifest,) = (tmp_path / "suite" / "saxpy").glob("*.json")
    assert json.loads(manifest.read_text())["engine"] == "iree"
    assert main(["golden", "check", str(tmp_path / "suite")]) == 0
