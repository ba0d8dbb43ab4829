"""Programs evaluated: checks, probes, prints, and functions on several devices."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from support.opt_programs import opt, translate


def checked(check: str, kind: str = "tensor<2xf32>", values: str = "[1.0, 2.0]") -> str:
    return f"func.func @main() {{ %0 = stablehlo.constant dense<{values}> : {kind}\n{check}\nreturn }}"


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            "check.expect_eq_const %0, dense<[1.0, 3.0]> : tensor<2xf32>",
            "<stdin>:2:1: error: check.expect_eq_const failed: Element values don't match: 2.000000e+00 (actual) vs "
            "3.000000e+00 (expected) at index [1]",
        ),
        (
            "check.expect_almost_eq_const %0, dense<[1.0, 2.01]> : tensor<2xf32>, tolerance = 0.001",
            "Element values don't match with tolerance 0.001000",
        ),
        (
            "%1 = stablehlo.constant dense<[1.0, 2.0000005]> : tensor<2xf32>\n"
            "check.expect_close %0, %1, max_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>",
            "ULP difference=2\n",
        ),
        (
            "check.expect_close %0, %0, max_ulp_difference = 9, min_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>",
            "ULP difference == 0 count is 2",
        ),
        ('check.expect_serialized_eq %0, probe_id = "x" : tensor<2xf32>', "--probe-output-dir"),
    ],
)
def test_a_check_that_fails_is_an_error_at_its_place(check: str, said: str) -> None:
    ran = translate("--interpret", text=checked(check))
    assert ran.code == 1
    assert said in ran.error


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("check.expect_eq %0 : tensor<2xf32>", "2:20: error: expected ','"),
        ('"check.expect_eq"(%0) : (tensor<2xf32>) -> ()', "op expected 2 operands, but found 1"),
        ('"check.expect_eq_const"() : () -> ()', "op requires a single operand"),
        ('"check.expect_eq_const"(%0) : (tensor<2xf32>) -> ()', "op requires attribute 'value'"),
        ('"check.expect_eq_const"(%0) {value = 3 : i32} : (tensor<2xf32>) -> ()', "constant vector/tensor attribute"),
        (
            '"check.expect_eq_const"(%0) {value = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>} : (tensor<2xf32>) -> ()',
            "op failed to verify that all of {lhs, value} have same type",
        ),
        ('%1 = "check.expect_eq"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>', "op requires zero results"),
        (
            "%1 = stablehlo.constant dense<1> : tensor<2xi8>\ncheck.expect_almost_eq %1, %1 : tensor<2xi8>",
            "op operand #0 must be tensor of floating-point or complex-type values, but got 'tensor<2xi8>'",
        ),
        (
            "%1 = stablehlo.constant dense<1> : tensor<2xi8>\n"
            '"check.expect_eq"(%0, %1) : (tensor<2xf32>, tensor<2xi8>) -> ()',
            "op requires all operands to have the same type",
        ),
        (
            '"check.expect_almost_eq"(%0, %0) {tolerance = 1 : i32} : (tensor<2xf32>, tensor<2xf32>) -> ()',
            "op attribute 'tolerance' failed to satisfy constraint: 64-bit float attribute",
        ),
        ('"check.expect_serialized_eq"(%0) : (tensor<2xf32>) -> ()', "op requires attribute 'probe_id'"),
        ('"check.expect_nothing"(%0) : (tensor<2xf32>) -> ()', "unregistered operation 'check.expect_nothing'"),
    ],
)
def test_a_check_that_is_none_is_an_error_at_its_place_in_both_programs(check: str, said: str) -> None:
    for ran in (
        translate("--interpret", text=checked(check)),
        opt("--allow-unregistered-dialect", text=checked(check)),
    ):
        assert ran.code == 1
        assert ran.error.startswith("<stdin>:")
        assert said in ran.error
        assert "check.expect" in ran.error.split("\n")[1]


def test_a_check_that_fails_can_be_expected() -> None:
    check = "// expected-error@+1 {{2 (actual) vs 3 (expected)}}\ncheck.expect_eq_const %0, dense<3> : tensor<i8>"
    assert translate("--interpret", "--verify-diagnostics", text=checked(check, "tensor<i8>", "2")).code == 0


def test_what_is_no_number_equals_nothing() -> None:
    ran = translate("--interpret", text=checked("check.expect_eq %0, %0 : tensor<2xf32>", values="0x7FC00000"))
    assert "vs 0x7FC00000" in ran.error


@pytest.mark.parametrize(
    "kind", ["tensor<2xi4>", "tensor<2xui8>", "tensor<2xbf16>", "tensor<2xf8E5M2>", "tensor<2xi1>"]
)
def test_elements_of_all_kinds_are_compared(kind: str) -> None:
    one, other = ("[true, false]", "[true, true]") if "i1>" in kind else ("[1, 2]", "[1, 3]")
    if "f" in kind:
        one, other = one.replace(",", ".0,").replace("]", ".0]"), other.replace(",", ".0,").replace("]", ".0]")
    assert (
        translate("--interpret", text=checked(f"check.expect_eq_const %0, dense<{one}> : {kind}", kind, one)).code == 0
    )
    ran = translate("--interpret", text=checked(f"check.expect_eq_const %0, dense<{other}> : {kind}", kind, one))
    assert "at index [1]" in ran.error


def test_checks_within_loops_are_made_each_time() -> None:
    text = """
      func.func @main() {
        %0 = stablehlo.constant dense<0> : tensor<i32>
        %1 = stablehlo.while(%i = %0) : tensor<i32>
        cond {
          %3 = stablehlo.constant dense<3> : tensor<i32>
          %2 = stablehlo.compare LT, %i, %3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %2 : tensor<i1>
        } do {
          check.expect_eq_const %i, dense<0> : tensor<i32>
          %4 = stablehlo.constant dense<1> : tensor<i32>
          %5 = stablehlo.add %i, %4 : tensor<i32>
          stablehlo.return %5 : tensor<i32>
        }
        return
      }"""
    assert "1 (actual) vs 0 (expected)" in translate("--interpret", text=text).error


PARALLEL = """
  func.func @sum(%a: tensor<2xi64>) -> tensor<2xi64> {
    %0 = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<i64>, %y: tensor<i64>):
        %1 = stablehlo.add %x, %y : tensor<i64>
        stablehlo.return %1 : tensor<i64>
    }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>} : (tensor<2xi64>) -> tensor<2xi64>
    return %0 : tensor<2xi64>
  }
  func.func @main() {
    %a = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
    %r:8 = "interpreter.run_parallel"(%a, %a, %a, %a, %a, %a, %a, %a) {
      programs = [[@sum], [@sum], [@sum], [@sum], [@sum], [@sum], [@sum], [@sum]]
    } : (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>,
         tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) ->
        (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>,
         tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>)
    check.expect_eq_const %r#0, dense<[8, 16]> : tensor<2xi64>
    check.expect_eq_const %r#7, dense<[8, 16]> : tensor<2xi64>
    return
  }
