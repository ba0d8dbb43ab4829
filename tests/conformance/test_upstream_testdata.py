"""The runner of StableHLO's own test programs, on programs of its form."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_testdata import main, run_file

pytestmark = pytest.mark.long

RUN = "// RUN: stablehlo-translate --interpret %s\n// RUN: stablehlo-translate --serialize --target=current %s\n"


def program(check: str, expected: str, value: str = "2.0") -> str:
    kind = "tensor<2xf32>"
    return f"""
module @jit_main {{
  func.func public @main() -> ({kind} {{jax.result_info = ""}}) {{
    %0 = call @inputs() : () -> {kind}
    %1 = stablehlo.constant dense<{expected}> : {kind}
    %2 = stablehlo.add %0, %0 : {kind}
    stablehlo.custom_call @{check}(%2, %1) {{has_side_effect = true}} : ({kind}, {kind}) -> ()
    return %2 : {kind}
  }}
  func.func private @inputs() -> {kind} {{
    %0 = stablehlo.constant dense<{value}> : {kind}
    return %0 : {kind}
  }}
}}
"""


def outcome(folder: Path, text: str) -> list[str]:
    path = folder / "program.mlir"
    path.write_text(text)
    return run_file(str(path))


@pytest.mark.parametrize(
    ("check", "expected"),
    [("check.expect_eq", "4.0"), ("check.expect_close", "4.000001"), ("check.expect_almost_eq", "4.0009")],
)
def test_results_that_a_check_lets_pass(check: str, expected: str, tmp_path: Path) -> None:
    assert outcome(tmp_path, RUN + program(check, expected)) == ["passed", ""]


@pytest.mark.parametrize(
    ("check", "expected"),
    [("check.expect_eq", "4.000001"), ("check.expect_close", "4.00001"), ("check.expect_almost_eq", "4.01")],
)
def test_results_that_a_check_does_not_let_pass(check: str, expected: str, tmp_path: Path) -> None:
    status, reason = outcome(tmp_path, RUN + program(check, expected))
    assert status == "failed"
    assert f"@main: {check}: output 0: float32[2], 2 of 2 differ, 2 beyond the tolerance" in reason


def test_every_function_with_checks_against_constants_and_every_part_of_a_file(tmp_path: Path) -> None:
    checks = """
func.func @{name}() {{
  %0 = stablehlo.constant dense<[(1.0, 2.0)]> : {kind}
  "check.expect_almost_eq_const"(%0) <{{value = dense<[(1.0, {wanted})]> : {kind}}}> : ({kind}) -> ()
  "check.expect_eq_const"(%0) <{{value = dense<(1.0, 2.0)> : {kind}}}> : ({kind}) -> ()
  func.return
}}
"""
    kind = "tensor<1xcomplex<f32>>"
    good = checks.format(name="one", wanted=2.00001, kind=kind) + checks.format(name="two", wanted=2.0, kind=kind)
    text = "// RUN: stablehlo-translate --interpret -split-input-file %s\n" + good + "// -----\n"
    assert outcome(tmp_path, text + good) == ["passed", ""]
    status, reason = outcome(tmp_path, text + checks.format(name="three", wanted=2.1, kind=kind))
    assert status == "failed"
    assert reason.startswith("@three: check.expect_almost_eq_const: output 0")


def test_what_cannot_be_run_has_a_reason(tmp_path: Path) -> None:
    text = RUN + program("check.expect_eq", "4.0")
    assert outcome(tmp_path, text.replace("stablehlo.add", "stablehlo.newest"))[0] == "unreadable"
    calling = text.replace("%1 =", "stablehlo.custom_call @f() {has_side_effect = true} : () -> ()\n%1 =")
    status, reason = outcome(tmp_path, calling)
    assert status == "refused"
    assert "no handler for custom calls of f on the interpreter" in reason
    assert outcome(tmp_path, RUN + "func.func @main() { return }") == ["failed", "it has no checks"]
    assert outcome(tmp_path, program("check.expect_eq", "4.0"))[0] == "nothing-to-run"


def test_what_upstream_switched_off_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stablehlo" / "testdata"
    folder.mkdir(parents=True)
    (folder / "good.mlir").write_text(RUN + program("check.expect_eq", "4.0"))
    off = RUN.replace("// RUN:", "// RUN-DISABLED(inaccurate):", 1)
    (folder / "off.mlir").write_text(off + program("check.expect_eq", "5.0"))
    monkeypatch.setattr("sys.argv", ["upstream_testdata.py", str(tmp_path)])
    assert main() == 0
    said = capsys.readouterr().out
    assert "failed: off.mlir (upstream: inaccurate): @main: check.expect_eq" in said
    assert said.endswith("run upstream: 1, of which 1 passed\nswitched off upstream: 1, of which 1 failed\n")
    (folder / "bad.mlir").write_text(RUN + program("check.expect_eq", "5.0"))
    assert main() == 1


def test_a_folder_without_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["upstream_testdata.py", str(tmp_path)])
    assert main() == 2
    assert "there are no programs in" in capsys.readouterr().err
