"""Ops of the check dialect in the generic form: lines, comments and strings stay."""

from __future__ import annotations

import re

import pytest

from vhlo_tools.upstream.check_syntax import generic_checks, pretty_checks
from vhlo_tools.upstream.pipelines import MismatchError


@pytest.mark.parametrize(
    ("pretty", "generic"),
    [
        ("check.expect_eq %a, %b#1 : tensor<i64>", '"check.expect_eq"(%a, %b#1) {} : (tensor<i64>, tensor<i64>) -> ()'),
        (
            "check.expect_eq_const %a, dense<[1, 2]> : tensor<2xi64>",
            '"check.expect_eq_const"(%a) {value = dense<[1, 2]> : tensor<2xi64>} : (tensor<2xi64>) -> ()',
        ),
        (
            "check.expect_almost_eq %a, %b, tolerance = 1.0e-3 : tensor<!quant.uniform<i8:f32, 1.0>>",
            '"check.expect_almost_eq"(%a, %b) {tolerance = 1.0e-3 : f64} : '
            "(tensor<!quant.uniform<i8:f32, 1.0>>, tensor<!quant.uniform<i8:f32, 1.0>>) -> ()",
        ),
        (
            'check.expect_almost_eq_const %a, dense<"0xFF"> : tensor<1xi8>, tolerance = 2.0 : f64 {a = "}"}',
            '"check.expect_almost_eq_const"(%a) {value = dense<"0xFF"> : tensor<1xi8>, tolerance = 2.0 : f64, a = "}"} '
            ": (tensor<1xi8>) -> ()",
        ),
        (
            "check.expect_close %a, %b, max_ulp_difference = 3, min_ulp_difference = 1 : tensor<f32>, tensor<f32>",
            '"check.expect_close"(%a, %b) {max_ulp_difference = 3 : ui64, min_ulp_difference = 1 : ui64} : '
            "(tensor<f32>, tensor<f32>) -> ()",
        ),
        (
            'check.expect_serialized_eq %a, probe_id = "x%", iter = 2 : tensor<f32>',
            '"check.expect_serialized_eq"(%a) {probe_id = "x%", iteration = 2 : ui32} : (tensor<f32>) -> ()',
        ),
    ],
)  # fmt: skip
def test_each_op_has_a_generic_form(pretty: str, generic: str) -> None:
    assert generic_checks(f"  {pretty}\n  return") == f"  {generic}\n  return"


def test_lines_stay_where_they_are() -> None:
    text = "check.expect_eq\n  %a, // why\n  %b\n : tensor<2xi64>\nreturn\n"
    changed = generic_checks(text)
    assert changed.startswith('"check.expect_eq"(%a, %b) {}')
    assert changed.split("\n")[4] == "return"


def test_an_alias_has_the_type_of_what_it_stands_for() -> None:
    text = "#c = dense<1> : tensor<i32>\ncheck.expect_eq_const %a, #c\n"
    wanted = '"check.expect_eq_const"(%a) {value = #c} : (tensor<i32>) -> ()\n'
    assert generic_checks(text).endswith(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "// check.expect_eq %a, %b : tensor<i32>\n",
        '"a.b"() {c = "check.expect_eq %a, %b : tensor<i32>"} : () -> ()\n',
        '"check.expect_eq"(%a, %b) : (tensor<i32>, tensor<i32>) -> ()\n',
        "module attributes {check.expect_eq = 1} {}\n",
        "stablehlo.custom_call @check.expect_eq(%a, %b) : (tensor<i32>, tensor<i32>) -> ()\n",
    ],
)
def test_what_is_no_op_in_the_pretty_form_stays(text: str) -> None:
    assert generic_checks(text) == text


@pytest.mark.parametrize(
    ("text", "expected", "at"),
    [
        ("check.expect_eq %a : tensor<i32>", "expected ','", ":"),
        ("check.expect_eq %a, %b, %c : tensor<i32>", "expected ':'", ", %c"),
        ("check.expect_eq_const %a, %b : tensor<i32>", "expected attribute value", "%b"),
        ("check.expect_eq_const %a, #b", "expected a definition of the attribute alias '#b'", "#b"),
        ("check.expect_almost_eq %a, %a, by = 1.0 : tensor<f32>", "expected 'tolerance'", "by"),
        ("check.expect_close %a, 3, max_ulp_difference = 1", "expected SSA operand", "3"),
        ("check.expect_serialized_eq %a, probe_id = x : tensor<f32>", "expected string", "x :"),
        ("check.expect_eq_const %a, dense<[1, 2 : tensor<i32>\n", "expected ']'", "\n"),
    ],
)
def test_what_is_not_in_the_pretty_form_is_an_error_where_it_is_not(text: str, expected: str, at: str) -> None:
    with pytest.raises(MismatchError, match=re.escape(expected)) as caught:
        generic_checks(text)
    assert caught.value.position in (text.index(at), text.index(at) + len(at))


def test_what_is_in_comments_closes_no_brackets() -> None:
    text = "check.expect_eq_const %a, dense<[1, // ]>\n 2]> : tensor<2xi64>"
    assert generic_checks(text).endswith(": (tensor<2xi64>) -> ()")


@pytest.mark.parametrize(
    "op",
    [
        "check.expect_eq %a, %b#1 : tensor<2xi64>",
        'check.expect_eq %a, %b {c = "check.expect_eq", d} : tensor<2x!quant.uniform<i8:f32, 1.0>>',
        "check.expect_eq_const %a, dense<[(1.0,2.0), (3.0,4.0)]> : tensor<2xcomplex<f32>>",
        "check.expect_eq_const %a, dense<> : tensor<0xi64> {c}",
        "check.expect_almost_eq %a, %b : tensor<f32>",
        "check.expect_almost_eq %a, %b, tolerance = 1.0e-03 {c} : tensor<f32>",
        "check.expect_almost_eq_const %a, dense<1.0> : tensor<f32>, tolerance = 0x7FF0000000000000",
        "check.expect_close %a, %b, max_ulp_difference = 3 : tensor<f32>, tensor<f32>",
        "check.expect_close %a, %b, max_ulp_difference = 3, min_ulp_difference = 1 : {c} tensor<f32>, tensor<f32>",
        'check.expect_serialized_eq %a, probe_id = "x : ui32" : tensor<f32>',
        'check.expect_serialized_eq %a, probe_id = "x", iter = 2 {c} : tensor<f32>',
    ],
)
def test_what_was_made_generic_is_printed_as_it_was(op: str) -> None:
    text = f"func.func @f() {{\n  {op} loc(#a)\n}}\n"
    assert pretty_checks(generic_checks(text)) == text


@pytest.mark.parametrize(
    ("generic", "pretty"),
    [
        (
            '"check.expect_close"(%a, %b) <{min_ulp_difference = 0 : ui64}> {c} : (tensor<f32>, tensor<f32>) -> ()',
            "check.expect_close %a, %b, max_ulp_difference = 1 : {c} tensor<f32>, tensor<f32>",
        ),
        (
            '"check.expect_almost_eq"(%a, %b) {tolerance = 1.000000e-04 : f64} : (tensor<f32>, tensor<f32>) -> ()',
            "check.expect_almost_eq %a, %b : tensor<f32>",
        ),
        (
            '"a.b"() {c = "\\"check.expect_eq\\"(%a)"} : () -> ()',
            '"a.b"() {c = "\\"check.expect_eq\\"(%a)"} : () -> ()',
        ),
    ],
)
def test_what_is_the_default_is_not_printed(generic: str, pretty: str) -> None:
    assert pretty_checks(generic) == pretty
