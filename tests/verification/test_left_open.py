"""Results that the specification leaves open, for the inputs at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.verification.left_open import open_outputs

F = "tensor<4xf32>"


def program(arguments: str, body: str, result: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def reduction(op: str, initial: float) -> str:
    body = f"""%c = stablehlo.constant dense<{initial}> : tensor<f32>
    %r = stablehlo.reduce(%a init: %c) applies stablehlo.{op} across dimensions = [0] :
      ({F}, tensor<f32>) -> tensor<f32>"""
    return program(f"%a: {F}", body, "tensor<f32>")


def sort(compared: str, stable: str) -> str:
    body = f"""%i = stablehlo.iota dim = 0 : {F}
    %s:2 = "stablehlo.sort"(%a, %i) ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %m: tensor<f32>, %n: tensor<f32>):
      {compared}
      stablehlo.return %l : tensor<i1>
    }}) {{dimension = 0 : i64, is_stable = {stable}}} : ({F}, {F}) -> ({F}, {F})
    %r = stablehlo.negate %s#1 : {F}"""
    return program(f"%a: {F}", body, F)


LESS = "%l = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>"
OTHER = f"%p = stablehlo.abs %x : tensor<f32>\n{LESS.replace('%x, %y', '%p, %y')}"


def scatter(body: str, attributes: str, window: int = 1) -> str:
    updates = f"tensor<2x{window}xf32>"
    text = f"""%r = "stablehlo.scatter"(%a, %i, %u) ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      {body}
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>{attributes}}} : ({F}, tensor<2x1xi32>, {updates}) -> {F}"""
    return program(f"%a: {F}, %i: tensor<2x1xi32>, %u: {updates}", text, F)


SET, ADD = (
    "stablehlo.return %y : tensor<f32>",
    "%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>",
)
UNIQUE, SORTED = ", unique_indices = true", ", indices_are_sorted = true"


def elementwise(op: str, kind: str, result: str | None = None) -> str:
    types = f"({kind}) -> {result}" if result else kind
    operands = "%a" if result else "%a, %b"
    arguments = f"%a: {kind}" if result else f"%a: {kind}, %b: {kind}"
    return program(arguments, f"%r = stablehlo.{op} {operands} : {types}", result or kind)


