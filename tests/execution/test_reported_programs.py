"""Programs after public reports about engines, on which XLA or the interpreter has other results than frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import ROOT
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.bindings import xla_client
from vhlo_tools.execution import parse_tensor_type

pytestmark = pytest.mark.every_python

REPORTS = ROOT / "tests" / "programs" / "reports"
Array = np.ndarray[Any, Any]
ZEROS, OUTSIDE = np.zeros(6, np.float32), np.array([[0], [5], [-1]], np.int32)
PARTLY = [np.array([1, 1, 0, 0, 0, 0], np.float32)]


def of_rank_7() -> Iterator[Array]:
    rng = np.random.default_rng(0)
    while True:
        yield rng.integers(-3, 4, (3, 1, 2, 2, 8, 8, 8)).astype(np.float32)


A, B = (each for each, _ in zip(of_rank_7(), range(2), strict=False))
ROWS = np.arange(32769, dtype=np.float32)[:, None] * [1, 0, 0]
BASE = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)[::-1]
DILATED = np.insert(BASE, range(1, 128), -np.inf, axis=1)
ORDER = np.random.default_rng(0).permutation(96).astype(np.float32).reshape(3, 4, 8)
PAIRS = [np.array(each, np.int32) for each in ([0, 0, 0], [0, 0, 0], [1, 2], [3, 4])]

CASES: dict[str, tuple[list[Array], list[Array]]] = {
    "first_of_a_sort_with_an_iota_of_another_dimension": (
        [ORDER],
        [-np.sort(-ORDER)[..., :2], np.arange(4, dtype=np.int32)[:, None] * np.ones((3, 4, 2), np.int32)],
    ),
    "gradient_of_a_gather_partly_outside": ([ZEROS, OUTSIDE], PARTLY),
    "rows_squared": ([ROWS.astype(np.float32), np.eye(3, dtype=np.float32)], [ROWS[:, 0].astype(np.float32) ** 2]),
    "scatter_of_one_value_twice": (PAIRS, [np.array(each, np.int32) for each in ([1, 2, 0], [3, 4, 0])]),
    "scatter_of_windows_partly_outside": ([ZEROS, OUTSIDE, np.ones((3, 2), np.float32)], PARTLY),
    "scatter_without_an_index": (
        [np.array([10], np.int32), np.zeros((3, 0), np.int32), np.array([[1], [2], [4]], np.int32)],
        [np.array([17], np.int32)],
    ),
    "sum_of_products_of_rank_7": ([A, B], [(A * B).sum(3)]),
    "update_by_a_shifted_slice_of_itself": (
        [np.arange(4, dtype=np.int32).reshape(4, 1, 1)],
        [np.array([1, 1, 2, 3], np.int32).reshape(1, 4, 1)],
    ),
    "windows_over_a_dilated_base": ([BASE.copy()], [DILATED.reshape(32, 2, 255).max(1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_engine_computes_what_frameworks_do(name: str) -> None:
    inputs, expected = CASES[name]
    # The interpreter takes a second for a small product of so many rows.
    for engine in ("auto", "xla") if name == "rows_squared" else ("auto", "reference", "xla"):
        results = vt.run(REPORTS / f"{name}.mlir", inputs, engine=engine)
        for number, (result, right) in enumerate(zip(results, expected, strict=True)):
            np.testing.assert_array_equal(result, right, f"output {number} on {engine}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("element", ["i1", "i8", "i32", "f32", "bf16", "complex<f32>"])
@pytest.mark.parametrize("operands", ["one value", "equal constants", "equal constants of two values", "equal sums"])
def test_a_scatter_of_operands_that_are_equal(operands: str, element: str) -> None:
    body = {"i1": "or", "complex<f32>": "add"}.get(element, "maximum")
    for count in (2, 3, 5):
        names = [f"%o{number}" for number in range(count)]
        made = {
            "one value": "",
            "equal constants": "stablehlo.constant dense<{}>",
            # Not a splat: XLA computes calls of these.
            "equal constants of two values": "stablehlo.constant dense<[{0}, {1}, {0}]>",
            "equal sums": "stablehlo.add %o, %o",
        }
        zero = {"i1": "false", "complex<f32>": "(0.0, 0.0)"}.get(element, "0" if element[0] == "i" else "0.0")
        one = zero.replace("0", "1", 1).replace("false", "true")
        lines = [f"{name} = {made[operands].format(zero, one)} : tensor<3x{element}>" for name in names]
        if operands == "one value":
            names, lines = ["%o"] * count, []
        scalars = ", ".join(f"%{side}{number}: tensor<{element}>" for side in "ab" for number in range(count))
        maxima = "\n".join(
            f"%m{number} = stablehlo.{body} %a{number}, %b{number} : tensor<{element}>" for number in range(count)
        )
        wholes, parts, each = (", ".join([f"tensor<{size}{element}>"] * count) for size in ("3x", "2x", ""))
        updates = [f"%u{number}" for number in range(count)]
        text = f"""func.func @main(%o: tensor<3x{element}>, {", ".join(f"{u}: tensor<2x{element}>" for u in updates)})
            -> ({wholes}) {{
          {" ".join(lines)}
          %i = stablehlo.constant dense<[[0], [2]]> : tensor<2x1xi32>
          %r:{count} = "stablehlo.scatter"({", ".join(names)}, %i, {", ".join(updates)}) <{{
            scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
              scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
            ^bb0({scalars}):
              {maxima}
              stablehlo.return {", ".join(f"%m{number}" for number in range(count))} : {each}
          }}) : ({wholes}, tensor<2x1xi32>, {parts}) -> ({wholes})
          return {", ".join(f"%r#{number}" for number in range(count))} : {wholes}
        }}"""
        dtype = parse_tensor_type(f"tensor<{element}>").dtype
        given = [np.array([number % 2, 1 + number]).astype(dtype) for number in range(count)]
        for engine in ("reference", "xla"):
            results = vt.run(text, [np.zeros(3, dtype), *given], engine=engine)
            for result, update in zip(results, given, strict=True):
                middle = operands == "equal constants of two values"
                np.testing.assert_array_equal(result, np.array([update[0], middle, update[1]]).astype(dtype), engine)


@pytest.mark.sample(2)
@pytest.mark.parametrize("size", [8, 300])
@pytest.mark.parametrize("payload", ["iota of the rows", "iota of the columns", "broadcast iota"])
def test_the_first_of_a_sort_with_an_iota(payload: str, size: int) -> None:
    of_all = f"tensor<40x{size}xi32>"
    along = {"iota of the rows": 0, "iota of the columns": 1, "broadcast iota": 0}[payload]
    made = f"%i = stablehlo.iota dim = {along} : {of_all}"
    if payload == "broadcast iota":
        made = f"""%0 = stablehlo.iota dim = 0 : tensor<40xi32>
          %i = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<40xi32>) -> {of_all}"""
    text = f"""func.func @main(%x: tensor<40x{size}xf32>) -> tensor<40x3xi32> {{
      {made}
      %s:2 = "stablehlo.sort"(%x, %i) <{{dimension = -1 : i64, is_stable = true}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
          %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %g : tensor<i1>
      }}) : (tensor<40x{size}xf32>, {of_all}) -> (tensor<40x{size}xf32>, {of_all})
      %r = stablehlo.slice %s#1 [0:40, 0:3] : ({of_all}) -> tensor<40x3xi32>
      return %r : tensor<40x3xi32>
    }}"""
    values = np.random.default_rng(size).permutation(40 * size).astype(np.float32).reshape(40, size)
    carried = np.broadcast_to(np.arange((40, size)[along])[:, None] if along == 0 else np.arange(size), (40, size))
    right = np.take_along_axis(carried, np.argsort(-values), 1)[:, :3]
    for engine in ("auto", "xla"):
        np.testing.assert_array_equal(vt.run(text, [values], engine=engine)[0], right, engine)


def test_a_scatter_without_an_index_of_every_form() -> None:
    for operand, update, numbers, indices in (
        ("", "2x3", "", "2x3x0"),
        ("2x3", "4x2x3", "update_window_dims = [1, 2],", "4x0"),
        ("2x3", "4x2", "update_window_dims = [1], inserted_window_dims = [1],", "0x4"),
        (
            "2x3",
            "2x3",
            "input_batching_dims = [0], scatter_indices_batching_dims = [0], update_window_dims = [1],",
            "2x0",
        ),
    ):
        vector = indices.split("x").index("0")
        types = [
            f"tensor<{shape}{'x' * bool(shape)}{element}>"
            for shape, element in ((operand, "i32"), (indices, "i8"), (update, "i32"))
        ]
        text = f"""func.func @main(%o: {types[0]}, %i: {types[1]}, %u: {types[2]}) -> {types[0]} {{
          %0 = "stablehlo.scatter"(%o, %i, %u) <{{
            scatter_dimension_numbers = #stablehlo.scatter<{numbers} index_vector_dim = {vector}>}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>):
              %s = stablehlo.add %a, %b : tensor<i32>
              stablehlo.return %s : tensor<i32>
          }}) : ({", ".join(types)}) -> {types[0]}
          return %0 : {types[0]}
        }}"""
        shapes = [[int(size) for size in shape.split("x") if size] for shape in (operand, indices, update)]
        updates = np.arange(np.prod(shapes[2]), dtype=np.int32).reshape(shapes[2])
        right = np.full(shapes[0], 100, np.int32)
        if "batching" in numbers:
            right += updates
        elif "inserted" in numbers:
            right[:, 0] += updates.sum(0)
        else:
            right += updates.sum(tuple(range(updates.ndim - right.ndim)))
        given = [np.full(shapes[0], 100, np.int32), np.zeros(shapes[1], np.int8), updates]
        for engine in ("reference", "xla"):
            np.testing.assert_array_equal(vt.run(text, given, engine=engine)[0], right, f"{operand} on {engine}")


def test_updates_of_an_array_by_itself_in_a_loop() -> None:
    text = """func.func @main(%x: tensor<64x1xi32>) -> tensor<1x64xi32> {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %o = stablehlo.constant dense<1> : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %z, %a = %x) : tensor<i32>, tensor<64x1xi32>
        cond {
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %s = stablehlo.slice %a [0:63, 0:1] : (tensor<64x1xi32>) -> tensor<63x1xi32>
          %u = stablehlo.add %s, %s : tensor<63x1xi32>
          %b = stablehlo.dynamic_update_slice %a, %u, %o, %z
            : (tensor<64x1xi32>, tensor<63x1xi32>, tensor<i32>, tensor<i32>) -> tensor<64x1xi32>
          %j = stablehlo.add %i, %o : tensor<i32>
          stablehlo.return %j, %b : tensor<i32>, tensor<64x1xi32>
        }
      %y = stablehlo.reshape %r#1 : (tensor<64x1xi32>) -> tensor<1x64xi32>
      return %y : tensor<1x64xi32>
    }"""
    right = given = np.arange(64, dtype=np.int32).reshape(64, 1)
    for _ in range(5):
        right = np.concatenate([right[:1], 2 * right[:-1]])
    for engine in ("reference", "xla"):
        np.testing.assert_array_equal(vt.run(text, [given], engine=engine)[0], right.T, engine)


@pytest.mark.parametrize("attributes", ["", ", base_dilations = array<i64: 2>"], ids=["plain", "dilated"])
@pytest.mark.parametrize("padding", [(0, -1), (-1, 2), (-2, -1)])
def test_windows_of_one_element_with_negative_padding(padding: tuple[int, int], attributes: str) -> None:
    """XLA aborts on them."""
    given = np.arange(1, 6, dtype=np.float32)
    holes = given if not attributes else np.insert(given, range(1, 5), 0)
    low, high = padding
    right = np.pad(holes, (max(low, 0), max(high, 0)))[max(-low, 0) : len(holes) + max(low, 0) + high]
    kind, result = "tensor<5xf32>", f"tensor<{len(right)}xf32>"
    text = f"""func.func @main(%a: {kind}) -> {result} {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %r = "stablehlo.reduce_window"(%a, %c) <{{window_dimensions = array<i64: 1>,
        padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>{attributes}}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({kind}, tensor<f32>) -> {result}
      return %r : {result}
    }}"""
    for engine in ("reference", "xla"):
        np.testing.assert_array_equal(vt.run(text, [given], engine=engine)[0], right, engine)


def test_the_report_says_where_a_run_is_not_as_specified() -> None:
    inputs, _ = CASES["scatter_of_windows_partly_outside"]
    for engine in ("reference", "xla"):
        executable = vt.load_executable(REPORTS / "scatter_of_windows_partly_outside.mlir", engine=engine)
        note, *faults = executable.execute(inputs).report.notes
        assert note.startswith("a window of a scatter that is partly outside")
        assert str(executable.execute(inputs).report).endswith("\n".join((note, *faults)))
        assert faults == [str(each) for each in executable.known_faults]


def test_translate_interprets_as_specified(tmp_path: Path) -> None:
    constants = """
      %arg0 = stablehlo.constant dense<0.0> : tensor<6xf32>
      %arg1 = stablehlo.constant dense<[[0], [5], [-1]]> : tensor<3x1xi32>
      %arg2 = stablehlo.constant dense<1.0> : tensor<3x2xf32>
    """
    text = (REPORTS / "scatter_of_windows_partly_outside.mlir").read_text()
    arguments, _, rest = text.partition("@main(")[2].partition(") -> (")
    head, begin, body = rest.partition("{\n")
    text = text.replace(arguments, "").replace(rest, f"{head}{begin}{constants}{body}")
    program, out = tmp_path / "program.mlir", tmp_path / "out.txt"
    program.write_text(text)
    assert vt.run(program, [])[0].tolist() == [1, 1, 0, 0, 0, 0]
    # The command forks, which JAX in a process of other tests warns of.
    assert vhlo("translate", "--interpret", str(program), "-o", str(out)).returncode == 0
    shown = out.read_text().partition("[")[2].partition("]")[0]
    assert [float(each) for each in shown.split(",")] == [2, 1, 0, 0, 0, 1]


def test_an_option_that_a_release_does_not_know_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "xla_option_of_another_release"
    unknown = xla_client.JudgeOption("1", "", ())
    monkeypatch.setattr(xla_client, "JUDGE_OPTIONS", {name: unknown, **xla_client.JUDGE_OPTIONS})
    text = "func.func @main(%a: tensor<i32>) -> tensor<i32> { return %a : tensor<i32> }"
    executable = vt.load_executable(text, engine="xla", in_process=True)
    assert executable.run([np.array(3, np.int32)])[0] == 3
    assert name in xla_client._lacking
    assert not set(xla_client._lacking) & set(xla_client.JUDGE_OPTIONS) - {name}


@pytest.mark.every_python
@pytest.mark.parametrize("element", ["complex<f32>", "complex<f64>"])
def test_sums_of_complex_numbers_and_a_constant_are_computed(element: str) -> None:
    kind = f"tensor<2x{element}>"
    body = f"%c = stablehlo.constant dense<(0.0, 1.0)> : {kind}\n%r = stablehlo.add %a, %c : {kind}"
    (found,) = vt.run(
        f"func.func @main(%a: {kind}) -> {kind} {{\n{body}\nreturn %r : {kind}\n}}", [[1, 2j]], engine="xla"
    )
    assert found.tolist() == [1 + 1j, 3j]


def test_what_an_op_is_computed_from_may_be_far_away() -> None:
    lines = [f"%{i + 1} = stablehlo.reshape %{i} : (tensor<1xf32>) -> tensor<1xf32>" for i in range(3000)]
    text = "func.func @main(%a: tensor<1xf32>) -> tensor<1xf32> {\n%0 = stablehlo.divide %a, %a : tensor<1xf32>\n"
    text += "\n".join([*lines, "%r = stablehlo.divide %3000, %a : tensor<1xf32>", "return %r : tensor<1xf32>", "}"])
    assert vt.run(text, [[2]], engine="xla")[0].tolist() == [0.5]
