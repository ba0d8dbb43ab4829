"""Batching dimensions of gather and scatter as indices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.both_engines import tensor
from support.element_types import TYPES
from support.expansions import ENGINES, check_same, check_same_on_devices, expanded

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.conversion.fidelity import expansion
from vhlo_tools.program import load_program

_FEATURE = "gather_scatter_batching_dims"
_INTEGERS = ("i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui32", "ui64")
_LIMITS: Any = ml_dtypes.iinfo


@dataclass(frozen=True)
class Case:
    """A gather or a scatter."""

    operand: tuple[int, ...]  # the sizes of the operand
    slices: tuple[int, ...]  # the sizes of slices
    collapsed: tuple[int, ...]  # the dimensions of the operand that are collapsed
    batching: tuple[int, ...]  # the batching dimensions of the operand
    indices_batching: tuple[int, ...]  # the batching dimensions of the indices
    index_map: tuple[int, ...]  # the dimensions of the operand that are indexed
    vector: int  # the dimension of the indices with index vectors
    indices: tuple[int, ...]  # the sizes of the indices
    window: tuple[int, ...]  # the dimensions of the result with slices
    element: str = "i64"  # the type of the indices
    is_sorted: bool = False  # whether they are said to be sorted

    @property
    def result(self) -> tuple[int, ...]:
        """The sizes of what a gather gives, and a scatter takes."""
        whole = (*self.collapsed, *self.batching)
        of_slices = iter([size for index, size in enumerate(self.slices) if index not in whole])
        others = iter([size for index, size in enumerate(self.indices) if index != self.vector])
        rank = len(self.operand) - len(whole) + len(self.indices) - (self.vector < len(self.indices))
        return tuple(next(of_slices if index in self.window else others) for index in range(rank))

    def text(self, op: str = "gather", *, dynamic: str = "", attributes: str = "", inputs: int = 1) -> str:
        """Return a program; ``dynamic`` says which sizes are known at run time only: of the operand, the indices."""
        operand = tensor(self.operand, "f32")
        indices, result = tensor(self.indices, self.element), tensor(self.result, "f32")
        if "operand" in dynamic:
            operand = f"tensor<{'?x' * len(self.operand)}f32>"
        if "indices" in dynamic:
            indices = f"tensor<{'?x' * len(self.indices)}{self.element}>"
            result = f"tensor<{'?x' * len(self.result)}f32>"
        is_sorted = f", indices_are_sorted = {str(self.is_sorted).lower()}{attributes}"
        if op == "scatter":
            numbers = f"""scatter_dimension_numbers = #stablehlo.scatter<
              update_window_dims = {list(self.window)}, inserted_window_dims = {list(self.collapsed)},
              input_batching_dims = {list(self.batching)},
              scatter_indices_batching_dims = {list(self.indices_batching)},
              scatter_dims_to_operand_dims = {list(self.index_map)}, index_vector_dim = {self.vector}>{is_sorted}"""
            operands, updates = (", ".join([each] * inputs) for each in (operand, result))
            blocks = ", ".join(f"%x{index}: tensor<f32>" for index in range(2 * inputs))
            sums = "".join(
                f"%s{index} = stablehlo.add %x{index}, %x{inputs + index} : tensor<f32>\n" for index in range(inputs)
            )
            named = [", ".join(f"%{name}{index}" for index in range(inputs)) for name in "aus"]
            taken = [
                ", ".join(f"%{name}{index}: {type_}" for index in range(inputs))
                for name, type_ in (("a", operand), ("u", result))
            ]
            returned = ", ".join(f"%r#{index}" for index in range(inputs))
            scalars = ", ".join(["tensor<f32>"] * inputs)
            return f"""func.func @main({taken[0]}, %i: {indices}, {taken[1]}) -> ({operands}) {{
              %r:{inputs} = "stablehlo.scatter"({named[0]}, %i, {named[1]}) ({{
              ^bb0({blocks}):
                {sums}
                stablehlo.return {named[2]} : {scalars}
              }}) {{{numbers}}} : ({operands}, {indices}, {updates}) -> ({operands})
              return {returned} : {operands} }}"""
        numbers = f"""dimension_numbers = #stablehlo.gather<
            offset_dims = {list(self.window)}, collapsed_slice_dims = {list(self.collapsed)},
            operand_batching_dims = {list(self.batching)},
            start_indices_batching_dims = {list(self.indices_batching)}, start_index_map = {list(self.index_map)},
            index_vector_dim = {self.vector}>{is_sorted}"""
        if op == "dynamic_gather":
            sizes = f"tensor<{len(self.slices)}xi64>"
            return f"""func.func @main(%a: {operand}, %i: {indices}) -> {result} {{
              %s = stablehlo.constant dense<{list(self.slices)}> : {sizes}
              %0 = "stablehlo.dynamic_gather"(%a, %i, %s) {{{numbers}}} : ({operand}, {indices}, {sizes}) -> {result}
              return %0 : {result} }}"""
        sizes = ", ".join(map(str, self.slices))
        return f"""func.func @main(%a: {operand}, %i: {indices}) -> {result} {{
          %0 = "stablehlo.gather"(%a, %i) {{{numbers}, slice_sizes = array<i64: {sizes}>}}
            : ({operand}, {indices}) -> {result}
          return %0 : {result} }}"""

    def arrays(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Return an operand, indices of which some are out of bounds, and updates that are exact in sums."""
        info: Any = _LIMITS(TYPES[self.element])
        low, high = max(int(info.min), -2), min(int(info.max), max(self.operand, default=0) + 2)
        indices = rng.integers(low, high, self.indices, endpoint=True).astype(TYPES[self.element])
        if indices.size and high > 2:
            indices.flat[0] = info.max
            indices.flat[-1] = info.min
        operand, updates = (rng.integers(0, 99, each).astype(np.float32) for each in (self.operand, self.result))
        return operand, indices, updates


