"""Programs after reports, on which conversion ended the process, or wrote what no library reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import ROOT

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.cli.main import main

pytestmark = pytest.mark.every_python

REPORTS = ROOT / "tests" / "programs" / "reports"
OTHER_TYPE = REPORTS / "returns_another_type.mlir"
#: What MLIR's verifier lets pass, and what is wrong with it.
WRONG_ARTIFACTS = (
    ("func.func @f() -> tensor<f32> { stablehlo.return }", "returns nothing, but @f is declared to return tensor<f32>"),
    (
        "func.func @f(%a: tensor<f32>, %b: tensor<i32>) -> (tensor<i32>, tensor<f32>) {"
        " stablehlo.return %a, %b : tensor<f32>, tensor<i32> }",
        "returns tensor<f32>, tensor<i32>, but @f is declared to return tensor<i32>, tensor<f32>",
    ),
)
SAID = "3:3: stablehlo.return returns tensor<4x6xf64>, but @main is declared to return tensor<4x5xf64>"


@pytest.mark.parametrize("name", ["call_of_two_results_in_manual_computation", "qr_in_shard_map", "while_in_shard_map"])
def test_shardings_around_ops_of_several_results_are_kept(name: str, tmp_path: Path) -> None:
    program = REPORTS / f"{name}.mlir"
    # What was wrong depended on what the memory of a released module was used for.
    for _ in range(20):
        artifact = vt.serialize(program)
    assert [each.message for each in artifact.findings] == [
        'shardings over mesh<["x"=2]> remain as ops of Shardy (sdy), which readers since 1.11.0 know'
    ]
    vt.deserialize(artifact)
    assert {each.level for each in vt.check(program, "12w")} <= {"note"}
    assert main(["report", str(program), "-o", str(tmp_path / "out.html")]) == 0


def test_a_function_that_returns_another_type_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provider = get_provider()
    for program in (OTHER_TYPE, provider.ir.Module.parse(OTHER_TYPE.read_text(), provider.new_context())):
        with pytest.raises(vt.InvalidProgramError, match=SAID):
            vt.serialize(program)
    for command in (["serialize", "-o", str(tmp_path / "out.mlirbc")], ["run", "-i", "0", "-i", "0"]):
        assert main([command[0], str(OTHER_TYPE), *command[1:]]) == 2
        assert SAID in capsys.readouterr().err
    assert not (tmp_path / "out.mlirbc").exists()
    assert main(["check", str(OTHER_TYPE), "--target", "12w"]) == 2


def test_what_functions_return_is_compared_in_number_and_order() -> None:
    text = "func.func @f(%a: tensor<f32>, %b: tensor<i32>) -> {} {{ stablehlo.return {} }}"
    right = [
        ("tensor<f32>", "%a : tensor<f32>"),
        ("(tensor<f32>, tensor<i32>)", "%a, %b : tensor<f32>, tensor<i32>"),
        ("()", ""),
    ]
    wrong = [
        ("tensor<f32>", "", "returns nothing, but @f is declared to return tensor<f32>"),
        ("()", "%a : tensor<f32>", "returns tensor<f32>, but @f is declared to return nothing"),
        ("(tensor<i32>, tensor<f32>)", "%a, %b : tensor<f32>, tensor<i32>", "to return tensor<i32>, tensor<f32>"),
    ]
    for declared, returned in right:
        vt.deserialize(vt.serialize(text.format(declared, returned)))
    for declared, returned, said in wrong:
        with pytest.raises(vt.InvalidProgramError, match=said):
            vt.serialize(text.format(declared, returned))


def test_an_artifact_that_returns_another_type_is_found_on_its_bytes() -> None:
    provider = get_provider()
    for text, said in WRONG_ARTIFACTS:
        module = provider.ir.Module.parse(text, provider.new_context())
        data: bytes = provider.stablehlo.serialize_portable_artifact(module, "1.0.0", False)
        with pytest.raises(vt.MalformedArtifactError):
            vt.deserialize(data)
        errors = [each for each in vt.check(data, "12w") if each.level == "error"]
        assert [(each.feature, each.function) for each in errors] == [("returns_other_types", "f")]
        assert said in errors[0].message
        with pytest.raises(vt.UnsupportedFeatureError, match="no library reads it"):
            vt.require(data, reader="1.5.0")


def test_inspect_says_that_nobody_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provider = get_provider()
    module = provider.ir.Module.parse(OTHER_TYPE.read_text(), provider.new_context())
    file = tmp_path / "other.mlirbc"
    file.write_bytes(provider.stablehlo.serialize_portable_artifact(module, "1.0.0", False))
    assert main(["inspect", str(file)]) == 0
    assert "read by  nobody: func.return returns tensor<4x6xf64>, but @main is declared" in capsys.readouterr().out


def test_a_module_is_verified_before_it_is_written() -> None:
    provider = get_provider()
    module = provider.parse(provider.new_context(), "func.func @a() { return } func.func @b() { return }")
    first, second = module.body.operations
    second.attributes["sym_name"] = first.attributes["sym_name"]
    with pytest.raises(vt.InvalidProgramError, match="redefinition of symbol named 'a'"):
        vt.serialize(module)
