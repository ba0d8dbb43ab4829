"""The runner of upstream's tests: the warm helper, and what is as expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from upstream_suite import Outcome, expected_shortfalls, reason_of, report

TANH = "func.func @f(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.tanh %a : tensor<f32> return %0 : tensor<f32> }\n"

#: Run in a process of its own: a helper is forked from it.
SESSION = """
import os, subprocess, sys
from pathlib import Path
from upstream_suite import warm_server
from upstream_server import SOCKET, write_clients
folder = Path(sys.argv[1])
write_clients(folder, sys.executable)
with warm_server(folder / "socket"):
    environment = {**os.environ, SOCKET: str(folder / "socket")}
    opt, translate = (str(folder / name) for name in ("stablehlo-opt", "stablehlo-translate"))
    for command in ([opt], [translate, "--interpret", "--args=[dense<0.0> : tensor<f32>]"], [opt, "there is none"]):
        ran = subprocess.run(command, stdin=open(folder / "a.mlir"), env=environment, capture_output=True, text=True)
        print(ran.returncode, ran.stdout, ran.stderr)
"""


def test_a_warm_helper_runs_commands_for_clients(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(TANH)
    paths = f"import sys; sys.path[:0] = {sys.path!r}\n"
    command = [sys.executable, "-c", paths + SESSION, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "0 module {" in ran.stdout, ran.stderr
    assert "0 tensor<f32> {0.000000e+00}" in ran.stdout
    assert "1  stablehlo-opt: cannot open input file 'there is none': No such file or directory" in ran.stdout


def test_only_what_is_expected_not_to_pass_may_fail(capsys: pytest.CaptureFixture[str]) -> None:
    shortfalls = {"stablehlo/tests/a*": "no pass", "stablehlo/tests/elsewhere": "not run"}
    passed = Outcome("stablehlo/tests/b.mlir", "PASS", "")
    failed = Outcome("stablehlo/tests/a.mlir", "FAIL", "Unknown")
    assert report([passed, failed], shortfalls)
    said = capsys.readouterr().out
    assert "stablehlo/tests/a.mlir: as expected: no pass" in said
    assert "stablehlo/tests: 2 tests: 1 passed, 1 failed, 0 unsupported" in said
    assert not report([Outcome("stablehlo/tests/b.mlir", "FAIL", "it differs"), failed], shortfalls)
    assert "stablehlo/tests/b.mlir: FAIL: it differs" in capsys.readouterr().out
    assert not report([Outcome("stablehlo/tests/a.mlir", "PASS", "")], shortfalls)
    assert "stablehlo/tests/a*: passes, but is expected not to" in capsys.readouterr().out


def test_shortfalls_are_those_of_the_library() -> None:
    old, new = (expected_shortfalls(version) for version in ("1.17.0", "1.22.0"))
    assert "stablehlo/tests/vhlo/stablehlo_legalize_to_vhlo.1_18_0.mlir" in old.keys() - new.keys()
    assert "stablehlo/tests/infer_chlo.mlir" in old.keys() & new.keys()


def test_the_reason_is_the_first_fault_that_was_said() -> None:
    output = "Exit Code: 1\n\n# executed command: opt x\n# .---command stderr---\n# | noise\n# | x:1:2: error: wrong\n"
    assert reason_of(output) == "x:1:2: error: wrong"