def _drawn(rng: np.random.Generator, element: str) -> Case:
    """Return a case of random ranks, sizes and orders."""
    kinds = [*["batch"] * int(rng.integers(1, 3)), *rng.choice(["collapsed", "offset"], int(rng.integers(0, 3)))]
    kinds = list(rng.permutation(kinds))
    operand = tuple(int(each) for each in rng.integers(1, 4, len(kinds)))
    if rng.random() < 0.1:
        operand = tuple(0 if kind == "batch" else size for kind, size in zip(kinds, operand, strict=True))
    slices = tuple(
        min(size, 1) if kind != "offset" else int(rng.integers(1, size + 1))
        for kind, size in zip(kinds, operand, strict=True)
    )
    batching, collapsed, offset = (
        [index for index, kind in enumerate(kinds) if kind == wanted] for wanted in ("batch", "collapsed", "offset")
    )
    # A dimension that is collapsed is indexed, and some of the others are.
    index_map = [int(each) for each in rng.permutation([*collapsed, *(each for each in offset if rng.random() < 0.5)])]
    # The batch dimensions of the indices by the batching dimensions that they belong to, others with their size.
    places: list[tuple[int | None, int]] = [(each, operand[each]) for each in batching]
    places += [(None, int(rng.integers(1, 4))) for _ in range(int(rng.integers(0, 3)))]
    places = [places[int(each)] for each in rng.permutation(len(places))]
    vector = int(rng.integers(0, len(places) + 1))
    if len(index_map) == 1 and rng.random() < 0.4:
        vector = len(places)
    else:
        places.insert(vector, (None, len(index_map)))
    rank = len(offset) + len(places) - (vector < len(places))
    return Case(
        operand,
        slices,
        tuple(collapsed),
        tuple(batching),
        tuple([owner for owner, _ in places].index(each) for each in batching),
        tuple(index_map),
        vector,
        tuple(size for _, size in places),
        tuple(sorted(int(each) for each in rng.choice(rank, len(offset), replace=False))),
        element,
    )


