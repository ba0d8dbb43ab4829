"""Programs whose sizes depend on values: both engines run them, and return arrays of these sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

pytestmark = [pytest.mark.usefixtures("both_places"), pytest.mark.every_python]

BOUNDED = "tensor<?xf32, #stablehlo.bounds<4>>"
#: The positive elements first, and then others; as many of them as there are.
POSITIVE = f"""
func.func private @count(%a: tensor<4xf32>) -> tensor<i32> {{
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.compare GT, %a, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = stablehlo.convert %0 : (tensor<4xi1>) -> tensor<4xi32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
  return %2 : tensor<i32>
}}
func.func private @positive(%a: tensor<4xf32>) -> {BOUNDED} {{
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = "stablehlo.sort"(%0) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %4 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }}) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.negate %1 : tensor<4xf32>
  %n = call @count(%a) : (tensor<4xf32>) -> tensor<i32>
  %3 = "stablehlo.set_dimension_size"(%2, %n) {{dimension = 0 : i64}} : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
  return %3 : {BOUNDED}
}}
"""
VALUES: list[list[float]] = [[1, -1, 3, -2], [-1, -2, -3, -4], [4, 3, 2, 1], [0, 0, 0, 5]]


def program(results: str, body: str) -> str:
    return f"{POSITIVE}\nfunc.func @main(%a: tensor<4xf32>) -> ({results}) {{\n{body}\n}}"


def run(text: str, values: list[float], engine: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in vt.run(text, [np.array(values, np.float32)], engine=engine)]


def positive(values: list[float]) -> list[float]:
    return sorted((each for each in values if each > 0), reverse=True)


@pytest.mark.sample(8)
@pytest.mark.parametrize("engine", ["reference", "xla", "auto"])
@pytest.mark.parametrize("values", VALUES)
def test_a_sum_over_as_many_as_there_are(values: list[float], engine: Any) -> None:
    text = program(
        "tensor<f32>",
        f"""  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0]
    : ({BOUNDED}, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>""",
    )
    (total,) = run(text, values, engine)
    assert total == sum(positive(values))


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", ["reference", "xla", "auto"])
@pytest.mark.parametrize("values", VALUES)
def test_results_have_the_sizes_that_were_found(values: list[float], engine: Any) -> None:
    """One size depends on another, and a static result is beside them."""
    text = program(
        f"{BOUNDED}, tensor<4xf32>, {BOUNDED}",
        f"""  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}
  %1 = stablehlo.add %0, %0 : {BOUNDED}
  %n = "stablehlo.get_dimension_size"(%1) {{dimension = 0 : i64}} : ({BOUNDED}) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %half = stablehlo.divide %n, %two : tensor<i32>
  %2 = "stablehlo.set_dimension_size"(%a, %half) {{dimension = 0 : i64}} : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
  return %1, %a, %2 : {BOUNDED}, tensor<4xf32>, {BOUNDED}""",
    )
    doubled, same, half = run(text, values, engine)
    found = positive(values)
    assert doubled.tolist() == [2 * each for each in found]
    assert same.tolist() == values
    assert half.tolist() == values[: len(found) // 2]


def test_buffers_of_bounded_results() -> None:
    text = program(BOUNDED, f"  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}\n  return %0 : {BOUNDED}")
    executable = vt.load_executable(text, engine="xla")
    for values in VALUES:
        (buffer,) = executable.execute([vt.Buffer.on_xla(np.array(values, np.float32))]).buffers
        assert np.asarray(buffer).tolist() == positive(values)


@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_aliases_of_other_results_are_kept(engine: Any) -> None:
    text = program(
        f"tensor<4xf32>, {BOUNDED}",
        f"""  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}
  %1 = stablehlo.add %a, %a : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, {BOUNDED}""",
    ).replace("@main(%a: tensor<4xf32>)", "@main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32})")
    values = np.array(VALUES[0], np.float32)
    given = vt.Buffer(values) if engine == "reference" else vt.Buffer.on_xla(values)
    execution = vt.load_executable(text, engine=engine).execute([given], donate=(0,))
    assert execution.report.bytes_copied == 0
    assert [np.asarray(each).tolist() for each in execution.buffers] == [[2, -2, 6, -4], [3, 1]]


@pytest.mark.sample(8)
@pytest.mark.parametrize("engine", ["reference", "xla", "auto"])
@pytest.mark.parametrize("values", VALUES)
def test_full_operands_beside_bounded_ones(values: list[float], engine: Any) -> None:
    """As TensorFlow writes them, where XLA looks at the bounds alone."""
    text = program(
        f"{BOUNDED}, {BOUNDED}",
        f"""  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}
  %c = stablehlo.constant dense<[2.0, 4.0, 8.0, 16.0]> : tensor<4xf32>
  %1 = stablehlo.multiply %0, %c : ({BOUNDED}, tensor<4xf32>) -> {BOUNDED}
  %2 = stablehlo.subtract %c, %0 : (tensor<4xf32>, {BOUNDED}) -> {BOUNDED}
  return %1, %2 : {BOUNDED}, {BOUNDED}
""",
    )
    wanted = np.array(positive(values), np.float32)
    factors = np.array([2, 4, 8, 16], np.float32)[: wanted.size]
    product, difference = run(text, values, engine)
    assert product.tolist() == (wanted * factors).tolist()
    assert difference.tolist() == (factors - wanted).tolist()


@pytest.mark.sample(8)
@pytest.mark.parametrize("engine", ["reference", "xla", "auto"])
@pytest.mark.parametrize("values", VALUES)
def test_a_slice_up_to_the_bound_and_a_size_set_again(values: list[float], engine: Any) -> None:
    """As TensorFlow writes a sort of bounded size: in full, and then cut once more."""
    text = program(
        BOUNDED,
        f"""  %0 = call @positive(%a) : (tensor<4xf32>) -> {BOUNDED}
  %n = stablehlo.get_dimension_size %0, dim = 0 : ({BOUNDED}) -> tensor<i32>
  %1 = stablehlo.slice %0 [0:4] : ({BOUNDED}) -> {BOUNDED}
  %c = stablehlo.constant dense<4> : tensor<i32>
  %2 = stablehlo.set_dimension_size %1, %c, dim = 0 : ({BOUNDED}, tensor<i32>) -> tensor<4xf32>
  %3 = stablehlo.negate %2 : tensor<4xf32>
  %4 = stablehlo.set_dimension_size %3, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {BOUNDED}
  return %4 : {BOUNDED}
""",
    )
    assert run(text, values, engine)[0].tolist() == [-each for each in positive(values)]


@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("size", [4, 3])
def test_a_constant_size(size: int, engine: Any) -> None:
    text = f"""func.func @main(%a: tensor<4xf32>) -> tensor<{size}xf32> {{
      %c = stablehlo.constant dense<{size}> : tensor<i32>
      %0 = stablehlo.set_dimension_size %a, %c, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<{size}xf32>
      return %0 : tensor<{size}xf32>
    }}"""
    assert run(text, [1, 2, 3, 4], engine)[0].tolist() == [1, 2, 3, 4][:size]
