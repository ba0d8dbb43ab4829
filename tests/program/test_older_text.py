"""A refusal of text that is merely old names the release of its time that reads it."""

from __future__ import annotations

import pytest

import vhlo_tools as vt

SLICE = '"stablehlo.slice"(%a) {start_indices = dense<0> : tensor<1xi64>, limit_indices = dense<2> : tensor<1xi64>, '
SLICE += "strides = dense<1> : tensor<1xi64>} : (tensor<4xf32>) -> tensor<2xf32>"
#: An op of the first group, with another attribute before its list, and as the release after the last one printed it.
TRANSPOSED = '"stablehlo.transpose"(%t) {mhlo.sharding = "{replicated}", permutation = LIST} : (tensor<2x3xf32>) '
TRANSPOSED += "-> tensor<3x2xf32>"
TENSORS = TRANSPOSED.replace("LIST", "dense<[1, 0]> : tensor<2xi64>")
ARRAYS = TRANSPOSED.replace("LIST", "array<i64: 1, 0>")
GATHERED = '"stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<0> : tensor<1xi64>} '
GATHERED += ": (tensor<4xf32>) -> tensor<4x2xf32>"


@pytest.mark.parametrize(
    ("ops", "release"),
    [
        ([SLICE], "0.4.21"),
        ([GATHERED], "0.4.23"),
        ([GATHERED, SLICE], "0.4.21"),
        ([TENSORS], "0.4.21"),
        ([GATHERED, TENSORS], "0.4.21"),
        ([ARRAYS, GATHERED], "0.4.23"),
        ([GATHERED, ARRAYS], "0.4.23"),
    ],
)
def test_lists_that_were_tensors(ops: list[str], release: str) -> None:
    body = "\n".join(f"  %{number} = {op}" for number, op in enumerate(ops))
    text = f"func.func @main(%a: tensor<4xf32>, %t: tensor<2x3xf32>) {{\n{body}\n  return\n}}\n"
    with pytest.raises(vt.InvalidProgramError, match=f"it is older text: --read-with jaxlib=={release} "):
        vt.serialize(text)


def test_functions_without_a_dialect() -> None:
    with pytest.raises(vt.InvalidProgramError, match="it is text of 2022 or older: no release that reads it writes"):
        vt.serialize("func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")


def test_text_that_is_wrong_is_not_called_old() -> None:
    wrong = '"stablehlo.slice"(%a) {start_indices = array<i64: 0>} : (tensor<4xf32>) -> tensor<2xf32>'
    with pytest.raises(vt.InvalidProgramError) as raised:
        vt.serialize(f"func.func @main(%a: tensor<4xf32>) {{ %0 = {wrong} return }}")
    assert "older text" not in str(raised.value)