def _cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [_drawn(rng, _INTEGERS[index % len(_INTEGERS)]) for index in range(count)]


def _gathered(case: Case, operand: Any, indices: Any) -> Any:
    """Return what a gather gives, by the formula of the specification."""
    result = np.zeros(case.result, np.float32)
    for at in np.ndindex(*case.result):
        batch = [number for index, number in enumerate(at) if index not in case.window]
        offset = iter([at[index] for index in case.window])
        where: Any = [*batch[: case.vector], slice(None), *batch[case.vector :]]
        start = indices[tuple(where)] if case.vector < indices.ndim else [indices[tuple(batch)]]
        full = [0] * len(case.operand)
        for index, number in zip(case.index_map, start, strict=True):
            full[index] = min(max(int(number), 0), case.operand[index] - case.slices[index])
        for index, other in zip(case.batching, case.indices_batching, strict=True):
            full[index] = batch[other - (other > case.vector)]
        whole = (*case.collapsed, *case.batching)
        result[at] = operand[tuple(each + (0 if i in whole else next(offset)) for i, each in enumerate(full))]
    return result


@pytest.mark.long
def test_gathers_against_the_specification() -> None:
    rng = np.random.default_rng(1)
    for case in _cases(0, 24):
        program = case.text()
        artifact, _ = expanded(program, _FEATURE, "0.9.0")
        operand, indices, _ = case.arrays(rng)
        check_same(program, artifact, [[operand, indices]])
        (found,) = vt.run(artifact, [operand, indices], engine="reference")
        np.testing.assert_array_equal(found, _gathered(case, operand, indices), str(case))


@pytest.mark.long
def test_scatters() -> None:
    rng = np.random.default_rng(2)
    for index, case in enumerate(_cases(3, 16)):
        inputs = 1 + index % 2
        program = case.text("scatter", inputs=inputs)
        artifact, _ = expanded(program, _FEATURE, "0.9.0")
        operand, indices, updates = case.arrays(rng)
        check_same(program, artifact, [[*[operand] * inputs, indices, *[updates] * inputs]])


# Three starts in each of the batches, along the second dimension of the operand.
def _rows(batches: int, element: str, **others: Any) -> Case:
    return Case((batches, 5), (1, 1), (1,), (0,), (0,), (1,), 2, (batches, 3, 1), (), element, **others)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("batches", "element", "wider"),
    [
        (127, "i8", "si8"),
        (128, "i8", "si32"),
        (200, "i8", "si32"),
        (255, "ui8", "ui8"),
        (256, "ui8", "si32"),
        (9, "i4", "si32"),
        (15, "ui4", "ui4"),
        (300, "i32", "si32"),
        (2, "ui64", "ui64"),
    ],
)
def test_positions_fit_into_the_type_of_indices(batches: int, element: str, wider: str) -> None:
    case = _rows(batches, element)
    rng = np.random.default_rng(4)
    operand, indices, updates = case.arrays(rng)
    for op, arrays in (("gather", [operand, indices]), ("scatter", [operand, indices, updates])):
        program = case.text(op)
        artifact, _ = expanded(program, _FEATURE)
        (line,) = [each for each in artifact.text().splitlines() if "vhlo.concatenate" in each]
        written = wider.replace("si", "i") if wider.startswith("si") else wider
        assert f"-> !vhlo.tensor_v1<{batches}x3x2x!vhlo.{written}_v1>" in line.replace(")>", ">").replace("(", "")
        # XLA's own expansion of batching dimensions is wrong for indices of four bits.
        check_same(program, artifact, [arrays], engines=["reference"] if element == "i4" else ENGINES)


_ROWS_OF_SCALARS = Case((2, 5), (1, 1), (1,), (0,), (1,), (1,), 2, (3, 2), (), "i32")


