"""The smallest programs that IREE 3.13.0 computes otherwise than the interpreter and XLA, which agree.

If one of these fails because IREE agrees, a newer release has mended it: take it out here, and from
tests/conformance/numerical_suite.toml.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.execution import EngineName

ENGINES: tuple[EngineName, ...] = ("reference", "xla", "iree")


def sorted_downwards(count: int, element: str, first: int) -> str:
    """Return a program that sorts values downwards, stably and by the total order, and takes the first with places."""
    kind, taken = f"tensor<{count}x{element}>", f"tensor<{first}x{element}>"
    total = ", TOTALORDER" if element.startswith("f") else ""
    return f"""func.func @main(%a: {kind}) -> ({taken}, tensor<{first}xi32>) {{
      %i = stablehlo.iota dim = 0 : tensor<{count}xi32>
      %0:2 = "stablehlo.sort"(%a, %i) ({{
        ^bb0(%x: tensor<{element}>, %y: tensor<{element}>, %p: tensor<i32>, %q: tensor<i32>):
          %c = stablehlo.compare GT, %x, %y{total} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }}) {{dimension = 0 : i64, is_stable = true}} : ({kind}, tensor<{count}xi32>) -> ({kind}, tensor<{count}xi32>)
      %1 = stablehlo.slice %0#0 [0:{first}] : ({kind}) -> {taken}
      %2 = stablehlo.slice %0#1 [0:{first}] : (tensor<{count}xi32>) -> tensor<{first}xi32>
      return %1, %2 : {taken}, tensor<{first}xi32>
    }}"""


def elementwise(op: str, kind: str, operands: int = 1) -> str:
    names = [f"%a{number}" for number in range(operands)]
    arguments = ", ".join(f"{name}: {kind}" for name in names)
    body = f"%0 = stablehlo.{op} {', '.join(names)} : {kind}\n return %0 : {kind}"
    return f"func.func @main({arguments}) -> {kind} {{ {body} }}"


def results(program: str, inputs: list[Any]) -> tuple[Any, Any, Any]:
    """Return what each engine computes, as lists."""
    given = tuple([each.tolist() for each in vt.run(program, inputs, engine=engine)] for engine in ENGINES)
    reference, xla, iree = given
    return reference, xla, iree


def test_the_power_of_a_negative_number() -> None:
    reference, xla, iree = results(elementwise("power", "tensor<3xf32>", 2), [[-2, -2, 2], [3, 2, 3]])
    assert reference == xla == [[-8, 4, 8]]
    assert np.isnan(iree[0][:2]).all()
    assert iree[0][2] == 8


def test_a_descending_sort_does_not_keep_the_order_of_equal_elements() -> None:
    reference, xla, iree = results(sorted_downwards(6, "i32", 4), [[1, 5, 5, 3, 5, 5]])
    assert reference == xla == [[5, 5, 5, 5], [1, 2, 4, 5]]
    assert iree[0] == [5, 5, 5, 5]
    assert iree[1] != [1, 2, 4, 5]
    assert sorted(iree[1]) == [1, 2, 4, 5]


def test_a_descending_sort_loses_nan() -> None:
    given = np.array([1, np.nan, np.inf, -np.inf, 2], np.float32)
    reference, xla, iree = results(sorted_downwards(5, "f32", 3), [given])
    assert np.isnan(reference[0][0])
    assert np.isnan(xla[0][0])
    assert reference[0][1:] == xla[0][1:] == [np.inf, 2]
    assert iree[0] == [np.inf, 2, 1]


def test_a_constant_of_many_complex_numbers() -> None:
    kind = "tensor<20xcomplex<f64>>"
    numbers = ", ".join(f"({each}.0, 0.5)" for each in range(20))
    program = (
        f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<[{numbers}]> : {kind}\n return %0 : {kind} }}"
    )
    for engine in ENGINES[:2]:
        assert vt.run(program, [], engine=engine)[0].tolist() == [each + 0.5j for each in range(20)]
    with pytest.raises(vt.EngineCrashError) as caught:
        vt.run(program, [], engine="iree")
    assert caught.value.signal == "SIGFPE"


def test_sums_of_exponents() -> None:
    program = elementwise("add", "tensor<3xf8E8M0FNU>", 2)
    given = np.array([1, np.nan, 2]).astype(ml_dtypes.float8_e8m0fnu)
    found = {engine: vt.run(program, [given, given], engine=engine)[0].astype(np.float32) for engine in ENGINES}
    for engine in ("reference", "xla"):
        np.testing.assert_array_equal(found[engine], [2, np.nan, 4])
    np.testing.assert_array_equal(found["iree"], [2, 2, 2])


@pytest.mark.parametrize(
    ("op", "values", "ulp"),
    [("cosine", [1.5713, 4.712], 100), ("sine", [3.1375], 50), ("tan", [1.5713], 500)],
)
def test_trigonometric_functions_near_their_zeros(op: str, values: list[float], ulp: int) -> None:
    program = elementwise(op, f"tensor<{len(values)}xf32>")
    close = vt.verify(program, program, [values], engines=ENGINES)
    assert close.passed
    assert close.on_engines is not None
    (found,) = {each.place: each for each in close.on_engines.disagreements}.values()
    assert found.alone == "iree"
    assert all((each.max_ulp or 0) > ulp / 2 for each in found.differing.values())