"""


def test_eight_processes_run_on_any_number_of_cores() -> None:
    ran = translate("--interpret", text=PARALLEL)
    assert (ran.code, ran.error) == (0, "")
    assert "16 (actual) vs 17" in translate("--interpret", text=PARALLEL.replace("[8, 16]", "[8, 17]")).error


def test_processes_send_through_channels_and_are_fed() -> None:
    text = """
      func.func @send(%a: tensor<2xi64>, %t: !stablehlo.token) -> !stablehlo.token {
        %0 = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
          is_host_transfer = true} : (tensor<2xi64>, !stablehlo.token) -> !stablehlo.token
        %1 = "stablehlo.outfeed"(%a, %0) : (tensor<2xi64>, !stablehlo.token) -> !stablehlo.token
        return %1 : !stablehlo.token
      }
      func.func @recv(%t: !stablehlo.token) -> (tensor<2xi64>, tensor<2xi64>) {
        %0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>,
          is_host_transfer = true} : (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
        %1:2 = "stablehlo.infeed"(%0#1) : (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
        return %0#0, %1#0 : tensor<2xi64>, tensor<2xi64>
      }
      func.func @fed() -> tensor<2xi64> {
        %0 = stablehlo.constant dense<[7, 8]> : tensor<2xi64>
        return %0 : tensor<2xi64>
      }
      func.func @main() {
        %a = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
        %t = stablehlo.after_all : !stablehlo.token
        %r:3 = "interpreter.run_parallel"(%a, %t, %t) {infeed = [@fed], programs = [[@send], [@recv]]}
          : (tensor<2xi64>, !stablehlo.token, !stablehlo.token) -> (!stablehlo.token, tensor<2xi64>, tensor<2xi64>)
        check.expect_eq_const %r#1, dense<[1, 2]> : tensor<2xi64>
        check.expect_eq_const %r#2, dense<[7, 8]> : tensor<2xi64>
        return
      }"""
    ran = translate("--interpret", text=text)
    assert (ran.code, ran.error) == (0, "")
    starved = translate("--interpret", text=text.replace("infeed = [@fed], ", ""))
    assert "its source has no more values" in starved.error


def test_probes_are_kept_with_an_index(tmp_path: Path) -> None:
    text = """
      func.func @main() -> tensor<2xf32> {
        %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
        %1 = stablehlo.add %0, %0 : tensor<2xf32>
        return %1 : tensor<2xf32>
      }"""
    probed = opt("--interpreter-instrument-with-probe", text=text).text
    folder = tmp_path / "probes"
    ran = translate("--interpret", f"--probe-output-dir={folder}", text=probed)
    assert (ran.code, ran.error) == (0, "")
    (row,) = csv.reader((folder / "index.csv").read_text().splitlines())
    assert row == ["probe1", "tensor<2xf32>", str(folder / "probe1.npy")]
    np.testing.assert_array_equal(np.load(row[2]), np.array([2, 4], np.float32))
    again = probed.replace("return", 'check.expect_serialized_eq %1, probe_id = "probe1" : tensor<2xf32>\nreturn')
    assert translate("--interpret", f"--probe-output-dir={folder}", text=again).code == 0
    other = again.replace(
        'probe_id = "probe1" : tensor<2xf32>\nreturn', 'probe_id = "probe1", iter = 1 : tensor<2xf32>\nreturn'
    )
    assert "number 1 is expected" in translate("--interpret", f"--probe-output-dir={folder}", text=other).error


def test_values_are_printed_on_the_way() -> None:
    text = checked("interpreter.print %0 : tensor<2xf32>")
    assert translate("--interpret", text=text).text == ("%cst = tensor<2xf32> {\n  [1.000000e+00, 2.000000e+00]\n}\n")


def test_complex_numbers_are_printed_in_both_forms() -> None:
    text = (
        "func.func @f() -> tensor<2xcomplex<f32>> { %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : "
        "tensor<2xcomplex<f32>> return %0 : tensor<2xcomplex<f32>> }"
    )
    assert "[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]" in translate("--interpret", text=text).text
    dense = translate("--interpret", "--interpreter-print-dense", text=text).text
    assert dense == "dense<[(1.000000e+00,2.000000e+00), (3.000000e+00,4.000000e+00)]> : tensor<2xcomplex<f32>>\n"


def test_tokens_and_tuples_are_printed_with_their_types() -> None:
    kind = "tuple<tensor<2xi32>, tuple<tensor<f32>>>"
    text = f"""
      func.func @main() -> (!stablehlo.token, {kind}, tuple<>) {{
        %0 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
        %1 = stablehlo.constant dense<2.0> : tensor<f32>
        %2 = stablehlo.create_token : !stablehlo.token
        %3 = stablehlo.tuple %1 : tuple<tensor<f32>>
        %4 = stablehlo.tuple %0, %3 : {kind}
        %5 = "stablehlo.tuple"() : () -> tuple<>
        return %2, %4, %5 : !stablehlo.token, {kind}, tuple<>
      }}"""
    assert translate("--interpret", text=text).text == (
        f"!stablehlo.token\n{kind} (\ntensor<2xi32> {{\n  [0, 1]\n}},\ntuple<tensor<f32>> (\n"
        "tensor<f32> {2.000000e+00}\n)\n)\ntuple<> (\n)\n"
    )
    dense = translate("--interpret", "--interpreter-print-dense", text=text).text
    assert "(\ndense<[0, 1]> : tensor<2xi32>,\ntuple<tensor<f32>> (\ndense<2.000000e+00> : tensor<f32>\n)\n)" in dense


def test_what_ends_upstreams_interpreter_is_an_error() -> None:
    text = """
      func.func @main() -> tensor<i32> {
        %0 = stablehlo.custom_call @unheard_of() : () -> tensor<i32>
        return %0 : tensor<i32>
      }"""
    ran = translate("--interpret", text=text)
    assert ran.code == 1
    assert ran.error.startswith("<stdin>:3:14: error: the reference interpreter cannot run stablehlo.custom_call: ")
    assert "no handler for custom calls of unheard_of" in ran.error
    expected = text.replace(
        "%0 = stable", "// expected-error@+1 {{no handler for custom calls of unheard_of}}\n%0 = stable"
    )
    assert translate("--interpret", "--verify-diagnostics", text=expected).code == 0


def test_a_function_without_a_body_is_an_error() -> None:
    ran = translate("--interpret", text="func.func private @main() -> tensor<i32>")
    assert (ran.code, "the function is declared, but not defined" in ran.error) == (1, True)


def test_processes_run_in_a_program_whose_shapes_its_arguments_give() -> None:
    text = """
      func.func @twice(%a: tensor<2xi64>) -> tensor<2xi64> {
        %0 = stablehlo.add %a, %a : tensor<2xi64>
        return %0 : tensor<2xi64>
      }
      func.func @main(%a: tensor<?xi64>) -> tensor<2xi64> {
        %0 = stablehlo.reshape %a : (tensor<?xi64>) -> tensor<2xi64>
        %r:2 = "interpreter.run_parallel"(%0, %0) {programs = [[@twice], [@twice]]}
          : (tensor<2xi64>, tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
        return %r#1 : tensor<2xi64>
      }"""
    ran = translate("--interpret", "--args=[dense<[1, 2]> : tensor<2xi64>]", text=text)
    assert (ran.text, ran.error) == ("tensor<2xi64> {\n  [2, 4]\n}\n", "")


def test_quantized_values_are_the_integers_that_they_are_stored_as(tmp_path: Path) -> None:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.5:3>>"
    text = f"""
      func.func @twice(%a: {kind}) -> {kind} {{
        %0 = stablehlo.add %a, %a : {kind}
        return %0 : {kind}
      }}
      func.func @main(%a: {kind}) -> {kind} {{
        interpreter.print %a : {kind}
        %0 = "interpreter.run_parallel"(%a) {{programs = [[@twice]]}} : ({kind}) -> {kind}
        %1 = interpreter.probe %0, probe_id = "sum" : {kind}
        check.expect_serialized_eq %1, probe_id = "sum" : {kind}
        check.expect_eq %0, %1 : {kind}
        check.expect_eq %a, %1 : {kind}
        return %1 : {kind}
      }}"""
    arguments = ("--interpret", f"--probe-output-dir={tmp_path}", "--args=[dense<4> : tensor<2xi8>]")
    ran = translate(*arguments, text=text)
    assert ran.text == "%arg0 = tensor<2xi8> {\n  [4, 4]\n}\n"
    assert "4 (actual) vs 5 (expected) at index [0]" in ran.error
    ran = translate(*arguments, text=text.replace(f"check.expect_eq %a, %1 : {kind}", ""))
    assert ran.text.endswith("\ntensor<2xi8> {\n  [5, 5]\n}\n")
    assert (tmp_path / "index.csv").read_text() == f"sum,tensor<2xi8>,{tmp_path}/probe1.npy\n"


def test_a_folder_of_probes_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = translate("--interpret", f"--probe-output-dir={tmp_path / 'file'}", text=checked(""))
    assert ran.code == 1
    assert "Failed to remove existing instrumentation metadata file: " in ran.error


def test_a_probe_of_another_run_is_no_probe_of_this_one(tmp_path: Path) -> None:
    check = 'check.expect_serialized_eq %0, probe_id = "x" : tensor<2xf32>'
    (tmp_path / "index.csv").write_text(f"x,tensor<2xf32>,{tmp_path}/probe1.npy\n")
    ran = translate("--interpret", f"--probe-output-dir={tmp_path}", text=checked(check))
    assert "Failed to find serialized data for probe x" in ran.error


def test_of_several_functions_one_must_be_main() -> None:
    ran = translate("--interpret", text="func.func @f() { return }\nfunc.func @g() { return }")
    assert (ran.code, "module must have entry func with name main" in ran.error) == (1, True)
    assert translate("--interpret", text="").code == 0