@pytest.mark.sample(3)
@pytest.mark.parametrize("dynamic", ["operand", "indices", "operand indices"])
@pytest.mark.parametrize("case", [_rows(2, "i8"), _ROWS_OF_SCALARS], ids=["vectors", "scalars"])
@pytest.mark.parametrize("op", ["gather", "dynamic_gather"])
def test_sizes_that_are_known_at_run_time_only(dynamic: str, case: Case, op: str) -> None:
    program = case.text(op, dynamic=dynamic)
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    operand, indices, _ = case.arrays(np.random.default_rng(5))
    check_same(program, artifact, [[operand, indices]])
    (found,) = vt.run(artifact, [operand, indices], engine="reference")
    np.testing.assert_array_equal(found, _gathered(case, operand, indices))
    # Only a size that is known nowhere needs the widest type.
    written = artifact.text().rpartition("vhlo.concatenate_v1")[2].partition("->")[0]
    assert ("x!vhlo.i64_v1" in written) == (dynamic == "operand indices")


def test_scatter_of_dynamic_sizes() -> None:
    for case in (_rows(2, "i8"), _ROWS_OF_SCALARS):
        program = case.text("scatter", dynamic="operand indices")
        artifact, _ = expanded(program, _FEATURE, "0.9.0")
        check_same(program, artifact, [case.arrays(np.random.default_rng(6))])


def test_slices_without_elements() -> None:
    case = Case((2, 5), (0, 1), (1,), (0,), (0,), (1,), 2, (2, 3, 1), ())
    artifact, _ = expanded(case.text(), _FEATURE)
    check_same(case.text(), artifact, [case.arrays(np.random.default_rng(7))[:2]])


def _two(indices_batching: tuple[int, ...], vector: int, indices: tuple[int, ...]) -> Case:
    """Return a case of two batching dimensions whose indices are said to be sorted."""
    shape, slices = (2, 2, 5), (1, 1, 1)
    return Case(shape, slices, (2,), (0, 1), indices_batching, (2,), vector, indices, (), is_sorted=True)


def _says_sorted(text: str) -> bool:
    return "indices_are_sorted = #vhlo.bool_v1<true>" in text


@pytest.mark.sample(2)
@pytest.mark.parametrize("op", ["gather", "dynamic_gather", "scatter"])
def test_indices_are_said_to_be_sorted_only_if_they_are(op: str) -> None:
    plain: dict[str, Any] = {"is_sorted": True}
    cases = [
        (_rows(2, "i64", **plain), True),
        # Positions along the second dimension begin again for each row of the first.
        (Case((2, 5), (1, 1), (1,), (0,), (1,), (1,), 2, (3, 2, 1), (), **plain), False),
        (_two((0, 1), 3, (2, 2, 3, 1)), True),
        (_two((1, 2), 0, (1, 2, 2, 3)), True),
        (_two((1, 0), 3, (2, 2, 3, 1)), False),
        # The batching dimension is after the one that is indexed.
        (Case((5, 2), (1, 1), (0,), (1,), (0,), (0,), 2, (2, 3, 1), (), **plain), False),
    ]
    for case, remains in cases:
        program = case.text(op)
        artifact, _ = expanded(program, _FEATURE)
        assert _says_sorted(vt.serialize(program).text())
        assert _says_sorted(artifact.text()) == remains, case
        # Starts that are sorted, as is said.
        operand, indices, updates = case.arrays(np.random.default_rng(8))
        given = [operand, np.zeros_like(indices) + 1, *([updates] if op == "scatter" else [])]
        check_same(program, artifact, [given], engines=["xla"])


@pytest.mark.long
def test_the_pass_of_the_library_does_the_same(provider: Provider) -> None:
    for case, op in product(_cases(9, 15), ("gather", "scatter")):
        artifact, _ = expanded(case.text(op), _FEATURE, "1.0.0")
        module = load_program(case.text(op)).load()
        provider.run_passes(module, expansion(vt.Version("1.0.0")), verify=True)
        by_pass = vt.serialize(provider.text(module), "1.0.0")
        assert artifact.text() == by_pass.text(), case


