"""``vhlo inspect``: as JSON, and for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.mlirbc"
    vt.serialize(SAXPY, "1.4.2").save(path)
    return path


def test_inspect(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(artifact), "--output-format", "json"]) == 0
    described = json.loads(capsys.readouterr().out)
    required = described["requirements"]
    assert (required["readable_since"], required["downgradable_to"]) == ("0.15.0", "0.9.0")
    assert (described["kind"], described["version"]) == ("portable-artifact", "1.4.2")
    assert described["path"] == str(artifact)
    for path in EXAMPLES.iterdir():
        if path.suffix in (".mlir", ".bc", ".jax_export"):
            assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "kind:                jax-export" in out
    assert "  gather_scatter_batching_dims, since 1.1.0: " in out
    assert "StableHLO_v" in out


def test_inspect_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, path = tmp_path / "in.mlir", str(tmp_path / "out.mlirbc")
    program.write_text(
        "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<f32> {jax.buffer_donor = true})"
        " -> tensor<4xf32> { %c = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<4xf32>"
        " func.return %c : tensor<4xf32> }"
    )
    assert main(["serialize", str(program), "-o", path]) == 0
    assert main(["inspect", path]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["vhlo.broadcast_in_dim_v1:", "1"] in lines
    assert ["@main(tensor<4xf32>,", "tensor<f32>)", "->", "(tensor<4xf32>)"] in lines
    assert ["aliases:", "output", "{0}", "with", "parameter", "0", "(may-alias)"] in lines
    assert ["donors:", "parameter", "1"] in lines
    assert ["largest:", "none"] in lines
