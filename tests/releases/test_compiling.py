"""Programs compiled for accelerators that are not there: aliases, memory, costs and the optimized program."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.json_records import schema_problems

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.files import find_hlo_module, view
from vhlo_tools.gate import bytes_of

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
    assert compiled.aliases is not None
    assert compiled.hlo is not None
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


def test_a_plugin_that_does_not_give_its_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saxpy, silent = EXAMPLES / "saxpy.mlir", "jax-cuda12-pjrt==0.6.2@h100"
    compiled = vt.compile_for(saxpy, silent)
    assert (compiled.aliases, compiled.hlo, compiled.lost) == (None, None, ())
    assert dict(compiled.facts())["aliases"] == "the compiler does not say"
    assert main(["compile", str(saxpy), "--for", silent, "--output-format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["aliases"] is None
    assert schema_problems("compile", said) == []
    assert main(["compile", str(saxpy), "--for", silent, "--hlo", str(tmp_path / "x.pb")]) == 2
    assert not (tmp_path / "x.pb").exists()


def test_a_donor_by_the_layout_of_the_device() -> None:
    (kept,) = vt.compile_for(TILES, TPU).aliases or ()
    assert (kept.kept, kept.output_index) == (True, ())
    (lost,) = vt.compile_for(TILES, GPU).aliases or ()
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
    assert "lost: the donor parameter 0: no output is given the memory of the parameter" in out
    assert main(["compile", str(program), "--for", "jaxlib==0.4.31"]) == 2


def test_check_says_what_the_compiler_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "tiles.mlir"
    program.write_text(TILES)
    for release, found in ((TPU, []), (GPU, ["alias_dropped_by_compiler"])):
        assert main(["check", str(program), "--confirm-with", release, "--output-format", "json"]) == 0
        (checked,) = json.loads(capsys.readouterr().out)["files"]
        seen = checked["findings"]
        assert [each["feature"] for each in seen if each["feature"] != "alias_unusable_donor"] == found
    (dropped,) = (each for each in seen if each["feature"] == "alias_dropped_by_compiler")
    assert dropped["message"].startswith(f"{GPU} does not keep the donor parameter 0: no output is given")
    assert main(["check", str(program), "--confirm-with", GPU, "--deny", "alias_dropped_by_compiler"]) == 1


def test_check_limits_the_memory_of_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = vt.compile_for(STEP, TPU).device_memory
    assert memory is not None
    command = ["check", str(STEP), "--confirm-with", TPU, "--max-device-memory"]
    assert main([*command, f"{memory}B"]) == 0
    capsys.readouterr()
    assert main([*command, f"{memory - 1}B"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"error: device_memory {TPU} needs {memory:,} bytes on each device for it, of at most {memory - 1:,}" in said
    (tmp_path / "vhlo-tools.toml").write_text(f'confirm-with = "{TPU}"\nmax-device-memory = "1.5KiB"\n')
    assert main(["check", str(STEP), "--config", str(tmp_path / "vhlo-tools.toml")]) == 1
    assert "of at most 1,536" in " ".join(capsys.readouterr().out.split())
    for given, said in (
        ([*command, "much"], "expected a size such as 16GiB, found 'much'"),
        (["check", str(STEP), "--target", "1.0.0", "--max-device-memory", "1GB"], "is for a device"),
        ([*command[:-2], OLD + "@v5e", "--max-device-memory", "1GB"], "does not say how much memory"),
    ):
        assert main(given) in (1, 2)
        out = capsys.readouterr()
        assert said in " ".join((out.out + out.err).split())


@pytest.mark.parametrize(
    "size", [("16GiB", 16 << 30), ("1.5 kB", None), ("1.5 KB", 1500), ("7B", 7), ("2TB", 2 * 10**12)]
)
def test_sizes(size: tuple[str, int | None]) -> None:
    text, number = size
    if number is None:
        with pytest.raises(vt.SettingsError, match="expected a size such as 16GiB"):
            bytes_of(text)
    else:
        assert bytes_of(text) == number


def test_a_page_shows_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, program = tmp_path / "page.html", tmp_path / "called.mlir"
    assert main(["report", str(STEP), "--for", TPU, "--for", GPU, "-o", str(page)]) == 0
    devices = devices_in(page.read_text())
    assert [each["release"] for each in devices] == [TPU, GPU]
    for each in devices:
        assert dict(each["lines"])["aliases"] == "25 of 25 kept"
    program.write_text(
        "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        "%0 = stablehlo.custom_call @mine(%a) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}"
    )
    assert "Custom emitter for mine not found" in json.dumps(devices_in(vt.report(program, compile_for=TPU).html))
    capsys.readouterr()
    assert main(["report", str(STEP), str(program), "--for", TPU, "-o", str(tmp_path / "two.html")]) == 2
    assert "one program can be compiled for a device" in capsys.readouterr().err


def devices_in(page: str) -> Any:
    (data,) = re.findall(r'id="data">([^<]*)<', page)
    return json.loads(gzip.decompress(base64.b64decode(data)))["devices"]
