"""Programs that are valid and seldom: both engines give the same, and what the specification says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.both_engines import function, tensor

import vhlo_tools as vt


def on_both(text: str, *inputs: Any, **options: Any) -> list[Any]:
    """Return the results, which are of the same types and bits on both engines."""
    taken: Any = inputs
    one, other = (vt.run(text, taken, engine=engine, **options) for engine in ("reference", "xla"))
    for a, b in zip(one, other, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return [each.tolist() for each in one]


@pytest.mark.parametrize(
    ("index", "dtype", "at"), [("i8", np.int8, 100), ("ui8", np.uint8, 200), ("ui64", np.uint64, 2**63 + 5)]
)
def test_indices_of_every_type_are_where_they_say(index: str, dtype: Any, at: int) -> None:
    array, last = np.arange(300, dtype=np.float32), min(at, 299)
    sliced = f"""%r = stablehlo.dynamic_slice %a, %i, sizes = [1] : (tensor<300xf32>, tensor<{index}>) -> tensor<1xf32>
      %j = stablehlo.reshape %i : (tensor<{index}>) -> tensor<1x1x{index}>
      %g = "stablehlo.gather"(%a, %j) {{slice_sizes = array<i64: 1>, dimension_numbers = #stablehlo.gather<
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
      }} : (tensor<300xf32>, tensor<1x1x{index}>) -> tensor<1xf32>
      %u = stablehlo.constant dense<-1.0> : tensor<1xf32>
      %d = stablehlo.dynamic_update_slice %a, %u, %i
        : (tensor<300xf32>, tensor<1xf32>, tensor<{index}>) -> tensor<300xf32>"""
    kinds = ["tensor<1xf32>", "tensor<1xf32>", "tensor<300xf32>"]
    text = function(f"%a: tensor<300xf32>, %i: tensor<{index}>", sliced, ["%r", "%g", "%d"], kinds)
    one, gathered, updated = on_both(text, array, dtype(at))
    assert (one, gathered, updated[last]) == ([last], [last], -1)


def test_updates_beyond_what_is_updated_change_nothing() -> None:
    text = function(
        "%a: tensor<5xf32>, %i: tensor<2x1xui8>, %u: tensor<2xf32>",
        """%r = "stablehlo.scatter"(%a, %i, %u) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %0 = stablehlo.add %x, %y : tensor<f32> stablehlo.return %0 : tensor<f32>
        }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
          : (tensor<5xf32>, tensor<2x1xui8>, tensor<2xf32>) -> tensor<5xf32>""",
        ["%r"],
        ["tensor<5xf32>"],
    )
    indices = np.array([[255], [3]], np.uint8)
    assert on_both(text, np.zeros(5, np.float32), indices, np.ones(2, np.float32)) == [[0, 0, 0, 1, 0]]


def test_a_sum_of_nothing_is_zero() -> None:
    kinds = "tensor<2x0xf32>", "tensor<0x3xf32>", "tensor<2x3xf32>"
    product = (
        f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"
    )
    text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", product, ["%r"], [kinds[2]])
    assert on_both(text, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)) == [[[0] * 3] * 2]


@pytest.mark.sample(4)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "f32", "f64", "ui16"])
@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
def test_random_bits_are_of_the_type_that_the_program_says(element: str, algorithm: str) -> None:
    kind = tensor((3,), element)
    body = (
        f"%n, %r = stablehlo.rng_bit_generator %s, algorithm = {algorithm} "
        f": (tensor<2xui64>) -> (tensor<2xui64>, {kind})"
    )
    text = function("%s: tensor<2xui64>", body, ["%n", "%r"], ["tensor<2xui64>", kind])
    on_both(text, np.array([1, 2], np.uint64))


def test_handlers_take_and_give_what_is_in_tuples_one_by_one() -> None:
    pair = "tuple<tensor<2xf32>, tuple<tensor<f32>>>"
    body = f"""%t = stablehlo.custom_call @split(%a) : (tensor<2xf32>) -> {pair}
      %s = stablehlo.custom_call @join(%t) : ({pair}) -> tensor<f32>
      %r = stablehlo.get_tuple_element %t[0] : ({pair}) -> tensor<2xf32>"""
    text = function("%a: tensor<2xf32>", body, ["%r", "%s"], ["tensor<2xf32>", "tensor<f32>"])
    handlers = {"split": lambda _, a: (a * 2, a.sum()), "join": lambda _, double, total: double.sum() + total}
    assert on_both(text, np.array([1, 2], np.float32), handlers=handlers) == [[2, 4], 9]


def test_a_convolution_of_no_features_is_zero() -> None:
    kinds = "tensor<1x4x0xf32>", "tensor<2x0x3xf32>", "tensor<1x3x3xf32>"
    convolution = (
        "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"
    )
    text = function(f"%a: {kinds[0]}, %k: {kinds[1]}", convolution, ["%r"], [kinds[2]])
    assert on_both(text, np.zeros((1, 4, 0), np.float32), np.zeros((2, 0, 3), np.float32)) == [[[[0] * 3] * 3]]
