"""Expansions through the functions, the commands, the gate, and migrations."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import ml_dtypes
import numpy as np
import pytest
from support.corpus import ROOT
from support.corpus_files import read_corpus_file
from support.vhlo_process import kept_workers

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.cli.main import main
from vhlo_tools.conversion import expand_module, expansion
from vhlo_tools.integrations import jax as vhlo_jax
from vhlo_tools.spec import known_features

TAN = """func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = stablehlo.tan %a {a.b = "c"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
#: Blockers of four features, one of them with a relaxed expansion alone.
SEVERAL = """func.func @main(%a: tensor<4xf32>, %b: tensor<2x4xbf16>) -> (tensor<4xf32>, tensor<2x2xf32>) {
  %0 = stablehlo.tan %a : tensor<4xf32>
  %1 = stablehlo.exponential %0 {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode =
    #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  %2 = stablehlo.composite "my.double" %1 {decomposition = @double} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.dot_general %b, %b, contracting_dims = [1] x [1], algorithm = <lhs_precision_type = bf16,
    rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,
    num_primitive_operations = 1, allow_imprecise_accumulation = false>
    : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x2xf32>
  return %2, %3 : tensor<4xf32>, tensor<2x2xf32>
}
func.func private @double(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@dataclass
class Done:
    exit_code: int
    output: str


class Vhlo(Protocol):
    def __call__(self, *arguments: object) -> Done: ...


@pytest.fixture
def vhlo(capfd: pytest.CaptureFixture[str]) -> Vhlo:
    def run(*arguments: object) -> Done:
        capfd.readouterr()
        code = main([str(each) for each in arguments])
        out, err = capfd.readouterr()
        return Done(code, out if code == 0 else out + err)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "tan.mlir"
    path.write_text(TAN)
    return path


def test_without_the_option_it_is_refused_and_the_option_named(program: Path, vhlo: Vhlo) -> None:
    with pytest.raises(vt.DowngradeError, match=r"or rewrite it with --expand; or choose 1\.4\.0"):
        vt.serialize(program, "1.0.0")
    done = vhlo("serialize", program, "-o", program.with_suffix(".mlirbc"), "--target", "1.0.0")
    assert done.exit_code == 1
    assert "or rewrite it with --expand" in done.output


def test_serialize_and_retarget_are_the_same(program: Path) -> None:
    written = vt.serialize(program, "1.0.0", expand=True)
    assert vt.retarget(vt.serialize(program), "1.0.0", expand=True) == written
    (note,) = written.findings
    assert (note.feature, note.level, note.op) == ("tan", "note", "stablehlo.tan")
    assert "rewritten to stablehlo.sine, stablehlo.cosine, stablehlo.divide" in note.message
    assert note.location is not None
    assert note.location.line == 2
    assert [str(alias) for alias in written.aliases().aliases] == [
        str(alias) for alias in vt.serialize(program).aliases().aliases
    ]
    assert 'a.b = "c"' in str(vt.deserialize(written))


def test_commands(program: Path, vhlo: Vhlo) -> None:
    newest, old = program.with_name("newest.mlirbc"), program.with_name("old.mlirbc")
    assert vhlo("serialize", program, "-o", newest).exit_code == 0
    done = vhlo("retarget", newest, "-o", old, "--target", "1.0.0", "--expand")
    assert done.exit_code == 0
    assert bytes(vt.serialize(program, "1.0.0", expand=True)) == old.read_bytes()
    done = vhlo("retarget", newest, "-o", old, "--force", "--target", "1.0.0", "--expand", "--engine", "bytes")
    assert (done.exit_code, "need MLIR" in done.output) == (2, True)
    done = vhlo("serialize", program, "-o", old, "--allow-relaxed", "nothing")
    assert done.exit_code == 2
    assert "'nothing' has no relaxed expansion" in done.output


@pytest.mark.parametrize("kind", ["program", "artifact"])
def test_check_says_what_would_be_rewritten(kind: str, program: Path, vhlo: Vhlo) -> None:
    path = program
    if kind == "artifact":
        path = program.with_suffix(".mlirbc")
        vt.serialize(program).save(path)
    assert vhlo("check", path, "--target", "1.0.0").exit_code == 1
    done = vhlo("check", path, "--target", "1.0.0,jaxlib==0.4.26", "--expand", "--format", "json")
    assert done.exit_code == 0
    (finding,) = json.loads(done.output)["files"][0]["findings"]
    assert (finding["feature"], finding["level"]) == ("tan", "note")
    assert {each.level for each in vt.check(path, "1.0.0", expand=True)} == {"note"}


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("expand = true", 0),
        ('expand = ["tan"]', 0),
        ('expand = ["composite"]', 1),
        ('expand = true\nforbid-expansions = ["tan"]', 1),
        ('allow-relaxed = "all"', 1),
        ('expand = ["tans"]', 2),
        ('forbid-expansions = ["tans"]', 2),
    ],
)
def test_settings_of_the_gate(
    settings: str, code: int, program: Path, vhlo: Vhlo, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.with_name("vhlo-tools.toml").write_text(f'target = "1.0.0"\n{settings}\n')
    monkeypatch.chdir(program.parent)
    done = vhlo("check", program)
    assert done.exit_code == code, done.output


def test_migrate(program: Path, vhlo: Vhlo) -> None:
    store = program.parent / "store"
    store.mkdir()
    vt.serialize(program).save(store / "a.mlirbc")
    with kept_workers():
        assert vhlo("migrate", store, "--target", "1.0.0", "-j", "1").exit_code == 1
        assert vhlo("migrate", store, "--target", "1.0.0", "-j", "1", "--expand", "--verify").exit_code == 0
    assert (store / "a.mlirbc").read_bytes() == bytes(vt.serialize(program, "1.0.0", expand=True))


def test_several_blockers() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(SEVERAL, "0.9.0")
    assert {each.feature for each in refused.value.findings} == {
        "tan",
        "exponential_result_accuracy",
        "composite",
        "dot_algorithm",
    }
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(SEVERAL, "0.9.0", expand=True)
    (left,) = refused.value.findings
    assert left.feature == "exponential_result_accuracy"
    assert "--allow-relaxed exponential_result_accuracy, which gives up the requested accuracy" in str(left.remedy)
    assert "--expand;" not in str(left.remedy)
    artifact = vt.serialize(SEVERAL, "0.9.0", expand=True, allow_relaxed=["exponential_result_accuracy"])
    assert {each.feature for each in artifact.findings} == {
        each.feature for each in vt.check(SEVERAL, "0.9.0") if each.level == "error"
    }
    (note,) = [each for each in artifact.findings if each.feature == "exponential_result_accuracy"]
    assert "relaxed: gives up the requested accuracy" in note.message
    inputs = [np.arange(4, dtype=np.float32) / 4, np.ones((2, 4), ml_dtypes.bfloat16)]
    for found, expected in zip(vt.run(artifact, inputs), vt.run(SEVERAL, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.whole_data("names a version and what came with it")
def test_artifacts_newer_than_the_library(tmp_path: Path, vhlo: Vhlo, provider: Provider) -> None:
    path = tmp_path / "newer.mlirbc"
    path.write_bytes(read_corpus_file("jaxlib-0.11.1/feature_collective_reduce@1.19.0.mlirbc"))
    if provider.library.current >= vt.Version("1.19.0"):
        assert vhlo("check", path, "--target", "1.0.0", "--expand").exit_code == 0
        assert vt.retarget(path, "1.0.0", expand=True).version == vt.Version("1.0.0")
        return
    # Not of this library: what is said without expansions, and why there are none; no damaged file.
    for target in ("1.0.0", "1.18.0"):
        with pytest.raises(vt.DowngradeError) as refused:
            vt.retarget(path, target, expand=True)
        (finding,) = refused.value.findings
        assert finding.feature == "collective_reduce"
        assert "it cannot be expanded by jaxlib" in finding.message
        assert "install a release with 1.19.0 or later" in finding.message
        assert "--expand" not in str(finding.remedy)
        done = vhlo("check", path, "--target", target, "--expand")
        assert (done.exit_code, "collective_reduce needs StableHLO 1.19.0" in done.output) == (1, True)
    output = tmp_path / "out"
    assert vhlo("migrate", path, "--target", "1.0.0", "--expand", "-j", "1", "--output-dir", output).exit_code == 1


def test_nothing_in_the_way_changes_no_byte(program: Path) -> None:
    for target in ("1.4.0", "1.9.0", "current"):
        assert vt.serialize(program, target, expand=True, allow_relaxed="all") == vt.serialize(program, target)


def test_expand_gives_a_module(program: Path) -> None:
    expanded = vt.expand(program, "1.0.0")
    assert [each.feature for each in expanded.findings] == ["tan"]
    assert vt.serialize(expanded.module, "1.0.0") == vt.serialize(
        str(expanded.module), "1.0.0"
    ) or "stablehlo.tan" not in str(expanded.module)
    assert vt.expand(program, "1.4.0").findings == ()
    with pytest.raises(ValueError, match="'saxpy' has no exact expansion"):
        vt.expand(program, "1.0.0", expand=["saxpy"])


@pytest.mark.whole_data("an expansion is of a feature, which the data must have")
def test_patterns_of_every_expansion_are_there_and_no_others() -> None:
    declared = {f"{by.patterns}.{by.effect}".upper() for feature in known_features() for by in feature.expansions}
    found = set()
    for name in sorted(path.stem for path in Path(expansion.__path__[0]).glob("[a-z]*.py")):
        module = importlib.import_module(f"{expansion.__name__}.{name}")
        tables = [
            each.rpartition("_") for each in vars(module) if each[0] != "_" and each.endswith(("EXACT", "RELAXED"))
        ]
        found |= {".".join(filter(None, (name.upper(), owner, effect))) for owner, _, effect in tables}
    assert found == declared
    for feature in known_features():
        for by in feature.expansions:
            assert (by.effect == "relaxed") == (by.gives_up is not None)
            assert by.always == (by.limits is None)
            assert by.to < feature.introduced
    assert expand_module is not None


def test_jax_exports_are_expanded_and_stay_jax_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # What is around the artifact does not depend on it.
    (export,) = (ROOT / "examples").glob("symbolic_export.jax_export")
    path, moved = tmp_path / "tan.jax_export", tmp_path / "moved.jax_export"
    vhlo_jax.open_export(export).with_artifacts(lambda _: vt.serialize(TAN)).save(path)
    with pytest.raises(vt.DowngradeError, match="the op tan"):
        vhlo_jax.retarget(path, "1.0.0")
    with pytest.raises(vt.DowngradeError, match="the op tan"):
        vhlo_jax.retarget(path, "1.0.0", expand=["composite"])
    expanded = vhlo_jax.retarget(path, "1.0.0", expand=True)
    expected = vt.retarget(vt.serialize(TAN), "1.0.0", expand=True)
    assert [bytes(each) for each in expanded.artifacts] == [bytes(expected)]
    assert [each.feature for each in expanded.findings] == ["tan"]
    # What is old enough keeps its bytes.
    assert bytes(vhlo_jax.retarget(path, "1.4.0", expand=True)) == bytes(vhlo_jax.retarget(path, "1.4.0"))
    with pytest.raises(ValueError, match="'tan' has no relaxed expansion"):
        vhlo_jax.retarget(path, "1.0.0", allow_relaxed=["tan"])
    assert main(["retarget", str(path), "--target", "1.0.0", "--expand", "-o", str(moved)]) == 0
    assert "stablehlo.tan was rewritten to" in capsys.readouterr().err
    assert moved.read_bytes() == bytes(expanded)


@pytest.mark.whole_data("the page is of the whole data")
def test_the_page_is_what_the_data_says() -> None:
    script = ROOT / "scripts" / "write_expansions.py"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0
