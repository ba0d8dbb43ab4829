"""Programs compiled for accelerators that are not there: aliases, memory, costs and the optimized program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.json_records import schema_problems

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.files import find_hlo_module, view

pytestmark = pytest.mark.releases

TPU, GPU, OLD = "libtpu==0.0.52@v5e", "jax-cuda13-pjrt==0.12.0.1@h100", "libtpu==0.0.2"
STEP = EXAMPLES / "transformer_step.mlir"
#: A donor of as many bytes as the result on a TPU, where both fill a tile, and of half as many elsewhere.
TILES = """func.func @main(%a: tensor<4xi32> {jax.buffer_donor = true}, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %b, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


@pytest.mark.parametrize("release", [TPU, GPU, OLD])
def test_a_training_step_keeps_its_aliases(release: str) -> None:
    declared = vt.serialize(STEP).aliases()
    compiled = vt.compile_for(STEP, release)
    assert [each.declared for each in compiled.aliases] == sorted(
        declared.aliases, key=lambda one: one.parameter_number
    )
    assert all(each.kept and not each.reason for each in compiled.aliases)
    assert find_hlo_module(view(compiled.hlo)) is not None
    if release == OLD:
        assert compiled.memory is None
    else:
        assert compiled.memory is not None
        assert 0 < compiled.memory["aliased"] <= compiled.memory["arguments"]
    # A GPU's compiler gives no costs.
    assert set(compiled.costs) == (set() if release == GPU else {"flops", "bytes_accessed"})


def test_a_donor_by_the_layout_of_the_device() -> None:
    (kept,) = vt.compile_for(TILES, TPU).aliases
    assert (kept.kept, kept.output_index) == (True, ())
    (lost,) = vt.compile_for(TILES, GPU).aliases
    assert (lost.kept, lost.output_index) == (False, None)
    assert lost.reason == "no output is given the memory of the parameter: none that is left has as many bytes"


def test_what_is_refused(tmp_path: Path) -> None:
    type_ = "tensor<4xf32>"
    called = f"%0 = stablehlo.custom_call @mine(%a) : ({type_}) -> {type_}"
    program = f"func.func @main(%a: {type_}) -> {type_} {{ {called}\n return %0 : {type_} }}"
    with pytest.raises(
        vt.InvalidProgramError, match=r"libtpu==0\.0\.52@v5e does not compile .*Custom emitter for mine"
    ):
        vt.compile_for(program, TPU)
    with pytest.raises(vt.ReleaseEnvironmentError, match="is no compiler of accelerators"):
        vt.compile_for(program, "jaxlib==0.4.31")
    with pytest.raises(vt.UnknownTargetError, match="no TPU"):
        vt.compile_for(program, "libtpu==0.0.52@v99")
    weak = "%0 = stablehlo.compare EQ, %a, %a, WEAKORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    with pytest.raises(vt.VhloToolsError):
        vt.compile_for(f"func.func @main(%a: tensor<f32>) -> tensor<i1> {{ {weak} return %0 : tensor<i1> }}", OLD)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hlo = tmp_path / "step.pb"
    assert main(["compile", str(STEP), "--for", TPU, "--hlo", str(hlo), "--output-format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert schema_problems("compile", said) == []
    assert (said["ok"], said["release"], len(said["aliases"])) == (True, TPU, 25)
    assert said["aliases"][0] == {
        "parameter": 0,
        "parameter_index": [],
        "declared_output": [0],
        "output": [0],
        "kept": True,
        "reason": None,
    }
    assert vt.compile_for(STEP, TPU).memory == said["memory"]
    assert main(["inspect", str(hlo)]) == 0
    assert "HLO" in capsys.readouterr().out
    program = tmp_path / "tiles.mlir"
    program.write_text(TILES)
    assert main(["compile", str(program), "--for", GPU]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "aliases 0 of 1 kept" in out
    assert "parameter 0, donor: no output is given the memory of the parameter" in out
    assert main(["compile", str(program), "--for", "jaxlib==0.4.31"]) == 2
