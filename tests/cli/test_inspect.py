"""``vhlo inspect``: as JSON, and for people."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

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
            assert main(["inspect", "--all", str(path)]) == 0
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
    assert main(["inspect", path, "--all"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["vhlo.broadcast_in_dim_v1:", "1"] in lines
    assert ["@main(tensor<4xf32>,", "tensor<f32>)", "->", "(tensor<4xf32>)"] in lines
    assert ["aliases:", "output", "{0}", "with", "parameter", "0", "(may-alias)"] in lines
    assert ["donors:", "parameter", "1"] in lines
    assert ["largest:", "none"] in lines


OUTLINES = {
    "keras_mlp.mlirbc": """\
  is       portable artifact of StableHLO 1.0.0 (bytecode version 6), 4,358 bytes
  read by  StableHLO 0.15.0 and newer (since jaxlib 0.4.21, tensorflow 2.16.1, torch-mlir 20261001, \
iree-base-compiler 3.0.0, libtpu 0.0.1, jax-cuda12-pjrt 0.4.34, jax-cuda13-pjrt 0.7.2); \
can be rewritten for 0.9.0 and newer
  takes    1 argument: tensor<2x6xf32>
  gives    1 result: tensor<2x3xf32>
  holds    189 ops in 3 functions: 50 constant, 33 multiply, 30 add, 24 broadcast_in_dim and 15 more; \
50 constants of 924 bytes
""",
    "transformer_step.mlir": """\
  is       MLIR text, 1,035 lines, 83,100 bytes
  read by  depends on the version that it is written for: see `vhlo check --target minimum`
""",
}


@pytest.mark.whole_data("the first releases that read a file are named, of which some are new")
@pytest.mark.parametrize("name", OUTLINES)
def test_it_begins_with_what_matters(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert main(["inspect", name]) == 0
    assert capsys.readouterr().out == f"{name}\n{OUTLINES[name]}"


@pytest.mark.parametrize("name", ["saxpy.mlir", "convnet.bc", "transformer_step.mlir"])
def test_what_it_says_to_see_tells_the_versions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(EXAMPLES / name)
    assert main(["inspect", program]) == 0
    (named,) = re.findall("see `vhlo ([^`]+)`", capsys.readouterr().out)
    assert main([*named.split(), program]) in (0, 1)
    assert "choose 1.1.0 or later" in (said := capsys.readouterr().out) or f"{name}: ok for minimum" in said


def test_a_last_line_without_end_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, lines in (("module {}", "1 line,"), ("module {}\n", "1 line,"), ("module {\n}", "2 lines,")):
        path = tmp_path / "a.mlir"
        path.write_text(text)
        assert main(["inspect", str(path)]) == 0
        assert f"MLIR text, {lines}" in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"ML\xefR", b"ML\xefR\1MLIR", b"ML\xefR\1StableHLO_v1.0.0\0\1"])
def test_damage_is_that_of_a_file(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "torn.mlirbc"
    path.write_bytes(data)
    for command in (["inspect", str(path)], ["diff", SAXPY, str(path)], ["serialize", str(path), "-o", f"{path}.out"]):
        assert main(command) == 2
        assert capsys.readouterr().err.startswith(f"vhlo: {path}: ")


def test_aliases_are_said_where_they_are_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, path = tmp_path / "in.mlir", str(tmp_path / "out.mlirbc")
    program.write_text(
        "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<f32> {jax.buffer_donor = true})"
        " -> tensor<4xf32> { %c = stablehlo.tan %a : tensor<4xf32> func.return %c : tensor<4xf32> }"
    )
    assert main(["serialize", str(program), "--target", "1.4.0", "-o", path]) == 0
    assert main(["inspect", path]) == 0
    _, _, reads, takes, gives, holds = capsys.readouterr().out.splitlines()
    assert " because of tan; can be rewritten for 1.4.0 and newer, with expansions for 0.9.0 and newer" in reads
    assert takes.endswith(" 2 arguments: tensor<4xf32>, tensor<f32>; donated: 1")
    assert gives.endswith(" 1 result: tensor<4xf32>; aliased: {0} with parameter 0")
    assert holds.endswith(" 2 ops in 1 function: 1 return, 1 tan; no constants")