def test_the_pass_of_the_library_says_sorted_of_indices_that_are_not(provider: Provider) -> None:
    # If this fails, a newer library is right, and the module should no longer say that it is not.
    case = Case((2, 5), (1, 1), (1,), (0,), (1,), (1,), 2, (3, 2, 1), (), is_sorted=True)
    module = load_program(case.text()).load()
    provider.run_passes(module, expansion(vt.Version("1.0.0")), verify=True)
    assert _says_sorted(vt.serialize(provider.text(module), "1.0.0").text())


def test_bounded_sizes_are_refused() -> None:
    program = (
        _rows(2, "i64")
        .text()
        .replace("tensor<2x3x1xi64>", "tensor<2x?x1xi64, #stablehlo.bounds<?, 3, ?>>")
        .replace("tensor<2x3xf32>", "tensor<2x?xf32, #stablehlo.bounds<?, 3>>")
    )
    with pytest.raises(vt.DowngradeError, match="cannot be expanded: the indices have bounded sizes"):
        vt.serialize(program, "1.0.0", expand=True)


def test_only_what_uses_batching_dimensions_changes() -> None:
    program = """func.func @main(%a: tensor<5xf32>, %i: tensor<3x1xi64>) -> tensor<3xf32> {
      %0 = "stablehlo.gather"(%a, %i) {
        dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1>, indices_are_sorted = true
      } : (tensor<5xf32>, tensor<3x1xi64>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }"""
    plain = vt.serialize(program, "1.0.0")
    assert bytes(vt.serialize(program, "1.0.0", expand=True)) == bytes(plain)


def test_attributes_aliases_and_devices() -> None:
    case = _rows(2, "i32")
    for op in ("gather", "scatter"):
        text = case.text(op, attributes=', my.tag = "kept"').replace(
            *("%i: tensor<2x3x1xi32>", "%i: tensor<2x3x1xi32> {tf.aliasing_output = 0 : i32}")
            if op == "gather"
            else ("%a0: tensor<2x5xf32>", "%a0: tensor<2x5xf32> {tf.aliasing_output = 0 : i32}")
        )
        artifact, _ = expanded(text, _FEATURE, "0.9.0")
        assert 'my.tag = #vhlo.string_v1<"kept">' in artifact.text()
        alias = '#vhlo.dict_v1<{#vhlo.string_v1<"tf.aliasing_output"> = #vhlo.integer_v1<0 : i32>}>'
        assert alias in artifact.text()
    rng = np.random.default_rng(10)
    program = case.text("scatter").replace("func.func", "module @m { func.func", 1) + " }"
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    for devices in (2, 4):
        check_same_on_devices(program, artifact, [case.arrays(rng) for _ in range(devices)], replicas=devices)


def test_within_a_loop() -> None:
    type_, indices = "tensor<2x5xf32>", "tensor<2x3x1xi32>"
    program = f"""func.func @main(%a: {type_}, %i: {indices}, %u: tensor<2x3xf32>) -> {type_} {{
      %z = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %0:2 = stablehlo.while(%n = %z, %b = %a) : tensor<i32>, {type_}
      cond {{
        %1 = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }} do {{
        %2 = "stablehlo.scatter"(%b, %i, %u) ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %4 = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %4 : tensor<f32>
        }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0],
          scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>
        }} : ({type_}, {indices}, tensor<2x3xf32>) -> {type_}
        %3 = stablehlo.add %n, %one : tensor<i32>
        stablehlo.return %3, %2 : tensor<i32>, {type_}
      }}
      return %0#1 : {type_} }}"""
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    check_same(program, artifact, [_rows(2, "i32").arrays(np.random.default_rng(11))])
