"""What XLA says is shown in its lines; line ends of names in a program are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main

#: XLA refuses operands of several precisions, in lines, with the file of the op.
MIXED = r"""
func.func @main(%a: tensor<2xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f64>
  %0 = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %c = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<2xf32>, tensor<f64>) -> tensor<f32> loc("FILE":7:1)
  return %0 : tensor<f32>
}
"""


def said_of(file: str) -> str:
    with pytest.raises(vt.EngineError) as caught:
        vt.run(MIXED.replace("FILE", file), [np.ones(2, np.float32)], engine="xla")
    return str(caught.value)


def test_lines_of_xla_are_lines() -> None:
    first, *rest = said_of("model.py").split("\n")
    assert first.startswith("XLA cannot compile the text: INTERNAL: ")
    assert rest
    assert all(line.startswith("  ") and line.strip() for line in rest)
    assert "\\n" not in "".join((first, *rest))


@pytest.mark.parametrize("file", [r"m\0A::error::x\1B[31m", r"\C3\A9\0Avhlo: all is well"])
def test_line_ends_of_names_are_none(file: str) -> None:
    plain, said = said_of("model.py"), said_of(file)
    assert len(said.split("\n")) == len(plain.split("\n"))
    assert all(line.isprintable() and not line.lstrip().startswith(("::", "vhlo")) for line in said.split("\n"))
    assert "\\n" in said


def test_errors_in_hlo_show_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.hlo"
    path.write_text("HloModule m\n\n::error::x\nENTRY main {\n  ROOT a = f32[2] parameter(0)\n}\n")
    assert main(["run", str(path), "--engine", "xla"]) == 2
    lines = capsys.readouterr().err.rstrip().split("\n")
    assert [line.strip() for line in lines[1:]] == ["was parsing 3:1: error: expects name", "\\x3a:error::x", "^"]
