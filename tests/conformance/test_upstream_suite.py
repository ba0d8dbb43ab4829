"""The runner of upstream's tests: the warm helper, and what is as expected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import upstream_server
import upstream_suite
from upstream_suite import Outcome, expected_shortfalls, reason_of, report

pytestmark = pytest.mark.long

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


LINE = "Exit Code: 1\n\n# RUN: at line 1\n# executed command: true\n# error: command failed\n# RUN: at line 2\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("opt x\n# .---command stderr---\n# | noise\n# | x:1:2: error: wrong\n# error: failed", "x:1:2: error: wrong"),
        (
            "opt x\n# | LLVM ERROR: no such version\n# | x: error: opt: the library crashed with SIGABRT\n"
            "# error: failed\n"
            "# executed command: FileCheck x\n# | FileCheck error: '<stdin>' is empty.\n# error: failed",
            "LLVM ERROR: no such version; x: error: opt: the library crashed with SIGABRT",
        ),
        (
            "opt x\n# | an error\n# executed command: diff a b\n# | --- a\n# | an error\n# error: failed",
            "diff a b: they differ",
        ),
        (
            "opt x\n# error: command failed with exit status: -9\n# error: command reached timeout: True",
            "opt x: command failed with exit status: -9; command reached timeout: True",
        ),
    ],
)
def test_the_reason_is_the_cause_that_the_first_failing_command_gave(said: str, reason: str) -> None:
    assert reason_of(f"{LINE}# executed command: {said}\n") == reason


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one test, which never ends."""
    folder = tmp_path / "checkout"
    tests = folder / "stablehlo" / "tests"
    tests.mkdir(parents=True)
    (tests / "endless.mlir").write_text(
        "// RUN: stablehlo-translate --interpret %s\n"
        "func.func @main() -> tensor<i1> {\n  %0 = stablehlo.constant dense<true> : tensor<i1>\n"
        '  %1 = interpreter.probe %0, probe_id = "begun" : tensor<i1>\n'
        "  %2 = stablehlo.while(%a = %1) : tensor<i1>\n"
        "  cond { stablehlo.return %a : tensor<i1> } do { stablehlo.return %a : tensor<i1> }\n"
        "  return %2 : tensor<i1>\n}\n"
    )
    return folder


def suite(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Begin the suite, with programs in the place of LLVM's, which no test here needs."""
    for name in ("FileCheck", "not"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = [sys.executable, str(Path(upstream_suite.__file__)), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process began and that still are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(") ")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(path.parent.name))
    return found


def descendants_of(pid: int) -> list[int]:
    return [each for child in children_of(pid) for each in (child, *descendants_of(child))]


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("there is none",), "there is no stablehlo/tests and no stablehlo/testdata in there is none"),
        (("CHECKOUT", "--suite", "stablehlo/testdata"), "there is no stablehlo/testdata in"),
        (("CHECKOUT", "--only", "("), "'(' is no regular expression"),
        (("CHECKOUT", "--only", "nothing"), "no test in stablehlo/tests has a name that matches 'nothing'"),
        (("CHECKOUT", "--output", "no folder/file"), "there is no folder no folder"),
        (("CHECKOUT", "--lit", "'no lit'"), "no lit cannot be run: No such file or directory. lit is on PyPI"),
        (("CHECKOUT", "--lit", "sh -c 'echo it is broken; exit 3'"), "ended with exit code 3:\nit is broken"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], said: str, checkout: Path, tmp_path: Path) -> None:
    process = suite(tmp_path, *(checkout if each == "CHECKOUT" else each for each in arguments))
    _, error = process.communicate()
    assert process.returncode == 2
    assert said in error


def test_names_are_matched_as_they_are_reported(checkout: Path) -> None:
    assert upstream_suite.names_of(checkout, "stablehlo/tests", "^stablehlo/tests/end") == ["endless.mlir"]
    assert upstream_suite.names_of(checkout, "stablehlo/tests", "^end") == []


def test_nothing_is_left_running_when_it_is_interrupted(checkout: Path, tmp_path: Path) -> None:
    # In the place of lit, so that none is needed here: it begins the one test, and waits for it.
    lit = tmp_path / "lit"
    test = checkout / "stablehlo" / "tests" / "endless.mlir"
    lit.write_text(
        f"#!/bin/sh\nfor last; do :; done\nwork=${{last#@}}\nwork=${{work%/*}}\n"
        f'export {upstream_server.SOCKET}="$work/socket"\n'
        f'"$work/bin/stablehlo-translate" --interpret --probe-output-dir={tmp_path} {test} &\nwait\n'
    )
    lit.chmod(0o755)
    process = suite(tmp_path, checkout, "--lit", lit)
    wait_until((tmp_path / "index.csv").exists)
    begun = descendants_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert (process.returncode, "interrupted" in error) == (130, True)
    # lit, its client, the warm helper, the process in which that does the work, and those that read messages again.
    assert len(begun) >= 4
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in begun))
