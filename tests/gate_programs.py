"""Small programs for tests of the gate, with places in a user's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vhlo_tools.cli.main import main

__all__ = ["GOOD", "blocked", "check", "check_json", "write"]

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
    """Write a file in a folder that need not be there yet."""
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
