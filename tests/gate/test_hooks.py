"""The pre-commit hook and the GitHub action without their installation, which scripts/check_hooks.py tries."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from action_steps import ActionError, load_action, run_action
from click.testing import CliRunner
from support.corpus import ROOT
from support.forked_python import COMMAND
from support.gate_programs import GOOD, blocked, write
from support.vhlo_process import warm_python

from vhlo_tools.files import PROGRAM_SUFFIXES

ACTION = ROOT / "action.yml"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The runner's temporary folder as the first step leaves it, with this environment in place of a new one."""
    temporary = tmp_path / "runner"
    programs = temporary / "vhlo-tools" / "bin"
    programs.mkdir(parents=True)
    warm_python().write_program(programs / "vhlo", COMMAND)
    return temporary


def test_the_action_is_one_by_the_schema_of_github() -> None:
    checker = import_module("check_jsonschema.cli").main
    done = CliRunner().invoke(checker, ["--builtin-schema", "vendor.github-actions", str(ACTION)])
    assert done.exit_code == 0, done.output


def test_the_hook_is_one_by_pre_commit() -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    assert import_module("pre_commit.main").main(["validate-manifest", str(manifest)]) == 0
    (hook,) = yaml.safe_load(manifest.read_text())
    assert hook["entry"].split()[0] == "vhlo"
    # All that `vhlo check` takes for a program by its name alone.
    assert all(re.search(hook["files"], f"a/b{suffix}") for suffix in PROGRAM_SUFFIXES)
    assert not re.search(hook["files"], "a/b.py")


def test_the_action_passes_a_good_program_and_fails_on_a_blocked_one(tmp_path: Path, installed: Path) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "exports" / "model.mlir", GOOD)
    inputs = {"paths": "exports", "target": "1.3.0\n1.2.0", "sarif-file": "report.sarif"}
    done = run_action(ACTION, workspace, installed, inputs, skip=1)
    assert (done.code, done.log) == (0, "vhlo: checked 1 program: no errors; the result is in report.sarif\n")
    assert done.outputs == {"exit-code": "0", "sarif-file": "report.sarif"}
    assert done.summary == "vhlo check: all is well (exit code 0)\n"


def test_the_action_fails_on_a_blocked_program(tmp_path: Path, installed: Path) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "model.mlir", blocked(7))
    done = run_action(ACTION, workspace, installed, {"paths": "model.mlir", "target": "1.3.0"}, skip=1)
    assert done.code == 1
    assert done.log.startswith("::error file=model.py,line=7,col=3,title=vhlo%3A tan::")
    assert done.outputs == {"exit-code": "1", "sarif-file": ""}


def test_inputs_of_the_action_are_never_part_of_a_script(tmp_path: Path, installed: Path) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "model.mlir", GOOD)
    inputs = {"paths": "$(touch hit)`touch hit`\n--exit-zero", "target": '1.3.0"; touch hit #', "config": "; touch hit"}
    assert run_action(ACTION, workspace, installed, inputs, skip=1).code == 2
    assert not (workspace / "hit").exists()


def test_a_script_with_an_expression_is_refused(tmp_path: Path) -> None:
    steps = {"runs": {"steps": [{"name": "Say", "shell": "bash", "run": "echo ${{ inputs.name }}"}]}}
    with pytest.raises(ActionError, match="'Say' has an expression in its script"):
        load_action(write(tmp_path / "action.yml", yaml.safe_dump(steps)))


def test_the_action_compares_with_a_revision(tmp_path: Path, installed: Path) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "old.mlir", blocked(7))
    git = ["git", "-C", str(workspace), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    (workspace / "new.mlir").write_text(blocked(7))
    inputs = {"paths": ".", "target": "1.3.0", "against": "HEAD", "output-format": "text"}
    done = run_action(ACTION, workspace, installed, inputs, skip=1)
    assert done.code == 1
    assert "new.mlir" in done.log
    assert "old.mlir" not in done.log
