"""The inputs of consecutive rounds: what one round does not show, another does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.verification.rounds import DEFAULT_ROUNDS, drawings

#: Differs only for inputs near zero: a sum of squares that is larger is cut off.
CUT = """func.func @main(%a: tensor<8xf32>) -> tensor<f32> {{
  %0 = stablehlo.multiply %a, %a : tensor<8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %most = stablehlo.constant dense<0.25> : tensor<f32>
  %c = stablehlo.constant dense<{factor}> : tensor<f32>
  %2 = stablehlo.multiply %1, %c : tensor<f32>
  %3 = stablehlo.minimum %2, %most : tensor<f32>
  return %3 : tensor<f32>
}}
"""
#: Differs only for elements that are zero.
ZERO = """func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {{
  %z = stablehlo.constant dense<0.0> : tensor<64xf32>
  %c = stablehlo.constant dense<{factor}> : tensor<64xf32>
  %0 = stablehlo.compare EQ, %a, %z : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %1 = stablehlo.select %0, %c, %a : tensor<64xi1>, tensor<64xf32>
  return %1 : tensor<64xf32>
}}
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [CUT, ZERO])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_constant_changed_by_one_per_cent_is_found(text: str, seed: int) -> None:
    one, other = text.format(factor=1.0), text.format(factor=1.01)
    assert vt.verify(one, other, seed=seed, rounds=1).passed
    report = vt.verify(one, other, seed=seed)
    assert not report.passed
    # It ends with the round that showed it.
    assert [each.passed for each in report.rounds] == [True] * (len(report.rounds) - 1) + [False]
    assert vt.verify(one, one, seed=seed).passed


def test_rounds_have_other_seeds_and_scales_and_edges_among_them() -> None:
    first, *others = drawings(vt.Drawing(seed=5), 8)
    assert first == ("drawn from seed 5", vt.Drawing(seed=5))
    assert [each.seed for _, each in others] == list(range(6, 13))
    assert any(each.edges for _, each in others)
    assert {each.scale for _, each in others} >= {0.0625, 16.0}
    assert all(each.edges for _, each in drawings(vt.Drawing(edges=True), 4))


def test_without_a_number_as_many_as_there_is_time_for() -> None:
    assert len(list(drawings(vt.Drawing(), seconds=60))) == DEFAULT_ROUNDS
    assert len(list(drawings(vt.Drawing(), seconds=0))) == 2
    assert len(list(drawings(vt.Drawing(), 3, seconds=0))) == 3


def test_scales_of_floats() -> None:
    text = "func.func @main(%a: tensor<2000xf32>) -> tensor<2000xf32> { return %a : tensor<2000xf32> }"
    (array,) = vt.draw_inputs(text, drawing=vt.Drawing(scale=0.01))
    assert 0.008 < float(np.std(array)) < 0.012
    logarithm = text.replace("{ return", "{ %0 = stablehlo.log %a : tensor<2000xf32> return")
    (array,) = vt.draw_inputs(logarithm, drawing=vt.Drawing(scale=0.01))
    assert 0 < float(array.min()) < float(array.max()) < 0.1


def test_a_report_of_many_rounds_shows_what_is_new(tmp_path: Path) -> None:
    report = vt.verify(CUT.format(factor=1.0), CUT.format(factor=1.0), rounds=6)
    assert str(report).count("inputs: ") == 1
    assert str(report).endswith("rounds: 6, all passed")
    failed = vt.verify(CUT.format(factor=1.0), CUT.format(factor=1.01), rounds=6)
    assert f"rounds: 6, {sum(not each.passed for each in failed.rounds)} failed" in str(failed)
