"""The steps of a composite GitHub action, run as they stand, as a runner would run them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

_EXPRESSION: Final = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
# What a runner starts for `shell: bash`.
_SHELLS: Final = {"bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail")}


class ActionError(Exception):
    """An action that is not as it must be."""


@dataclass
class ActionRun:
    """What became of an action."""

    code: int = 0  # what the last step that ran exited with: 0, or that of the step that failed
    log: str = ""  # what all steps wrote on stdout and stderr
    outputs: dict[str, str] = field(default_factory=dict)  # the outputs of the action
    summary: str = ""  # the summary of the job


def load_action(path: Path) -> dict[str, Any]:
    """Return the action in a file.

    Raises:
        ActionError: If a script has an expression in it: what it stands for would be part of the script.
    """
    action: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for step in action["runs"]["steps"]:
        if "${{" in step["run"]:
            raise ActionError(f"the step {step['name']!r} has an expression in its script: pass it in env")
    return action


def run_action(path: Path, workspace: Path, temporary: Path, inputs: Mapping[str, str], *, skip: int = 0) -> ActionRun:
    """Run the steps of an action, until one fails.

    Args:
        path: The action's file.
        workspace: The folder of the repository that it is used in.
        temporary: The runner's folder for temporary files.
        inputs: Inputs of the action; the others have their defaults.
        skip: How many steps at the beginning have been done already.

    Raises:
        ActionError: If the action is not as it must be, or an input unknown.
    """
    action = load_action(path)
    unknown = inputs.keys() - action["inputs"].keys()
    if unknown:
        raise ActionError(f"no inputs of the action: {', '.join(sorted(unknown))}")
    values = {
        "github.action_path": str(path.parent),
        "github.workspace": str(workspace),
        "runner.temp": str(temporary),
        **{f"inputs.{name}": inputs.get(name, given.get("default", "")) for name, given in action["inputs"].items()},
    }
    result = ActionRun()
    for number, step in enumerate(action["runs"]["steps"][skip:]):
        folder = temporary / f"step-{skip + number}"
        folder.mkdir(parents=True)
        _run_step(step, workspace, folder, values, result)
        if result.code:
            break
    result.outputs = {name: _resolved(each["value"], values) for name, each in action.get("outputs", {}).items()}
    return result


def _run_step(step: dict[str, Any], workspace: Path, folder: Path, values: dict[str, str], result: ActionRun) -> None:
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
    for file in files.values():
        file.touch()
    script = folder / "script.sh"
    script.write_text(step["run"], encoding="utf-8")
    done = subprocess.run(
        [*_SHELLS[step["shell"]], str(script)],
        cwd=workspace / _resolved(step.get("working-directory", "."), values),
        env={
            **os.environ,
            **{name: _resolved(str(value), values) for name, value in step.get("env", {}).items()},
            **{name: str(file) for name, file in files.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_ACTIONS": "true",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    result.code = done.returncode
    result.log += done.stdout
    result.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    if "id" in step:
        for line in files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value


def _resolved(text: str, values: Mapping[str, str]) -> str:
    """Replace expressions; as for a runner, an output that no step has set is empty."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values and not name.startswith("steps."):
            raise ActionError(f"no such value: {match[0]}")
        return values.get(name, "")

    return _EXPRESSION.sub(value, text)
