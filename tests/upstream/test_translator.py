"""`vhlo translate`: what it takes, and where it writes what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.opt_programs import opt, translate

ADD = """func.func @main(%a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.add %a, %b : tensor<2xi32>
  return %0 : tensor<2xi32>
}
"""
VERSION = "// Reading portable artifact with StableHLO version: 1.5.0\n"


@pytest.fixture(scope="module")
def artifact() -> bytes:
    return translate("--serialize", "--target=1.5.0", text=ADD).raw


def test_the_version_goes_to_stdout_wherever_the_program_goes(artifact: bytes, tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    assert translate("--deserialize", "--print-stablehlo-version", text=artifact).text.startswith(VERSION + "module")
    ran = translate("--deserialize", "--print-stablehlo-version", "-o", str(path), text=artifact)
    assert (ran.code, ran.text) == (0, VERSION)
    assert path.read_text().startswith("module")


def test_the_version_is_said_of_what_is_cut_off_behind_it(artifact: bytes) -> None:
    ran = translate("--deserialize", "--print-stablehlo-version", text=artifact[:50])
    assert (ran.code, ran.text) == (1, VERSION)
    assert "failed to deserialize portable artifact" in ran.error
    for data in (b"", b"garbage", artifact[:20]):
        ran = translate("--deserialize", "--print-stablehlo-version", text=data)
        assert ran.text.startswith("// Failed parsing StableHLO version from portable artifact\n")


def test_what_mlir_says_in_no_utf_8_is_no_error_of_python(artifact: bytes) -> None:
    ran = translate("--deserialize", text=artifact.replace(b"StableHLO_v", b"Stable\x80LO_v")[:60])
    assert ran.code == 1
    assert "bytes that are no UTF-8" in ran.error
    assert "failed to deserialize portable artifact" in ran.error
    assert "Traceback" not in ran.error


def test_what_a_program_prints_goes_to_stdout_and_its_results_to_the_file(tmp_path: Path) -> None:
    text = ADD.replace("  return", "  interpreter.print %0 : tensor<2xi32>\n  return")
    arguments = "--args=[dense<1> : tensor<2xi32>, dense<2> : tensor<2xi32>]"
    ran = translate("--interpret", arguments, "-o", str(tmp_path / "out"), text=text)
    assert ran.text == "%0 = tensor<2xi32> {\n  [3, 3]\n}\n"
    assert (tmp_path / "out").read_text() == "tensor<2xi32> {\n  [3, 3]\n}\n"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ((), "No target version specified"),
        (("--target=abc",), "Invalid target version argument 'abc'"),
        (("--target", "1.0"), "Invalid target version argument '1.0'"),
        (("-target=minimum",), "Invalid target version argument 'minimum'"),
        (("-target", "0.8.0"), "target version 0.8.0 is less than minimum supported 0.9.0"),
        (("--target=99.0.0",), "target version 99.0.0 is greater than current version"),
    ],
)
def test_a_target_that_is_none_is_refused(target: tuple[str, ...], said: str) -> None:
    ran = translate("--serialize", *target, text=ADD)
    assert (ran.code, ran.raw) == (1, b"")
    assert said in ran.error


def test_other_dialects_are_serialized_if_so_asked() -> None:
    text = "func.func @f() -> tensor<i32> { %0 = arith.constant dense<1> : tensor<i32> return %0 : tensor<i32> }"
    refused = translate("--serialize", "--target=1.11.0", text=text)
    assert (refused.code, refused.raw) == (1, b"")
    mixed = translate("--serialize", "--target=1.11.0", "--allow-other-dialects", text=text)
    assert "arith.constant" in translate("--deserialize", text=mixed.raw).text


def test_translations_are_done_in_the_order_in_which_they_are_given(artifact: bytes) -> None:
    arguments = "--args=[dense<1> : tensor<2xi32>, dense<2> : tensor<2xi32>]"
    ran = translate("--deserialize", "--interpret", arguments, text=artifact)
    assert (ran.code, ran.text) == (0, "tensor<2xi32> {\n  [3, 3]\n}\n")
    assert translate("--serialize", "--deserialize", "--target=1.0.0", text=ADD).text.startswith("module")


def test_an_artifact_is_not_evaluated_without_a_word(artifact: bytes) -> None:
    ran = translate("--interpret", text=artifact)
    assert ran.code == 1
    assert "give --deserialize before --interpret" in ran.error


@pytest.mark.parametrize(
    "value",
    [
        "dense<[(1.0, -0.0), (0x7FF0000000000000, 2.0)]> : tensor<2xcomplex<f64>>",
        "dense<[0x7F80, -0.0]> : tensor<2xbf16>",
        "dense<[true, false]> : tensor<2xi1>",
        "dense<[-8, 7]> : tensor<2xi4>",
        "dense<[0, 18446744073709551615]> : tensor<2xui64>",
        "dense<[1.5, -0.5]> : tensor<2xf8E4M3FN>",
        "dense<> : tensor<0xf32>",
    ],
)
def test_arguments_of_every_type_come_out_as_they_went_in(value: str) -> None:
    kind = value.partition(" : ")[2]
    text = f"func.func @main(%i: tensor<i32>, %a: {kind}) -> {kind} {{ return %a : {kind} }}"
    ran = translate("--interpret", "--interpreter-print-dense", f"--args=[dense<1> : tensor<i32>, {value}]", text=text)
    assert ran.code == 0, ran.error
    as_printed = opt(text=f"func.func @f() {{ %0 = stablehlo.constant {value} return }}").text
    assert re.sub(r"\s", "", ran.text) in re.sub(r"\s", "", as_printed)


@pytest.mark.parametrize("kind", ["vector<2xi32>", "tensor<2xindex>", "tensor<2xi64>", "tensor<1xi32>"])
def test_an_argument_of_another_type_is_refused_by_its_number(kind: str) -> None:
    ran = translate("--interpret", f"--args=[dense<1> : tensor<2xi32>, dense<1> : {kind}]", text=ADD)
    assert ran.code == 1
    assert (
        f"<stdin>:1:1: error: invalid input argument type at index 1, input type was {kind} but entry function "
        "expected tensor<2xi32>" in ran.error
    )


def test_locations_have_the_name_of_the_file_in_bytecode_too(tmp_path: Path) -> None:
    path = tmp_path / "checks.mlir"
    path.write_text("func.func @f(%a: tensor<i32>) {\n  check.expect_eq %a, %a : tensor<i32>\n  return\n}\n")
    written = opt("--emit-bytecode", str(path)).raw
    printed = opt("--mlir-print-debuginfo", text=written).text
    assert set(re.findall(r'loc\("([^"]*)"', printed)) == {str(path)}
