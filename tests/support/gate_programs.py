"""Small programs for tests of the gate, with places in a user's source."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import vhlo_tools as vt
from support.corpus import EXAMPLES, FEATURES
from vhlo_tools.cli.main import main
from vhlo_tools.gate.examination import Examination, Examiner, Task

GOOD = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"


def blocked(*lines: int, file: str = "model.py") -> str:
    """Return a program that is blocked below 1.4.0, by an op from each of these lines of the user's source."""
    ops = "".join(
        f'  %{n + 1} = stablehlo.tan %{n} : tensor<4xf32> loc("{file}":{line}:3)\n' for n, line in enumerate(lines)
    )
    return (
        "func.func @main(%arg: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %0 = stablehlo.abs %arg : tensor<4xf32> loc("model.py":1:1)\n'
        f"{ops}  return %{len(lines)} : tensor<4xf32>\n}}\n"
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``vhlo check``; return its exit code, stdout and stderr."""
    code = main(["check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def check_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run ``vhlo check --output-format json``, and return what it printed."""
    return json.loads(check(capsys, *arguments, "--output-format", "json")[1])


def fill_with_kinds(folder: Path) -> None:
    """Fill a folder with programs of many kinds, some of them equal, some damaged."""
    for number in range(12):
        write(folder / f"text{number}.mlir", blocked(number + 1))
        vt.serialize(blocked(50 + number)).save(folder / f"bytes{number}.mlirbc")
    for number in range(3):
        (folder / f"copy{number}.mlirbc").write_bytes((folder / "bytes0.mlirbc").read_bytes())
        # Each finding is at a place in the file, whose name it has.
        write(folder / f"named{number}.mlir", re.sub(r" loc\(.*\)", "", blocked(1)))
        write(folder / f"bad{number}.mlir", "nonsense")
    (folder / "cut.mlirbc").write_bytes((folder / "bytes0.mlirbc").read_bytes()[:100])
    for path in sorted([*EXAMPLES.glob("*.mlir"), *FEATURES.glob("t*.mlir")])[:12]:
        (folder / path.name).write_bytes(path.read_bytes())


@dataclass(frozen=True, slots=True)
class DeadlyExaminer(Examiner):
    """Kills its process at some programs."""

    mark: str = "deadly"
    times: int = 99

    def __call__(self, tasks: Sequence[Task]) -> list[Examination]:
        for task in tasks:
            killed = Path(f"{task.content.path}.killed")
            done = len(killed.read_text()) if killed.exists() else 0
            if self.mark in task.content.path and done < self.times:
                killed.write_text("x" * (done + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return Examiner.__call__(self, tasks)
