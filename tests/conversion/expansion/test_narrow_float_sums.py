"""Convolutions and scatters of narrow floats, held in wider ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.expansions import check_same, expanded

FEATURE = "f8E4M3_f8E3M4"
_BOTH = pytest.mark.parametrize("element", ["f8E4M3", "f8E3M4"])


def _quarters(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Return numbers of both types, whose sums of products are exact in f32."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32) / 4


@_BOTH
@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_with_wider_results(element: str, groups: int) -> None:
    program = f"""func.func @main(%a: tensor<2x12x3xf32>, %b: tensor<3x{3 // groups}x6xf32>) -> tensor<2x12x6xf32> {{
      %0 = stablehlo.convert %a : (tensor<2x12x3xf32>) -> tensor<2x12x3x{element}>
      %1 = stablehlo.convert %b : (tensor<3x{3 // groups}x6xf32>) -> tensor<3x{3 // groups}x6x{element}>
      %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
        : (tensor<2x12x3x{element}>, tensor<3x{3 // groups}x6x{element}>) -> tensor<2x12x6xf32>
      return %2 : tensor<2x12x6xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    check_same(program, artifact, [[_quarters((2, 12, 3), 1), _quarters((3, 3 // groups, 6), 2)]])


@pytest.mark.sample(2)
@_BOTH
@pytest.mark.parametrize("op", ["add", "maximum", "multiply"])
def test_scatters(element: str, op: str) -> None:
    """With two updates at one place, and one that is out of bounds."""
    program = f"""func.func @main(%a: tensor<6x4xf32>, %i: tensor<5x1xi32>, %u: tensor<5x4xf32>) -> tensor<6x4xf32> {{
      %0 = stablehlo.convert %a : (tensor<6x4xf32>) -> tensor<6x4x{element}>
      %1 = stablehlo.convert %u : (tensor<5x4xf32>) -> tensor<5x4x{element}>
      %2 = "stablehlo.scatter"(%0, %i, %1) ({{ ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
        %s = stablehlo.{op} %x, %y : tensor<{element}>
        stablehlo.return %s : tensor<{element}> }}) {{
        scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
      }} : (tensor<6x4x{element}>, tensor<5x1xi32>, tensor<5x4x{element}>) -> tensor<6x4x{element}>
      %3 = stablehlo.convert %2 : (tensor<6x4x{element}>) -> tensor<6x4xf32>
      return %3 : tensor<6x4xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    places = np.array([[0], [2], [2], [5], [7]], np.int32)
    check_same(program, artifact, [[_quarters((6, 4), 3), places, _quarters((5, 4), 4)]])
