"""Comparisons of type WEAKORDER as older ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.element_types import TYPES
from support.expansions import check_same, expanded
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

FEATURE = "weak_order_comparison"
IS_THERE = known_feature(FEATURE).introduced <= CURRENT
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
_FLOATS = ("f8E4M3FN", "f8E5M2", "f8E8M0FNU", "bf16", "f16", "f32", "f64")


def _program(type_: str, kind: str = "WEAKORDER", more: str = "") -> str:
    result = f"tensor<{type_.rpartition('x')[0]}{'x' if 'x' in type_ else ''}i1>"
    types = f"(tensor<{type_}>, tensor<{type_}>) -> {result}"
    compared = "\n".join(
        f"""%{each} = "stablehlo.compare"(%a, %b) {{comparison_direction = #stablehlo<comparison_direction {each}>,
        compare_type = #stablehlo<comparison_type {kind}>{more}}} : {types}"""
        for each in DIRECTIONS
    )
    return f"""func.func @main(%a: tensor<{type_}> {{tf.aliasing_output = 0 : i32}}, %b: tensor<{type_}>)
        -> (tensor<{type_}>, {", ".join([result] * len(DIRECTIONS))}) {{
      {compared}
      return %a, {", ".join(f"%{each}" for each in DIRECTIONS)} :
        tensor<{type_}>, {", ".join([result] * len(DIRECTIONS))} }}"""


def _refused_by_older_libraries(program: str) -> bool:
    """Check that a library without WEAKORDER does not parse a program; return whether it is such a library."""
    if not IS_THERE:
        with pytest.raises(vt.InvalidProgramError, match="ComparisonType"):
            vt.serialize(program)
    return not IS_THERE


def _numbers(element: str) -> np.ndarray:
    some = np.array([0.0, -0.0, 1, -1, 0.5, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    if element == "f8E8M0FNU":
        some = np.array([0.5, 1, 2, np.nan], np.float32)
    return some.astype(TYPES[element])


@pytest.mark.parametrize("element", _FLOATS)
def test_each_number_with_each(element: str) -> None:
    values = _numbers(element)
    one, other = (each.reshape(-1) for each in np.meshgrid(values, values))
    program = _program(f"{len(one)}x{element}")
    if _refused_by_older_libraries(program):
        return
    artifact, notes = expanded(program, FEATURE)
    assert len(notes) == len(DIRECTIONS)
    check_same(program, artifact, [[one, other]])
    # The rank of a number in the weak order: all NaNs have the greatest.
    wide = [each.astype(np.float32) for each in (one, other)]
    ranks = [np.where(np.isnan(each), 1e9, np.clip(each, -1e8, 1e8)) for each in wide]
    for engine in ("reference", "xla"):
        _, *found = vt.run(artifact, [one, other], engine=engine)
        functions = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
        for function, result in zip(functions, found, strict=True):
            np.testing.assert_array_equal(result, function(*ranks))


@pytest.mark.parametrize("shape", [(), (1,), (0, 2), (2, 1, 3)], ids=str)
def test_ranks(shape: tuple[int, ...]) -> None:
    program = _program("".join(f"{size}x" for size in shape) + "f32")
    if _refused_by_older_libraries(program):
        return
    artifact, notes = expanded(program, FEATURE, "0.9.0")
    assert all(note.message.startswith("stablehlo.compare was rewritten to stablehlo.compare, ") for note in notes)
    rng = np.random.default_rng(0)
    check_same(program, artifact, [[rng.choice(_numbers("f32"), shape) for _ in range(2)] for _ in range(3)])


def test_sizes_that_are_known_at_run_time_only() -> None:
    program = _program("?x2xbf16")
    if _refused_by_older_libraries(program):
        return
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    value = np.array([[np.nan, 1], [2, -np.nan], [0, 3]], np.float32).astype(ml_dtypes.bfloat16)
    check_same(program, artifact, [[value, value[::-1].copy()]], engines=["reference"])


def test_attributes_of_others_are_carried() -> None:
    program = _program("3xf32", more=', mhlo.note = "kept"')
    if _refused_by_older_libraries(program):
        return
    text = expanded(program, FEATURE, "0.9.0")[0].text()
    assert text.count('"kept"') == len(DIRECTIONS)
    assert text.count("tf.aliasing_output") == 1


@pytest.mark.parametrize("kind", ["FLOAT", "TOTALORDER"])
def test_other_comparisons_remain(kind: str) -> None:
    program = _program("3xf32", kind)
    assert vt.serialize(program, "0.9.0", expand=[FEATURE]) == vt.serialize(program, "0.9.0")
