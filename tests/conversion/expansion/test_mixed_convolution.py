"""Convolutions of two different 8-bit floats, with operands of the type of the result."""

from __future__ import annotations

import numpy as np
import pytest
from support.element_types import TYPES
from support.expansions import check_same, expanded
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

FEATURE = "mixed_f8_convolution"
IS_THERE = known_feature(FEATURE).introduced <= CURRENT
_EIGHT = ("f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU")
_RESULTS = ("f16", "bf16", "f32", "f64")
#: Each type beside the next one, with two of the results.
_CASES = [(one, _EIGHT[at - 1], _RESULTS[(at + more) % 4]) for at, one in enumerate(_EIGHT) for more in (0, 1)]


def _program(lhs: str, rhs: str, result: str, more: str = "", batch: str = "2") -> str:
    """Return a convolution along one dimension, with a stride, padding and a dilated kernel."""
    left, right, out = f"tensor<{batch}x7x2x{lhs}>", f"tensor<2x2x3x{rhs}>", f"tensor<{batch}x4x3x{result}>"
    return f"""func.func @main(%a: {left} {{tf.aliasing_output = 0 : i32}}, %b: {right}) -> ({left}, {out}) {{
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{stride = [2], pad = [[1, 1]], rhs_dilate = [2]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64{more}}} : ({left}, {right}) -> {out}
      return %a, %0 : {left}, {out} }}"""


def _refused_by_older_libraries(program: str) -> bool:
    """Check that an older library does not parse a program; return whether it is such a library."""
    if not IS_THERE:
        with pytest.raises(vt.InvalidProgramError, match="compatible element type"):
            vt.serialize(program)
    return not IS_THERE


def _numbers(shape: tuple[int, ...], element: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)
    return np.asarray(np.abs(drawn) if element == "f8E8M0FNU" else drawn, np.float32).astype(TYPES[element])


@pytest.mark.parametrize(("lhs", "rhs", "result"), _CASES)
def test_the_same_bits(lhs: str, rhs: str, result: str) -> None:
    program = _program(lhs, rhs, result)
    if _refused_by_older_libraries(program):
        return
    if result == "f16" and "f8E8M0FNU" in (lhs, rhs):
        with pytest.raises(vt.DowngradeError, match="f16 does not hold every f8E8M0FNU"):
            vt.serialize(program, "1.19.0", expand=True)
        return
    artifact, (note,) = expanded(program, FEATURE)
    assert note.message.startswith("stablehlo.convolution was rewritten to stablehlo.convert, stablehlo.convolution")
    given = [_numbers((2, 7, 2), lhs, 0), _numbers((2, 2, 3), rhs, 1)]
    if {lhs, rhs} != {"f8E5M2", "f8E5M2FNUZ"}:
        check_same(program, artifact, [given])
        return
    # XLA does not compile these as they are: its process dies.
    check_same(program, artifact, [given], engines=["reference"])
    found, expected = (vt.run(artifact, given, engine=engine)[1].astype(np.float64) for engine in ("xla", "reference"))
    unit = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}[result]
    np.testing.assert_allclose(found, expected, rtol=8 * unit, atol=8 * unit)


@pytest.mark.parametrize("result", ["f8E4M3FN", "f8E5M2", "f8E3M4"])
def test_results_of_8_bits(result: str) -> None:
    program = _program("f8E4M3FN", "f8E5M2", result)
    if _refused_by_older_libraries(program):
        return
    with pytest.raises(vt.DowngradeError, match=f"a result of {result}, which is not computed the same"):
        vt.serialize(program, "1.19.0", expand=True)


def test_special_numbers() -> None:
    program = _program("f8E4M3FN", "f8E5M2", "f32")
    if _refused_by_older_libraries(program):
        return
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 448, 2**-9, 2**-16], np.float32)
    one, other = _numbers((2, 7, 2), "f8E4M3FN", 0), _numbers((2, 2, 3), "f8E5M2", 1)
    inputs = []
    for number in special:
        left, right = one.copy(), other.copy()
        left[0, 3, 1], right[1, 0, 2] = np.clip(number, -448, 448), number
        inputs.append([left, right])
    check_same(program, artifact, inputs)


def test_sizes_that_are_known_at_run_time_only() -> None:
    program = _program("f8E4M3FN", "f8E5M2", "f32", batch="?")
    if _refused_by_older_libraries(program):
        return
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    given = [_numbers((2, 7, 2), "f8E4M3FN", 0), _numbers((2, 2, 3), "f8E5M2", 1)]
    check_same(program, artifact, [given], engines=["reference"])


def test_dynamic_convolution() -> None:
    left, right, out = "tensor<1x7x2xf8E4M3FN>", "tensor<2x2x3xf8E5M2>", "tensor<1x8x3xf32>"
    program = f"""func.func @main(%a: {left}, %b: {right}) -> {out} {{
      %p = stablehlo.constant dense<[[1, 1]]> : tensor<1x2xi64>
      %0 = "stablehlo.dynamic_conv"(%a, %b, %p) {{
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
        batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({left}, {right}, tensor<1x2xi64>) -> {out}
      return %0 : {out} }}"""
    if _refused_by_older_libraries(program):
        return
    artifact, (note,) = expanded(program, FEATURE)
    assert note.message.startswith("stablehlo.dynamic_conv was rewritten to stablehlo.convert, stablehlo.dynamic_conv")
    lhs, rhs = _numbers((1, 7, 2), "f8E4M3FN", 0), _numbers((2, 2, 3), "f8E5M2", 1)
    padded = np.pad(lhs.astype(np.float64), ((0, 0), (1, 1), (0, 0)))
    expected = sum(padded[:, at : at + 8] @ rhs[at].astype(np.float64) for at in range(2))
    for each in (program, artifact):
        (found,) = vt.run(each, [lhs, rhs], engine="reference")
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("element", ["f8E4M3FN", "f32"])
def test_convolutions_of_one_type_remain(element: str) -> None:
    program = _program(element, element, "f32")
    assert vt.serialize(program, "0.9.0", expand=[FEATURE]) == vt.serialize(program, "0.9.0")
