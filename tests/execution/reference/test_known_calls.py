"""Custom calls whose meaning the toolkit knows: annotations, assertions of StableHLO's own tests, and LAPACK."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.bindings import NARROW_ELEMENTS

pytestmark = pytest.mark.every_python

ENGINES: tuple[EngineChoice, ...] = ("reference", "xla")


def asserting(target: str, kind: str) -> str:
    call = f"stablehlo.custom_call @check.{target}(%a, %b) {{has_side_effect = true}} : ({kind}, {kind}) -> ()"
    return f"func.func @main(%a: {kind}, %b: {kind}) {{ {call} return }}"


def holds(target: str, element: str, actual: Any, expected: Any) -> bool:
    """Tell whether an assertion holds; it must name itself and where it stands if it does not."""
    try:
        vt.run(asserting(target, f"tensor<{len(actual)}x{element}>"), [actual, expected], engine="xla")
    except vt.EngineError as error:
        assert f"text:1:{5 + len('func.func @main')}" in str(error) or f"custom call of check.{target}" in str(error)
        return False
    return True


def test_equal_means_the_same_numbers() -> None:
    assert holds("expect_eq", "f32", [1.0, -0.0, np.inf], [1.0, 0.0, np.inf])
    assert not holds("expect_eq", "f32", [1.0], [1.0000001])
    assert not holds("expect_eq", "f32", [np.nan], [np.nan])
    assert not holds("expect_eq", "i1", [True, False], [True, True])


@pytest.mark.needs(NARROW_ELEMENTS)
def test_equal_integers_of_four_bits() -> None:
    assert holds("expect_eq", "i4", [1, -8], [1, -8])
    assert not holds("expect_eq", "i4", [1, -8], [1, -7])


def test_almost_equal_is_within_a_thousandth() -> None:
    assert holds("expect_almost_eq", "f32", [1.0, np.nan, np.inf], [1.0009, np.nan, np.inf])
    assert holds("expect_almost_eq", "complex<f64>", [1 + 1j], [1 + 1.0009j])
    assert not holds("expect_almost_eq", "f32", [1.0], [1.002])
    assert not holds("expect_almost_eq", "f32", [np.nan], [1.0])
    assert not holds("expect_almost_eq", "f32", [np.inf], [-np.inf])


@pytest.mark.parametrize("element", ["f64", "f32", "f16", "bf16", "f8E5M2"])
def test_close_is_within_three_floats(element: str) -> None:
    names: dict[str, Any] = {"f64": "f8", "f32": "f4", "f16": "f2"}
    names |= {"bf16": ml_dtypes.bfloat16, "f8E5M2": ml_dtypes.float8_e5m2}
    dtype = np.dtype(names[element])
    bits = np.ones(1, dtype).view(f"u{dtype.itemsize}")
    three, four = ((bits + np.asarray(step, bits.dtype)).view(dtype) for step in (3, 4))
    assert holds("expect_close", element, np.ones(1, dtype), three)
    assert not holds("expect_close", element, np.ones(1, dtype), four)
    smallest = np.ones(1, bits.dtype).view(dtype)
    assert holds("expect_close", element, smallest, -smallest)
    twice = smallest + smallest
    assert not holds("expect_close", element, twice, -twice)
    assert holds("expect_close", element, np.array([np.nan], dtype), np.array([np.nan], dtype))
    assert not holds("expect_close", element, np.array([np.inf], dtype), np.ones(1, dtype))


def test_close_complex_numbers_are_so_in_both_parts() -> None:
    step = np.nextafter(np.float32(1), np.float32(2))
    assert holds("expect_close", "complex<f32>", np.array([1 + 1j], "c8"), np.array([step + 1j], "c8"))
    assert not holds("expect_close", "complex<f32>", np.array([1 + 1j], "c8"), np.array([1 - 1j], "c8"))


def test_what_differs_is_shown() -> None:
    with pytest.raises(
        vt.EngineError, match=r"4 of 5 values are not equal: 1.0 at \[0\], expected 0.0; .*; and 1 more"
    ):
        vt.run(asserting("expect_eq", "tensor<5xf32>"), [[1, 1, 1, 1, 0], [0] * 5], engine="xla")


def test_the_older_assertion_gives_true_or_ends_the_run() -> None:
    kind = "tensor<2xf32>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> tensor<i1> {{
      %0 = stablehlo.custom_call @check.eq(%a, %b) : ({kind}, {kind}) -> tensor<i1>
      return %0 : tensor<i1>
    }}"""
    assert vt.run(text, [[1, 2], [1, 2.00005]], engine="xla")[0]
    with pytest.raises(vt.EngineError, match="1 of 2 values are not within 0.0001"):
        vt.run(text, [[1, 2], [1, 2.1]], engine="xla")


