"""The fixture ``vhlo_check`` in tests of a user, which pytest runs in a process of its own.

In this process it would import jaxlib anew for each run, which its dialects do not survive.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.corpus import ROOT
from support.gate_programs import GOOD, blocked, write

PLUGIN = "vhlo_tools.pytest_plugin"
CALL = (
    "func.func @main(%a: tensor<4xf32>) {\n"
    "  %0 = stablehlo.custom_call @kernel(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}\n"
)
TESTS = """
import jax
import jax.numpy as jnp
from pathlib import Path

def test_blocked(vhlo_check):
    vhlo_check(Path("blocked.mlir").read_text(), "1.3.0", name="my model")

def test_good(vhlo_check):
    assert vhlo_check("good.mlir", ["1.3.0", "1.9.0"], readable_by="current") == []
    assert [each.feature for each in vhlo_check(Path("call.mlir"), "1.3.0")] == ["custom_call"]

def test_jax(vhlo_check):
    lowered = jax.jit(jnp.tan).lower(jnp.zeros(4))
    vhlo_check(lowered, "current")
    vhlo_check(lowered.compiler_ir(), "current")
    vhlo_check(lowered, "1.3.0", name="tan of JAX")

def test_no_target(vhlo_check):
    vhlo_check("good.mlir")

def test_bad_target(vhlo_check):
    vhlo_check("good.mlir", "1.x")

def test_no_file(vhlo_check):
    vhlo_check("none.mlir", "1.3.0")

def test_no_text(vhlo_check):
    vhlo_check("module { nonsense }\\n", "1.3.0")

def test_no_program(vhlo_check):
    vhlo_check(3, "1.3.0")
"""


SETTINGS = """
target = ["fleet"]
baseline = "known.json"
[targets]
fleet = ["1.2.0", "1.9.0"]
[[overrides]]
paths = ["warned.mlir"]
levels = { tan = "warn" }
"""
WITH_SETTINGS = """
def test_targets(vhlo_check):
    vhlo_check("blocked.mlir")

def test_known(vhlo_check):
    assert vhlo_check("known.mlir", "1.3.0") == []

def test_moved(vhlo_check):
    assert vhlo_check("folder/moved.mlir", "1.3.0") == []

def test_copied(vhlo_check):
    vhlo_check("folder/copy.mlir", "1.3.0")

def test_warned_of(vhlo_check):
    assert [each.level for each in vhlo_check("warned.mlir", "1.3.0")] == ["warning"]

def test_of_no_file(vhlo_check):
    vhlo_check(open("known.mlir").read(), "1.3.0")
"""
# Several runs of pytest share the time to start and to load the library.
RUNS = """
import json, sys, pytest
for arguments in json.loads(sys.argv[1]):
    pytest.main(["-p", "PLUGIN", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments, "test_model.py"])
    print("==== the end of a run")