ONE: Any = [[1.0, 2.0, 3.0, 4.0]]
ZEROS: Any = [0.0] * 4
CASES: dict[str, tuple[str, list[Any], str | None]] = {
    "sum from zero": (reduction("add", 0.0), ONE, None),
    "sum from one": (reduction("add", 1.0), ONE, "1.0 is not neutral for add"),
    "product from one": (reduction("multiply", 1.0), ONE, None),
    "product from two": (reduction("multiply", 2.0), ONE, "not neutral for multiply"),
    "greatest from two": (reduction("maximum", 2.0), ONE, None),
    "sort of distinct keys": (sort(LESS, "false"), ONE, None),
    "sort of equal keys": (sort(LESS, "false"), [[1.0, 2.0, 1.0, 4.0]], "some of its keys are equal"),
    "stable sort of equal keys": (sort(LESS, "true"), [[1.0, 2.0, 1.0, 4.0]], None),
    "sort by another order": (sort(OTHER, "false"), ONE, "may compare as equal"),
    "updates of two elements": (scatter(SET, ""), [ZEROS, [[0], [2]], [[1.0], [2.0]]], None),
    "updates of one element": (scatter(SET, ""), [ZEROS, [[2], [2]], [[1.0], [2.0]]], "their order matters"),
    "sums of one element": (scatter(ADD, ""), [ZEROS, [[2], [2]], [[1.0], [2.0]]], None),
    "unique sums": (scatter(ADD, UNIQUE), [ZEROS, [[1], [2]], [[1.0], [2.0]]], None),
    "sums that are not unique": (scatter(ADD, UNIQUE), [ZEROS, [[2], [2]], [[1.0], [2.0]]], "unique_indices says"),
    "windows apart": (scatter(SET, "", 2), [ZEROS, [[0], [2]], [[1.0, 2.0], [3.0, 4.0]]], None),
    "windows that overlap": (scatter(SET, "", 2), [ZEROS, [[0], [1]], [[1.0, 2.0], [3.0, 4.0]]], "of one element"),
    "sorted indices": (scatter(ADD, SORTED), [ZEROS, [[0], [2]], [[1.0], [2.0]]], None),
    "indices that are not sorted": (scatter(ADD, SORTED), [ZEROS, [[2], [0]], [[1.0], [2.0]]], "are not sorted"),
    "division": (elementwise("divide", "tensor<2xi32>"), [[1, 2], [3, 1]], None),
    "division by zero": (elementwise("divide", "tensor<2xi32>"), [[1, 2], [3, 0]], "divided by zero"),
    "remainder by zero": (elementwise("remainder", "tensor<2xui8>"), [[1, 2], [3, 0]], "divided by zero"),
    "division of floats by zero": (elementwise("divide", "tensor<2xf32>"), [[1, 2], [3, 0]], None),
    "conversion": (elementwise("convert", F, "tensor<4xi8>"), [[1.0, -128.9, 127.9, 0.0]], None),
    "conversion out of range": (elementwise("convert", F, "tensor<4xi8>"), [[1.0, 128.0, 0.0, 0.0]], "range of i8"),
    "conversion of a negative number": (elementwise("convert", F, "tensor<4xui8>"), [[-1.0] * 4], "range of ui8"),
    "conversion of no number": (elementwise("convert", F, "tensor<4xi32>"), [[np.nan] * 4], "range of i32"),
    "conversion to a boolean": (elementwise("convert", F, "tensor<4xi1>"), [[7.0] * 4], None),
}


@pytest.mark.parametrize("name", CASES)
def test_an_op_is_named_if_these_inputs_leave_its_result_open(name: str) -> None:
    text, inputs, reason = CASES[name]
    (found,) = open_outputs(vt.load_executable(text, engine="reference"), inputs)
    assert (found is None) == (reason is None), found
    assert reason is None or reason in str(found)


def test_only_results_that_depend_on_the_op_are_open() -> None:
    text = f"""func.func @main(%a: {F}, %n: tensor<i32>) -> ({F}, {F}, {F}) {{
      %0 = stablehlo.negate %a : {F}
      %1 = call @inner(%0) : ({F}) -> {F}
      %i:2 = stablehlo.while(%k = %n, %v = %1) : tensor<i32>, {F} cond {{
        %z = stablehlo.constant dense<0> : tensor<i32>
        %more = stablehlo.compare GT, %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %less = stablehlo.subtract %k, %one : tensor<i32>
        stablehlo.return %less, %v : tensor<i32>, {F}
      }}
      return %0, %1, %i#1 : {F}, {F}, {F}
    }}
    func.func private @inner(%a: {F}) -> {F} {{
      %c = stablehlo.constant dense<2.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0] :
        ({F}, tensor<f32>) -> tensor<f32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> {F}
      return %1 : {F}
    }}"""
    found = open_outputs(vt.load_executable(text, engine="reference"), [*ONE, 2])
    assert [each and each.op for each in found] == [None, "stablehlo.reduce", "stablehlo.reduce"]


def test_nothing_is_open_in_a_program_that_the_interpreter_cannot_run() -> None:
    text = program(f"%a: {F}", f"%r = stablehlo.custom_call @of_nobody(%a) : ({F}) -> {F}", F)
    body = (
        reduction("add", 1.0)
        .replace("reduce(%a", "reduce(%b")
        .replace("%c =", f"%b = stablehlo.custom_call @of_nobody(%a) : ({F}) -> {F}\n%c =", 1)
    )
    for each in (text, body):
        assert open_outputs(vt.load_executable(each, engine="reference"), ONE) == [None]
