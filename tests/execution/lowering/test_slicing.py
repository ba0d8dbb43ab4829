"""Slices between bounds that are values, and scatters, which leave their inputs as they are."""

from __future__ import annotations

import numpy as np
import pytest

import vhlo_tools as vt

pytestmark = pytest.mark.every_python


def test_a_slice_begins_where_its_bounds_say() -> None:
    text = """
      func.func @main(%a: tensor<4x3xi32>, %start: tensor<2xi64>, %limit: tensor<2xi64>) -> tensor<2x1xi32> {
        %one = stablehlo.constant dense<1> : tensor<2xi64>
        %0 = stablehlo.real_dynamic_slice %a, %start, %limit, %one
          : (tensor<4x3xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x1xi32>
        return %0 : tensor<2x1xi32>
      }"""
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    (found,) = vt.run(text, [array, np.array([1, 2]), np.array([3, 3])], engine="reference")
    np.testing.assert_array_equal(found, array[1:3, 2:3])
    bounds = [np.array([0, 2]), np.array([4, 3])]
    (found,) = vt.run(text.replace("dense<1>", "dense<2>"), [array, *bounds], engine="reference")
    np.testing.assert_array_equal(found, array[0:4:2, 2:3:2])


@pytest.mark.parametrize("strides", [(1, 1), (3, 2), (2, 1)])
def test_strides_may_be_values_too(strides: tuple[int, int]) -> None:
    array = np.arange(35, dtype=np.float32).reshape(7, 5)
    wanted = array[1 : 7 : strides[0], 0 : 4 : strides[1]]
    result = f"tensor<{wanted.shape[0]}x{wanted.shape[1]}xf32>"
    text = f"""
      func.func @main(%a: tensor<7x5xf32>, %b: tensor<2xi32>, %c: tensor<2xi32>, %d: tensor<2xi32>) -> {result} {{
        %0 = stablehlo.real_dynamic_slice %a, %b, %c, %d
          : (tensor<7x5xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {result}
        return %0 : {result}
      }}"""
    (found,) = vt.run(text, [array, *np.array([(1, 0), (7, 4), strides], np.int32)], engine="reference")
    np.testing.assert_array_equal(found, wanted)


def test_a_scatter_leaves_its_inputs_as_they_are() -> None:
    text = """
      func.func @main() -> (tensor<3xi64>, tensor<3xi64>) {
        %input = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
        %index = stablehlo.constant dense<[[1]]> : tensor<1x1xi64>
        %update = stablehlo.constant dense<[10]> : tensor<1xi64>
        %result = "stablehlo.scatter"(%input, %index, %update) ({
          ^bb0(%x: tensor<i64>, %y: tensor<i64>):
            %0 = stablehlo.add %x, %y : tensor<i64>
            stablehlo.return %0 : tensor<i64>
        }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
          : (tensor<3xi64>, tensor<1x1xi64>, tensor<1xi64>) -> tensor<3xi64>
        return %input, %result : tensor<3xi64>, tensor<3xi64>
      }"""
    before, after = vt.run(text, [], engine="reference")
    assert (before.tolist(), after.tolist()) == ([1, 2, 3], [1, 12, 3])