""".replace("PLUGIN", PLUGIN)


def run(folder: Path, tests: str, *runs: list[str]) -> list[dict[str, str]]:
    """Run the tests of a user, once with each list of arguments: what was said of each that failed, by its name."""
    write(folder / "pytest.ini", "[pytest]\n")
    write(folder / "blocked.mlir", blocked(7))
    write(folder / "good.mlir", GOOD)
    write(folder / "call.mlir", CALL)
    write(folder / "test_model.py", tests)
    command = [sys.executable, "-c", RUNS, json.dumps(runs)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    *reports, _ = done.stdout.split("==== the end of a run\n")
    return [_failures(report) for report in reports]


def _failures(report: str) -> dict[str, str]:
    assert "test_model.py" in report, report
    _, *parts = re.split(r"^_{3,} (\w+) _{3,}$", report.partition("\n====== short")[0], flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    (failed,) = run(tmp_path_factory.mktemp("user"), TESTS, [])
    return failed


def test_a_blocked_program_fails_the_test_with_its_reasons(failures: dict[str, str]) -> None:
    assert failures["test_blocked"].strip().splitlines()[:5] == [
        "my model: 1 error for 1.3.0",
        "  error: tan, since 1.4.0",
        "    stablehlo.tan needs StableHLO 1.4.0: the op tan",
        "      model.py:7:3 in @main",
        "    -> write tan(x) as sine(x) / cosine(x); or rewrite it with --expand; or",
    ]


def test_a_good_program_passes_and_its_findings_are_returned(failures: dict[str, str]) -> None:
    assert "test_good" not in failures


def test_programs_of_jax_are_shown_at_the_line_of_the_user(failures: dict[str, str]) -> None:
    assert failures["test_jax"].strip().startswith("tan of JAX: 1 error")
    assert re.search(r"^      \S*test_model.py:\d+:\d+", failures["test_jax"], re.MULTILINE)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("test_no_target", "expected a target: give one, or --vhlo-target, or vhlo_target in the settings of pytest"),
        ("test_bad_target", "good.mlir: "),
        ("test_no_file", "none.mlir: No such file or directory"),
        ("test_no_text", "test_model.py::test_no_text: "),
        ("test_no_program", "is not a program: expected"),
    ],
)
def test_what_cannot_be_checked_fails_without_a_traceback(test: str, message: str, failures: dict[str, str]) -> None:
    assert message in failures[test].split("\n=====")[0]
    for sign in ("Traceback", "pytest_plugin.py", "During handling", "direct cause"):
        assert sign not in failures[test]


@pytest.fixture(scope="module")
def with_settings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """What failed with settings alone, with targets of pytest's settings, and with targets of its command line."""
    folder = tmp_path_factory.mktemp("settings")
    entry = {"file": "known.mlir", "target": "1.3.0", "feature": "tan", "op": "stablehlo.tan", "function": "main"}
    entry |= {"path": "@main/stablehlo.tan", "source": "model.py"}
    moved, copied = blocked(9), blocked(8)
    mark = {"file": "old.mlir", "content": hashlib.sha256(moved.encode()).hexdigest(), "functions": 1}
    there = {"file": "known.mlir", "content": hashlib.sha256(copied.encode()).hexdigest(), "functions": 1}
    known = [entry | {"count": 1}, entry | {"file": "old.mlir", "count": 1}]
    write(folder / "known.json", json.dumps({"format": 2, "programs": [there, mark], "findings": known}))
    (folder / "folder").mkdir()
    write(folder / "folder" / "moved.mlir", moved)
    write(folder / "folder" / "copy.mlir", copied)
    write(folder / "vhlo-tools.toml", SETTINGS)
    write(folder / "known.mlir", blocked(8))
    write(folder / "warned.mlir", blocked(8))
    asked = ["--vhlo-target", "1.4.0", "--vhlo-target", "1.3.0"]
    return run(folder, WITH_SETTINGS, [], ["-o", "vhlo_target=1.4.0\n1.5.0"], asked)


def test_targets_of_the_command_line_of_pytest_and_of_the_settings(with_settings: list[dict[str, str]]) -> None:
    settings, pytests, asked = with_settings
    assert "blocked.mlir: 1 error for fleet (StableHLO 1.2.0)" in settings["test_targets"]
    assert "test_targets" not in pytests
    assert "blocked.mlir: 1 error for 1.3.0" in asked["test_targets"]


def test_levels_and_the_baseline_of_the_settings_hold(with_settings: list[dict[str, str]]) -> None:
    for failed in with_settings:
        assert not failed.keys() & {"test_known", "test_moved", "test_warned_of"}
        # What is known of a program that is still there is not known of its copy.
        assert "test_copied" in failed
        assert "test_of_no_file" in failed


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["vhlo_tools", "vhlo_tools.exports", "vhlo_tools.lazy", PLUGIN]


def test_pytest_finds_the_plugin_where_the_package_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}
    assert Path(ROOT, *PLUGIN.split(".")).with_suffix(".py").is_file()