@pytest.mark.parametrize("target", ["Sharding", "LayoutConstraint", "MoveToDevice", "SPMDFullToShardShape"])
def test_what_places_a_value_gives_it(target: str) -> None:
    kind = "tensor<2xf32>"
    sharding = 'mhlo.sharding = "{replicated}"'
    call = f"stablehlo.custom_call @{target}(%a) {{{sharding}}} : ({kind}) -> {kind}"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = {call} return %0 : {kind} }}"
    assert vt.run(text, [[1, 2]], engine="xla")[0].tolist() == [1, 2]


def test_a_handler_goes_before_what_is_known() -> None:
    seen: list[Any] = []
    text = asserting("expect_eq", "tensor<1xf32>")
    vt.run(text, [[1], [2]], engine="xla", handlers={"check.expect_eq": lambda *given: seen.append(given)})
    assert len(seen) == 1


@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("target", ["Sharding", "LayoutConstraint", "annotate_device_placement"])
def test_a_handler_goes_before_what_the_toolkit_knows(engine: Any, target: str) -> None:
    text = f"""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = stablehlo.custom_call @{target}(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }}"""
    array = np.array([1, 2], np.float32)
    assert vt.run(text, [array], engine=engine)[0].tolist() == [1, 2]
    given = vt.run(text, [array], engine=engine, handlers={target: lambda _, taken: taken * 3})
    assert given[0].tolist() == [3, 6]


@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_routines_of_lapack_need_no_handlers(engine: Any) -> None:
    text = """func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {
        backend_config = {uplo = 76 : ui8}, api_version = 4 : i32,
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<
          output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]
      } : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      return %0#0 : tensor<2x2xf32>
    }"""
    (given,) = vt.run(text, [np.array([[4, 2], [2, 5]], np.float32)], engine=engine)
    assert np.tril(given).tolist() == [[2, 0], [1, 2]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tupled", [False, True])
def test_a_decomposition_that_xla_expands(engine: EngineChoice, tupled: bool) -> None:
    """As TensorFlow writes it, which has a tuple as its result, and as its parts."""
    parts = "tensor<3x3xf32>, tensor<3xf32>"
    call = 'stablehlo.custom_call @Qr(%a) {backend_config = ""} : (tensor<3x3xf32>) ->'
    if tupled:
        given = f"""%0 = {call} tuple<{parts}>
        %h = stablehlo.get_tuple_element %0[0] : (tuple<{parts}>) -> tensor<3x3xf32>
        %t = stablehlo.get_tuple_element %0[1] : (tuple<{parts}>) -> tensor<3xf32>"""
    else:
        given = f"%h, %t = {call} ({parts})"
    text = f"""func.func @main(%a: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {{
        {given}
        %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%h, %t) : ({parts}) -> tensor<3x3xf32>
        return %h, %q : tensor<3x3xf32>, tensor<3x3xf32>
    }}"""
    matrix = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], np.float32)
    reflectors, q = vt.run(text, [matrix], engine=engine)
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(q @ np.triu(reflectors), matrix, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_lapack_makes_nothing_of_nothing(engine: EngineChoice) -> None:
    """Where jaxlib's own routine divides by zero."""
    result = vt.run(
        """func.func @main(%a: tensor<0x0xf32>) -> (tensor<0x0xf32>, tensor<i32>) {
          %r:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {
            mhlo.backend_config = {mode = 86 : ui8, uplo = 85 : ui8}, api_version = 4 : i32,
            operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
            result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]
          } : (tensor<0x0xf32>) -> (tensor<0x0xf32>, tensor<0xf32>, tensor<i32>)
          return %r#0, %r#2 : tensor<0x0xf32>, tensor<i32>
        }""",
        [np.zeros((0, 0), np.float32)],
        engine=engine,
    )
    assert (result[0].shape, int(result[1])) == ((0, 0), 0)
