"""Algorithms of dot_general as older ops.

Neither engine does anything with an algorithm, so that what it computes is made with numpy here; where it rounds
nothing, both engines compute the same before and after. All results are compared within the bounds that the patterns
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.element_types import TYPES
from support.expansions import ENGINES, check_same, expanded
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

FEATURE = "dot_algorithm"
F8 = "dot_algorithm_f8E4M3FN"
#: The algorithms of one primitive operation: both precision types, and the accumulation type.
_SINGLE = [
    ("f16", "f16", "f16"),
    ("f16", "f16", "f32"),
    ("bf16", "bf16", "bf16"),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("f8E5M2", "f8E5M2", "f32"),
    ("f8E4M3", "f8E3M4", "f32"),
    ("f8E4M3FNUZ", "f8E4M3B11FNUZ", "f32"),
    ("f8E5M2FNUZ", "f8E5M2", "f32"),
]
_SEVERAL = [("bf16", 3), ("bf16", 6), ("bf16", 9), ("tf32", 3)]
_BITS = {"f16": 11, "bf16": 8, "tf32": 11, "f32": 24, "f64": 53}


def _algorithm(lhs: str, rhs: str, accumulation: str, products: int = 1, *, imprecise: bool = False) -> str:
    return f"""algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs},
      accumulation_type = {accumulation}, lhs_component_count = 1, rhs_component_count = 1,
      num_primitive_operations = {products}, allow_imprecise_accumulation = {str(imprecise).lower()}>"""


def _program(
    algorithm: str,
    element: str = "f32",
    result: str = "f32",
    shapes: Sequence[str] = ("4x16x", "16x3x", "4x3x"),
    dimensions: str = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]",
    more: str = "",
) -> str:
    left, right = (f"tensor<{shape}{element}>" for shape in shapes[:2])
    out = f"tensor<{shapes[2]}{result}>"
    return f"""func.func @main(%a: {left} {{tf.aliasing_output = 0 : i32}}, %b: {right}) -> ({left}, {out}) {{
      %0 = "stablehlo.dot_general"(%a, %b) {{dot_dimension_numbers = #stablehlo.dot<{dimensions}>, {algorithm}{more}}}
        : ({left}, {right}) -> {out}
      return %a, %0 : {left}, {out} }}"""


def _numbers(shape: Sequence[int], element: str = "f32", seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(tuple(shape))).astype(TYPES[element])


def _rounded(value: np.ndarray, precision: str) -> np.ndarray:
    """Return numbers rounded to a precision type, as f64."""
    if precision != "tf32":
        return value.astype(TYPES[precision]).astype(np.float64)
    # To nearest, ties to even, of the 13 bits that tf32 does not have.
    bits = value.astype(np.float32).view(np.uint32)
    bits = bits + 0xFFF + ((bits >> 13) & 1)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def _results(artifact: vt.Artifact, *given: np.ndarray) -> list[Any]:
    return [np.asarray(vt.run(artifact, list(given), engine=engine)[1]) for engine in ENGINES]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("lhs", "rhs", "accumulation"), _SINGLE)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_one_primitive_operation(lhs: str, rhs: str, accumulation: str, element: str) -> None:
    program = _program(_algorithm(lhs, rhs, accumulation), element, element)
    artifact, (note,) = expanded(program, FEATURE)
    assert note.message.endswith("(exact)")
    a, b = _numbers((4, 16), element), _numbers((16, 3), element, 1)
    left, right = _rounded(a, lhs), _rounded(b, rhs)
    magnitude = np.abs(left) @ np.abs(right)
    bound = 17 * 2.0 ** -min(_BITS[accumulation], _BITS[element]) * magnitude
    if element == "f64" and lhs == "tf32":
        bound += 2.0**-23 * magnitude
    for found in _results(artifact, a, b):
        assert np.all(np.abs(found - left @ right) <= bound)
        if _BITS.get(lhs, 4) < _BITS[accumulation]:
            # It is the rounding that is seen, not only an error of it.
            assert np.any(np.abs(found - a.astype(np.float64) @ b.astype(np.float64)) > bound)


@pytest.mark.parametrize(
    ("element", "accumulation", "result"),
    [
        ("bf16", "f32", "f32"),
        ("bf16", "bf16", "bf16"),
        ("f16", "f32", "f32"),
        ("f16", "f16", "f16"),
        ("f32", "f32", "f32"),
        ("f64", "f64", "f64"),
    ],
)
def test_nothing_is_rounded_where_the_operands_have_the_precision(element: str, accumulation: str, result: str) -> None:
    program = _program(_algorithm(element, element, accumulation), element, result)
    artifact, (note,) = expanded(program, FEATURE, "0.9.0")
    assert note.message.startswith("stablehlo.dot_general was rewritten, without its algorithm, because")
    check_same(program, artifact, [[_numbers((4, 16), element), _numbers((16, 3), element, 1)]])


@pytest.mark.sample(3)
@pytest.mark.parametrize(("precision", "products"), _SEVERAL)
@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
def test_several_primitive_operations(precision: str, products: int, element: str) -> None:
    program = _program(_algorithm(precision, precision, "f32", products), element, "f32")
    artifact, _ = expanded(program, FEATURE, "1.5.0" if element == "f64" else "0.9.0")
    a, b = _numbers((4, 16), element), _numbers((16, 3), element, 1)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    unit = 2.0 ** -_BITS[precision]
    omitted = {3: 3.1 * unit**2, 6: 4.1 * unit**3, 9: 2.1 * unit**3}[products]
    # Each primitive operation adds 16 products, and their sums are added up.
    bound = (omitted + 2.0**-23 + (16 + products) * 2.0**-24) * (np.abs(a.astype(float)) @ np.abs(b.astype(float)))
    for found in _results(artifact, a, b):
        assert np.all(np.abs(found - exact) <= bound)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("precision", "products"), _SEVERAL)
def test_the_products_of_components(precision: str, products: int) -> None:
    # With one product in each sum, the order of additions is that of the patterns, and the bits are known.
    program = _program(_algorithm(precision, precision, "f32", products), shapes=("16x1x", "1x16x", "16x16x"))
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    a, b = _numbers((16, 1)), _numbers((1, 16), "f32", 1)
    count = 2 if products == 3 else 3
    sides: list[list[np.ndarray]] = []
    for rest in (a, b):
        sides.append([])
        for _ in range(count):
            sides[-1].append(_rounded(rest, precision).astype(np.float32))
            rest = rest - sides[-1][-1]
    left, right = sides
    places: list[list[tuple[int, int]]] = {
        3: [[(0, 1), (1, 0)], [(0, 0)]],
        6: [[(0, 2), (1, 1), (2, 0)], [(0, 1), (1, 0)], [(0, 0)]],
        9: [[(2, 2)], [(1, 2), (2, 1)], [(0, 2), (1, 1), (2, 0)], [(0, 1), (1, 0)], [(0, 0)]],
    }[products]
    total = None
    for pairs in places:
        part = left[pairs[0][0]] * right[pairs[0][1]]
        for one, other in pairs[1:]:
            part = part + left[one] * right[other]
        total = part if total is None else total + part
    assert total is not None
    reference, _ = _results(artifact, a, b)
    np.testing.assert_array_equal(reference, total)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("precision", "products"), _SEVERAL)
def test_infinities_and_nans(precision: str, products: int) -> None:
    program = _program(_algorithm(precision, precision, "f32", products))
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    a, b = np.abs(_numbers((4, 16))), np.abs(_numbers((16, 3), "f32", 1))
    a[0, 3], a[1, 5], a[2, 0] = np.inf, -np.inf, np.nan
    b[0, 1], b[3, 2] = np.inf, 0
    with np.errstate(invalid="ignore"):
        expected = a @ b
    for found in _results(artifact, a, b):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
        np.testing.assert_array_equal(found[~np.isfinite(expected)], expected[~np.isfinite(expected)])


@pytest.mark.sample(4)
@pytest.mark.parametrize(("precision", "accumulation", "products"), [("bf16", "f32", 1), ("bf16", "f32", 6)])
@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "dimensions", "formula"),
    [
        ((5,), (5,), "", "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]", "i,i->"),
        ((3,), (2,), "3x2x", "", "i,j->ij"),
        ((), (), "", "", ",->"),
        (
            (2, 3, 4),
            (4, 2, 1),
            "2x3x1x",
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], "
            "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]",
            "bij,jbk->bik",
        ),
        ((2, 0), (0, 3), "2x3x", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]", "ij,jk->ik"),
        ((0, 2), (2, 3), "0x3x", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]", "ij,jk->ik"),
    ],
)
def test_shapes(
    precision: str,
    accumulation: str,
    products: int,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    result: str,
    dimensions: str,
    formula: str,
) -> None:
    shapes = [*("".join(f"{size}x" for size in shape) for shape in (lhs, rhs)), result]
    algorithm = _algorithm(precision, precision, accumulation, products)
    artifact, _ = expanded(_program(algorithm, shapes=shapes, dimensions=dimensions), FEATURE, "0.9.0")
    a, b = _numbers(lhs), _numbers(rhs, "f32", 1)
    sides = (_rounded(a, precision), _rounded(b, precision)) if products == 1 else (a, b)
    for found in _results(artifact, a, b):
        np.testing.assert_allclose(found, np.einsum(formula, *sides), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("products", [1, 9])
def test_sizes_that_are_known_at_run_time_only(products: int) -> None:
    program = _program(_algorithm("bf16", "bf16", "f32", products), shapes=("?x16x", "16x?x", "?x?x"))
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    a, b = _numbers((4, 16)), _numbers((16, 3), "f32", 1)
    _, found = vt.run(artifact, [a, b], engine="reference")
    sides = [_rounded(each, "bf16") if products == 1 else each for each in (a, b)]
    np.testing.assert_allclose(found, sides[0] @ sides[1], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("result", ["bf16", "f16", "f64"])
def test_results_of_another_type(result: str) -> None:
    artifact, _ = expanded(_program(_algorithm("bf16", "bf16", "f32"), "f16", result), FEATURE, "0.9.0")
    a, b = _numbers((4, 16), "f16"), _numbers((16, 3), "f16", 1)
    expected = _rounded(a, "bf16") @ _rounded(b, "bf16")
    for found in _results(artifact, a, b):
        assert found.dtype == TYPES[result]
        # One rounding, of the sum in f32.
        unit = 2.0 ** -min(_BITS[result], 24)
        assert np.all(np.abs(found.astype(float) - expected) <= 1.01 * unit * np.abs(expected) + 2e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("precision", ["f8E4M3", "f8E3M4"])
@pytest.mark.parametrize("element", ["bf16", "f32", "f64"])
def test_precision_types_that_are_newer_than_algorithms(precision: str, element: str) -> None:
    # Each number of 8 bits, and the middles between neighbours, which are rounded to even, and numbers beside these.
    every = np.arange(256, dtype=np.uint8).view(TYPES[precision]).astype(np.float64)
    every = np.unique(every[np.isfinite(every)])
    middles = (every[1:] + every[:-1]) / 2
    some = np.concatenate([every, middles, middles * (1 + 2.0**-7), middles * (1 - 2.0**-7), [1e3, -1e3, 1e30, 1e-30]])
    values = some.astype(TYPES[element]).reshape(-1, 1)
    program = _program(
        _algorithm(precision, precision, "f32"), element, "f32", (f"{len(values)}x1x", "1x1x", f"{len(values)}x1x")
    )
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    with np.errstate(over="ignore"):
        expected = _rounded(values, precision)
    for found in _results(artifact, values, np.ones((1, 1), TYPES[element])):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("precision", "oldest"), [("f8E5M2FNUZ", "0.10.0"), ("f8E4M3B11FNUZ", "0.11.0")])
def test_precision_types_that_not_every_older_version_has(precision: str, oldest: str) -> None:
    program = _program(_algorithm(precision, precision, "f32"))
    expanded(program, FEATURE, oldest)
    with pytest.raises(vt.DowngradeError, match=f"stablehlo.convert needs StableHLO {oldest}"):
        vt.serialize(program, "0.9.0", expand=[FEATURE])


def test_imprecise_accumulation_is_only_permitted() -> None:
    programs = [_program(_algorithm("f8E5M2", "f8E5M2", "f32", imprecise=imprecise)) for imprecise in (False, True)]
    one, other = (expanded(program, FEATURE, "0.9.0")[0] for program in programs)
    assert one == other


@pytest.mark.parametrize("products", [1, 6])
def test_attributes_of_others_are_carried(products: int) -> None:
    program = _program(_algorithm("bf16", "bf16", "f32", products), more=', mhlo.note = "kept"')
    for relaxed in (False, True):
        text = expanded(program, FEATURE, "0.9.0", relaxed=relaxed)[0].text()
        assert text.count('"kept"') == 1
        assert text.count("tf.aliasing_output") == 1


@pytest.mark.parametrize(("element", "said"), [("i32", "i32"), ("complex<f32>", "complex<f32>")])
def test_operands_that_are_not_floats(element: str, said: str) -> None:
    program = _program(_algorithm("tf32", "tf32", "f32"), element, element)
    with pytest.raises(vt.DowngradeError, match=f"an algorithm for tensor<4x16x{said}>, whose elements are not floats"):
        vt.serialize(program, "1.5.0", expand=True)
    artifact, _ = expanded(program, FEATURE, "0.9.0", relaxed=True)
    given = [np.arange(64).reshape(4, 16), np.arange(48).reshape(16, 3)]
    check_same(program, artifact, [[each.astype(TYPES[element]) for each in given]])


def test_quantized_operands() -> None:
    element, result = "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i32:f32, 0.25>"
    program = _program(_algorithm("tf32", "tf32", "f32"), element, result)
    with pytest.raises(vt.DowngradeError, match="whose elements are not floats"):
        vt.serialize(program, "1.5.0", expand=True)
    expanded(program, FEATURE, "0.9.0", relaxed=True)


@pytest.mark.parametrize(
    ("precision", "accumulation", "products"),
    [("bf16", "f32", 1), ("bf16", "f32", 9), ("tf32", "f32", 3), ("f8E5M2", "f32", 1)],
)
def test_the_relaxed_expansion_drops_the_algorithm(precision: str, accumulation: str, products: int) -> None:
    program = _program(_algorithm(precision, precision, accumulation, products))
    artifact, (note,) = expanded(program, FEATURE, "0.9.0", relaxed=True)
    assert "relaxed: gives up the precision types, the accumulation type" in note.message
    assert artifact.text() == vt.serialize(_program("").replace(">, }", ">}"), "0.9.0").text()
    # The engines do nothing with the algorithm.
    check_same(program, artifact, [[_numbers((4, 16)), _numbers((16, 3), "f32", 1)]])


def test_a_plain_op_remains() -> None:
    program = _program("precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]")
    features, plain = [FEATURE, F8], vt.serialize(program, "0.9.0")
    assert vt.serialize(program, "0.9.0", expand=features) == plain
    assert vt.serialize(program, "0.9.0", allow_relaxed=features) == plain


def test_precision_types_f8E4M3FN() -> None:  # noqa: N802 - the name of the type
    program = _program(_algorithm("f8E4M3FN", "f8E4M3FN", "f32"))
    is_there = known_feature(F8).introduced <= CURRENT
    # Libraries before 1.21.0 write it for all versions since 1.6.0.
    feature, target = (F8, "1.20.0") if is_there else (FEATURE, "1.5.0")
    a, b = _numbers((4, 16)), _numbers((16, 3), "f32", 1)
    expected = _rounded(a, "f8E4M3FN") @ _rounded(b, "f8E4M3FN")
    for version in (target, "0.9.0"):
        artifact, _ = expanded(program, feature, version)
        for found in _results(artifact, a, b):
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
    relaxed, _ = expanded(program, feature, target, relaxed=True)
    check_same(program, relaxed, [[a, b]])
    # Another algorithm is none of the feature.
    other = _program(_algorithm("f8E5M2", "f8E5M2", "f32"))
    assert vt.serialize(other, "1.6.0", expand=[F8], allow_relaxed=[F8]) == vt.serialize(other, "1.6.0")


@pytest.mark.parametrize("products", [3, 4])
def test_several_operations_of_f8E4M3FN(products: int) -> None:  # noqa: N802 - the name of the type
    program = _program(_algorithm("f8E4M3FN", "f8E4M3FN", "f32", products))
    if known_feature(F8).introduced > CURRENT:
        with pytest.raises(vt.InvalidProgramError, match="dot algorithm not known to be supported on any hardware"):
            vt.serialize(program)
        return
    with pytest.raises(vt.DowngradeError, match=f"{products} primitive operations of f8E4M3FN: it is not specified"):
        vt.serialize(program, "1.20.0", expand=True)
    artifact, _ = expanded(program, F8, "0.9.0", relaxed=True)
    check_same(program, artifact, [[_numbers((4, 16)), _numbers((16, 3), "f32", 1)]])
