"""What XLA has not right on a CPU, or crashes on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice

pytestmark = pytest.mark.every_python


@pytest.mark.parametrize(("element", "dtype"), [("i2", ml_dtypes.int2), ("ui2", ml_dtypes.uint2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_of_two_bits_are_concatenated(element: str, dtype: np.dtype, axis: int) -> None:
    array = np.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)
    expected = np.concatenate([array, array], axis)
    kinds = [f"tensor<{'x'.join(map(str, shape))}x{element}>" for shape in (array.shape, expected.shape)]
    text = f"""func.func @main(%a: {kinds[0]}) -> {kinds[1]} {{
      %0 = stablehlo.concatenate %a, %a, dim = {axis} : ({kinds[0]}, {kinds[0]}) -> {kinds[1]}
      return %0 : {kinds[1]}
    }}"""
    (given,) = vt.run(text, [array], engine="xla")
    assert given.dtype == dtype
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("engine", ["xla", "reference"])
@pytest.mark.parametrize(("element", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_what_lies_halfway_between_all_numbers_is_rounded_once(
    element: str, dtype: np.dtype, engine: EngineChoice
) -> None:
    # The narrow numbers are in the order of their bits. XLA takes those below the normal ones of f32 for zero.
    infinity = int(np.array(np.inf, dtype).view(np.uint16))
    numbers = np.arange(infinity, dtype=np.uint16).view(dtype).astype(np.float64)
    numbers = numbers[(numbers == 0) | (numbers >= 2.0**-125)]
    below, above = numbers[:-1], numbers[1:]
    halfway = (below + above) / 2
    even = np.where(below.astype(dtype).view(np.uint16) % 2 == 0, below, above)
    given = np.concatenate([halfway, np.nextafter(halfway, np.inf), np.nextafter(halfway, 0), numbers])
    expected = np.concatenate([even, above, below, numbers])
    given, expected = given[given >= 2.0**-125], expected[given >= 2.0**-125]
    given, expected = (np.concatenate([each, -each, [np.inf, -np.inf, np.nan]]) for each in (given, expected))
    wide, kind = (f"tensor<{len(given)}x{each}>" for each in ("f64", element))
    text = f"""func.func @main(%a: {wide}) -> {kind} {{
      %0 = stablehlo.convert %a : ({wide}) -> {kind}
      return %0 : {kind}
    }}"""
    (found,) = vt.run(text, [given], engine=engine)
    np.testing.assert_array_equal(found.astype(np.float64), expected)


def test_a_sort_of_two_bits_is_left_to_the_interpreter() -> None:
    text = """func.func @main(%a: tensor<8xi2>) -> tensor<8xi2> {
      %0 = "stablehlo.sort"(%a) ({ ^bb0(%x: tensor<i2>, %y: tensor<i2>):
        %1 = stablehlo.compare LT, %x, %y : (tensor<i2>, tensor<i2>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1> }) : (tensor<8xi2>) -> tensor<8xi2>
      return %0 : tensor<8xi2>
    }"""
    array = np.array([1, -2, 0, -1, 1, 0, -2, 1]).astype(ml_dtypes.int2)
    with pytest.raises(vt.EngineError, match="cannot run stablehlo.sort: XLA treats a byte"):
        vt.run(text, [array], engine="xla")
    (given,) = vt.run(text, [array])
    assert given.astype(int).tolist() == [-2, -2, -1, 0, 0, 1, 1, 1]


def test_the_sum_of_booleans_is_a_logical_or_among_constants() -> None:
    kind = "tensor<2xi1>"
    text = f"""func.func @main(%a: {kind}) -> ({kind}, tensor<i1>) {{
      %c = stablehlo.constant dense<[true, false]> : {kind}
      %0 = stablehlo.add %c, %c : {kind}
      %1 = stablehlo.add %0, %a : {kind}
      %f = stablehlo.constant dense<true> : tensor<i1>
      %2 = stablehlo.reduce(%c init: %f) applies stablehlo.add across dimensions = [0]
        : ({kind}, tensor<i1>) -> tensor<i1>
      return %1, %2 : {kind}, tensor<i1>
    }}"""
    for engine in ("xla", "reference"):
        each, whole = vt.run(text, [np.array([True, False])], engine=engine)
        assert (each.tolist(), bool(whole)) == ([True, False], True)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "ui8", "ui32"])
def test_leading_zeros_of_constants_are_counted(element: str) -> None:
    width = int(element.lstrip("ui"))
    least = 2**width - 3 if element.startswith("u") else -3
    kind = f"tensor<3x{element}>"
    text = f"""func.func @main() -> {kind} {{
      %c = stablehlo.constant dense<[{least}, 5, 0]> : {kind}
      %r = stablehlo.count_leading_zeros %c : {kind}
      return %r : {kind}
    }}"""
    (found,) = vt.run(text, [], engine="xla")
    assert found.tolist() == [0, width - 3, width]


@pytest.mark.parametrize(
    ("op", "element", "values"),
    [
        ("round_nearest_even", "f8E3M4", "2.5, -1.5, -0.0"),
        ("round_nearest_afz", "f8E3M4", "2.5, -1.5, -0.0"),
        ("popcnt", "i2", "-2, 1, -1"),
        ("popcnt", "ui2", "2, 3, 0"),
        ("convert", "f32", "-4.0, -0.0, 0x7F800000"),
        ("convert", "i32", "-4, 0, 8"),
    ],
)
def test_what_xla_computes_of_constants_is_what_it_computes_of_arguments(op: str, element: str, values: str) -> None:
    kind = f"tensor<3x{element}>"
    result = "tensor<3xf8E8M0FNU>" if op == "convert" else kind
    main = "func.func @main({}) -> {} {{ {} %r = stablehlo.{} %c : ({}) -> {} return %r : {} }}"
    constant = f"%c = stablehlo.constant dense<[{values}]> : {kind}"
    given = vt.run(f"func.func @main() -> {kind} {{ {constant} return %c : {kind} }}", [], engine="reference")
    folded = main.format("", result, constant, op, kind, result, result)
    (found,) = vt.run(folded, [], engine="xla")
    (right,) = vt.run(main.format(f"%c: {kind}", result, "", op, kind, result, result), given, engine="xla")
    (judged,) = vt.run(folded, [], engine="reference")
    assert found.tobytes() == right.tobytes() == judged.tobytes()
