"""Reductions that accumulate in a wider type, with their inputs converted.

Neither engine runs most of them as they are; so their results are compared with numpy's, on whole numbers whose sums
are the same in every order in the wide type, but not in the narrow one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.element_types import TYPES
from support.expansions import ENGINES, check_same, check_same_on_devices, expanded, version_before

import vhlo_tools as vt

FEATURE = "mixed_precision_reduction"
_PAIRS = [
    ("bf16", "f32"),
    ("f16", "f32"),
    ("f8E5M2", "f16"),
    ("f32", "f64"),
    ("i8", "i32"),
    ("ui8", "ui16"),
    ("complex<f32>", "complex<f64>"),
    # Of the same width: the specification allows it.
    ("f16", "bf16"),
]


def _tensor(shape: Sequence[int | str], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _body(*elements: str) -> str:
    values = [(f"%x{at}", f"%y{at}", f"%s{at}", f"tensor<{element}>") for at, element in enumerate(elements)]
    arguments = [f"{each[side]}: {each[3]}" for side in (0, 1) for each in values]
    sums = "\n".join(f"{total} = stablehlo.add {x}, {y} : {type_}" for x, y, total, type_ in values)
    returned = f"{', '.join(each[2] for each in values)} : {', '.join(each[3] for each in values)}"
    return f"{{ ^bb0({', '.join(arguments)}):\n {sums}\n stablehlo.return {returned} }}"


def _numbers(shape: Sequence[int], element: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, tuple(shape)).astype(TYPES[element])


def _sums(values: np.ndarray, along: int | tuple[int, ...], element: str) -> np.ndarray:
    wide = values.astype(TYPES[element])
    return np.asarray(wide.sum(along, dtype=wide.dtype))


def _reduce(shape: Sequence[int | str], dimensions: Sequence[int], narrow: str, wide: str, initial: str = "") -> str:
    kept = [size for at, size in enumerate(shape) if at not in dimensions]
    types = f"{_tensor(shape, narrow)}, {_tensor((), initial or narrow)}"
    held = f"array<i64{':' if dimensions else ''} {', '.join(map(str, dimensions))}>"
    return f"""func.func @main(%a: {_tensor(shape, narrow)} {{tf.aliasing_output = 0 : i32}},
        %i: {_tensor((), initial or narrow)}) -> ({_tensor(shape, narrow)}, {_tensor(kept, wide)}) {{
      %0 = "stablehlo.reduce"(%a, %i) ({_body(wide)}) {{dimensions = {held}, mhlo.note = "kept"}}
        : ({types}) -> {_tensor(kept, wide)}
      return %a, %0 : {_tensor(shape, narrow)}, {_tensor(kept, wide)} }}"""


def _check(artifact: vt.Artifact, inputs: Sequence[Any], *expected: np.ndarray) -> None:
    for engine in ENGINES:
        found = vt.run(artifact, list(inputs), engine=engine)
        for one, other in zip(found, expected, strict=True):
            assert np.asarray(one).dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("narrow", "wide"), _PAIRS)
def test_reduce(narrow: str, wide: str) -> None:
    program = _reduce((3, 5), (1,), narrow, wide)
    artifact, (note,) = expanded(program, FEATURE)
    assert note.message.startswith("stablehlo.reduce was rewritten to stablehlo.convert, stablehlo.reduce, because")
    assert artifact.text().count('"kept"') == 1
    assert artifact.text().count("tf.aliasing_output") == 1
    values, initial = _numbers((3, 5), narrow), _numbers((), narrow, 1)
    # In bf16 itself, sums depend on their order.
    values = values % np.asarray(3, values.dtype) if wide == "bf16" else values
    _check(artifact, [values, initial], values, _sums(values, 1, wide) + initial.astype(TYPES[wide]))


@pytest.mark.parametrize(
    ("shape", "dimensions"), [((), ()), ((4,), (0,)), ((0, 3), (0,)), ((2, 0), (0,)), ((1, 2, 3), (0, 2)), ((2, 3), ())]
)
def test_ranks_of_reduce(shape: tuple[int, ...], dimensions: tuple[int, ...]) -> None:
    artifact, _ = expanded(_reduce(shape, dimensions, "i8", "i32"), FEATURE, "0.9.0")
    # Without dimensions, engines do not agree on whether the initial value counts.
    values, initial = _numbers(shape, "i8"), np.int8(-7 if dimensions else 0)
    _check(artifact, [values, initial], values, _sums(values, dimensions, "i32") + np.int32(initial))


def test_the_reference_computes_the_same_before() -> None:
    # The only form that it runs as it is: the initial value has the wide type already.
    program = _reduce((3, 5), (1,), "bf16", "f32", "f32")
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    rng = np.random.default_rng(0)
    inputs = [[rng.standard_normal((3, 5)).astype(TYPES["bf16"]), np.float32(0.1)] for _ in range(5)]
    check_same(program, artifact, inputs, engines=["reference"])


def test_reduce_of_sizes_that_are_known_at_run_time_only() -> None:
    artifact, _ = expanded(_reduce(("?", 5), (1,), "bf16", "f32"), FEATURE, "0.9.0")
    values = _numbers((3, 5), "bf16")
    _, found = vt.run(artifact, [values, TYPES["bf16"](1)], engine="reference")
    np.testing.assert_array_equal(found, values.astype(np.float32).sum(1) + 1)


def test_several_operands() -> None:
    program = f"""func.func @main(%a: tensor<2x3xi8>, %b: tensor<2x3xf32>, %c: tensor<2x3xbf16>, %i: tensor<i8>,
        %j: tensor<f32>, %k: tensor<f32>) -> (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) {{
      %0:3 = "stablehlo.reduce"(%a, %b, %c, %i, %j, %k) ({_body("i32", "f32", "f32")}) {{dimensions = array<i64: 1>}}
        : (tensor<2x3xi8>, tensor<2x3xf32>, tensor<2x3xbf16>, tensor<i8>, tensor<f32>, tensor<f32>)
        -> (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>)
      return %0#0, %0#1, %0#2 : tensor<2xi32>, tensor<2xf32>, tensor<2xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    a, b, c = _numbers((2, 3), "i8"), _numbers((2, 3), "f32", 1), _numbers((2, 3), "bf16", 2)
    wide = (a.astype(np.int32), b, c.astype(np.float32))
    sums = [np.asarray(each.sum(1) + 1, each.dtype) for each in wide]
    _check(artifact, [a, b, c, np.int8(1), np.float32(1), np.float32(1)], *sums)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("narrow", "wide"), _PAIRS[:7])
def test_reduce_window(narrow: str, wide: str) -> None:
    program = f"""func.func @main(%a: {_tensor((2, 6), narrow)}, %i: {_tensor((), narrow)})
        -> {_tensor((2, 3), wide)} {{
      %0 = "stablehlo.reduce_window"(%a, %i) ({_body(wide)})
        {{window_dimensions = array<i64: 1, 4>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [2, 0]]>
        : tensor<2x2xi64>}} : ({_tensor((2, 6), narrow)}, {_tensor((), narrow)}) -> {_tensor((2, 3), wide)}
      return %0 : {_tensor((2, 3), wide)} }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    values = _numbers((2, 6), narrow)
    padded = np.pad(values.astype(TYPES[wide]), ((0, 0), (2, 0)))
    sums = np.stack([padded[:, at : at + 4].sum(1) for at in (0, 2, 4)], 1).astype(TYPES[wide])
    _check(artifact, [values, np.zeros((), TYPES[narrow])], sums)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("narrow", "wide"), _PAIRS[:7])
def test_scatter(narrow: str, wide: str) -> None:
    operands = f"{_tensor((4,), narrow)}, tensor<3x1xi32>, {_tensor((3,), narrow)}"
    program = f"""func.func @main(%a: {_tensor((4,), narrow)}, %i: tensor<3x1xi32>, %u: {_tensor((3,), narrow)})
        -> {_tensor((4,), wide)} {{
      %0 = "stablehlo.scatter"(%a, %i, %u) ({_body(wide)}) {{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
        : ({operands}) -> {_tensor((4,), wide)}
      return %0 : {_tensor((4,), wide)} }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    values, updates = _numbers((4,), narrow), _numbers((3,), narrow, 1)
    expected = values.astype(TYPES[wide])
    for at, update in zip((1, 1, 3), updates, strict=True):
        expected[at] += update.astype(TYPES[wide])
    _check(artifact, [values, np.array([[1], [1], [3]], np.int32), updates], expected)


def test_scatter_of_several_operands() -> None:
    program = f"""func.func @main(%a: tensor<4xi8>, %b: tensor<4xbf16>, %i: tensor<2x1xi32>, %u: tensor<2xi8>,
        %v: tensor<2xbf16>) -> (tensor<4xi32>, tensor<4xf32>) {{
      %0:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) ({_body("i32", "f32")}) {{scatter_dimension_numbers =
        #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
        : (tensor<4xi8>, tensor<4xbf16>, tensor<2x1xi32>, tensor<2xi8>, tensor<2xbf16>)
        -> (tensor<4xi32>, tensor<4xf32>)
      return %0#0, %0#1 : tensor<4xi32>, tensor<4xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    a, b = np.full(4, 100, np.int8), np.full(4, 256, TYPES["bf16"])
    given = [a, b, np.array([[0], [0]], np.int32), a[:2], np.ones(2, TYPES["bf16"])]
    _check(artifact, given, np.array([300, 100, 100, 100], np.int32), np.array([258, 256, 256, 256], np.float32))


def _select_and_scatter(narrow: str, wide: str, compared: str) -> str:
    of_compared = f"tensor<{compared}>"
    operands = f"{_tensor((4,), narrow)}, {_tensor((3,), narrow)}, {_tensor((), narrow)}"
    return f"""func.func @main(%a: {_tensor((4,), narrow)}, %u: {_tensor((3,), narrow)}, %i: {_tensor((), narrow)})
        -> {_tensor((4,), wide)} {{
      %0 = "stablehlo.select_and_scatter"(%a, %u, %i) ({{ ^bb0(%x: {of_compared}, %y: {of_compared}):
        %z = stablehlo.add %y, %y : {of_compared}
        %s = stablehlo.compare GE, %x, %z : ({of_compared}, {of_compared}) -> tensor<i1>
        stablehlo.return %s : tensor<i1> }}, {_body(wide)}) {{window_dimensions = array<i64: 2>,
        window_strides = array<i64: 1>, mhlo.note = "kept"}} : ({operands}) -> {_tensor((4,), wide)}
      return %0 : {_tensor((4,), wide)} }}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("narrow", "wide", "compared"),
    [
        ("bf16", "f32", "bf16"),
        ("bf16", "f32", "f32"),
        ("f32", "f64", "f32"),
        ("f8E5M2", "f16", "f8E5M2"),
        ("f8E5M2", "f16", "f16"),
        # The verifier wants the type of the operand, if these are integers.
        ("i8", "i32", "i8"),
    ],
)
def test_select_and_scatter(narrow: str, wide: str, compared: str) -> None:
    artifact, _ = expanded(_select_and_scatter(narrow, wide, compared), FEATURE, "0.9.0")
    assert artifact.text().count('"kept"') == 1
    # Twice 100 is -56 in i8, which is less than 7: the select compares in its own type.
    values = np.array([7, 100, 40, 21]).astype(TYPES[narrow])
    updates = np.array([96, 96, 80]).astype(TYPES[narrow])
    typed = values.astype(TYPES[compared])
    twice = typed + typed
    expected = np.zeros(4, TYPES[wide])
    for at, update in enumerate(updates):
        expected[at if typed[at] >= twice[at + 1] else at + 1] += update.astype(TYPES[wide])
    _check(artifact, [values, updates, np.zeros((), TYPES[narrow])], expected)


def test_select_and_scatter_of_a_type_that_the_wide_one_does_not_hold() -> None:
    with pytest.raises(vt.DowngradeError, match="bf16 does not hold every f16 that select compares"):
        vt.serialize(_select_and_scatter("f16", "bf16", "f16"), "0.9.0", expand=True)
    expanded(_select_and_scatter("f16", "bf16", "bf16"), FEATURE, "0.9.0")


def test_quantized_elements() -> None:
    narrow, wide = "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i32:f32, 0.5>"
    with pytest.raises(vt.DowngradeError, match="elements of type .*quant.*, which convert does not support"):
        vt.serialize(_reduce((3,), (0,), narrow, wide), "0.16.0", expand=True)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_all_reduce(count: int) -> None:
    groups = f"dense<[{list(range(count // 2))}, {list(range(count // 2, count))}]> : tensor<2x{count // 2}xi64>"
    program = f"""func.func @main(%a: tensor<3xbf16>) -> tensor<3xf32> {{
      %0 = "stablehlo.all_reduce"(%a) ({_body("f32")}) {{replica_groups = {groups}}} : (tensor<3xbf16>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    inputs = [[_numbers((3,), "bf16", seed)] for seed in range(count)]
    check_same_on_devices(program, artifact, inputs, engines=["reference"], replicas=count)
    for engine in ENGINES:
        found = vt.run_parallel(artifact, inputs, engine=engine, replicas=count)
        for at, (result,) in enumerate(found):
            start = at // (count // 2) * (count // 2)
            group = inputs[start : start + count // 2]
            np.testing.assert_array_equal(result, sum(each.astype(np.float32) for (each,) in group))


def test_several_operands_of_all_reduce() -> None:
    program = f"""func.func @main(%a: tensor<3xi8>, %b: tensor<2xi8>) -> (tensor<3xi32>, tensor<2xi32>) {{
      %0:2 = "stablehlo.all_reduce"(%a, %b) ({_body("i32")}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<3xi8>, tensor<2xi8>) -> (tensor<3xi32>, tensor<2xi32>)
      return %0#0, %0#1 : tensor<3xi32>, tensor<2xi32> }}"""
    # The several operands are a feature of their own, which is newer than this one.
    with pytest.raises(vt.DowngradeError, match="needs StableHLO 1.5.0") as caught:
        vt.serialize(program, version_before(FEATURE), expand=[FEATURE])
    assert "accumulate" not in str(caught.value)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("narrow", "wide"), [("i8", "i32"), ("bf16", "f32"), ("f32", "f64")])
@pytest.mark.parametrize("count", [2, 4])
def test_several_operands_of_all_reduce_become_one_each_and_are_converted(count: int, narrow: str, wide: str) -> None:
    shapes: list[tuple[int, ...]] = [(3,), (), (2, 2)]
    takes, gives = ([_tensor(shape, element) for shape in shapes] for element in (narrow, wide))
    types, results = ", ".join(takes), ", ".join(gives)
    arguments = ", ".join(f"%a{at}: {type_} {{tf.aliasing_output = {at} : i32}}" for at, type_ in enumerate(takes))
    program = f"""func.func @main({arguments}) -> ({types}, {results}) {{
      %0:3 = "stablehlo.all_reduce"(%a0, %a1, %a2) ({_body(wide)}) {{mhlo.note = "kept",
        replica_groups = dense<[{list(range(count))}]> : tensor<1x{count}xi64>}} : ({types}) -> ({results})
      return %a0, %a1, %a2, %0#0, %0#1, %0#2 : {types}, {results} }}"""
    artifact = vt.serialize(program, "0.9.0", expand=True)
    assert [each.feature for each in artifact.findings] == ["variadic_collectives", *[FEATURE] * len(shapes)]
    text = str(vt.deserialize(artifact))
    assert text.count("tf.aliasing_output") == text.count('mhlo.note = "kept"') == len(shapes)
    inputs = [[_numbers(shape, narrow, 10 * seed + len(shape)) for shape in shapes] for seed in range(count)]
    for engine in ENGINES:
        for found in vt.run_parallel(artifact, inputs, engine=engine, replicas=count):
            for at, result in enumerate(found[len(shapes) :]):
                np.testing.assert_array_equal(result, sum(each[at].astype(TYPES[wide]) for each in inputs))


@pytest.mark.parametrize("count", [2, 4, 8])
def test_reduce_scatter(count: int) -> None:
    program = f"""func.func @main(%a: tensor<{2 * count}xbf16>) -> tensor<2xf32> {{
      %0 = "stablehlo.reduce_scatter"(%a) ({_body("f32")}) {{scatter_dimension = 0 : i64,
        replica_groups = dense<[{list(range(count))}]> : tensor<1x{count}xi64>}}
        : (tensor<{2 * count}xbf16>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }}"""
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    inputs = [[_numbers((2 * count,), "bf16", seed)] for seed in range(count)]
    total = np.sum([each.astype(np.float32) for (each,) in inputs], axis=0)
    for engine in ENGINES:
        for at, (result,) in enumerate(vt.run_parallel(artifact, inputs, engine=engine, replicas=count)):
            np.testing.assert_array_equal(result, total[2 * at : 2 * at + 2])


def test_reductions_of_one_type_remain() -> None:
    for narrow in ("bf16", "f32"):
        program = _reduce((3, 5), (0,), narrow, narrow)
        assert vt.serialize(program, "0.9.0", expand=[FEATURE]) == vt.serialize(program, "0.9.0")


def test_an_expansion_inside_of_another() -> None:
    inner = """%r = stablehlo.reshape %x0 : (tensor<f32>) -> tensor<1xf32>
        %w = "stablehlo.reduce"(%r, %y0) ({ ^bb0(%p: tensor<f64>, %q: tensor<f64>):
        %t = stablehlo.add %p, %q : tensor<f64> stablehlo.return %t : tensor<f64> })
        {dimensions = array<i64: 0>} : (tensor<1xf32>, tensor<f32>) -> tensor<f64>
        %n = stablehlo.convert %w : (tensor<f64>) -> tensor<f32>"""
    program = f"""func.func @main(%a: tensor<3xbf16>, %i: tensor<bf16>) -> tensor<f32> {{
      %0 = "stablehlo.reduce"(%a, %i) ({{ ^bb0(%x0: tensor<f32>, %y0: tensor<f32>): {inner}
        stablehlo.return %n : tensor<f32> }}) {{dimensions = array<i64: 0>}}
        : (tensor<3xbf16>, tensor<bf16>) -> tensor<f32>
      return %0 : tensor<f32> }}"""
    artifact, notes = expanded(program, FEATURE, "0.9.0")
    assert len(notes) == 2
    values = _numbers((3,), "bf16")
    (found,) = vt.run(artifact, [values, TYPES["bf16"](2)], engine="reference")
    assert found == values.astype(np.float32).sum() + 2
