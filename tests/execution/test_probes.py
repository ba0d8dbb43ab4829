"""Intermediate values of a run."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.execution import parse_tensor_type
from vhlo_tools.execution.stepping.stepper import Stepper
from vhlo_tools.execution.stepping.steps import evaluate_here
from vhlo_tools.program import load_program

ELEMENTS = [
    "i1", *(f"{sign}{bits}" for sign in ("i", "ui") for bits in (2, 4, 8, 16, 32, 64)), "f16", "f32", "f64", "bf16",
    "complex<f32>", "complex<f64>", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ",
    "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU",
]  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("element", ELEMENTS)
def test_values_of_every_type_are_kept_in_files(element: str, tmp_path: Path) -> None:
    dtype = parse_tensor_type(f"tensor<{element}>").dtype
    arrays = [np.resize(np.array([1, 0, 1]), shape).astype(dtype) for shape in ((3,), (), (0, 2))]
    kinds = [f"tensor<{''.join(f'{size}x' for size in array.shape)}{element}>" for array in arrays]
    body = "".join(
        f"%{index} = stablehlo.reverse %a{index}, dims = [{', '.join(map(str, range(array.ndim)))}] : {kind}\n"
        for index, (array, kind) in enumerate(zip(arrays, kinds, strict=True))
    )
    taken = ", ".join(f"%a{index}: {kind}" for index, kind in enumerate(kinds))
    text = f"func.func @main({taken}) -> ({', '.join(kinds)}) {{ {body} return %0, %1, %2 : {', '.join(kinds)} }}"
    probe = vt.Probe(folder=tmp_path)
    vt.run(text, arrays, probe=probe)
    for array, value, kept in zip(arrays, vt.read_probes(tmp_path), probe.values, strict=True):
        assert (value.dtype, value.shape) == (dtype.name, array.shape)
        assert value.read().dtype == dtype
        assert value.read().tobytes() == kept.read().tobytes() == np.flip(array).tobytes()


def test_quantized_values_are_kept_as_they_are_stored() -> None:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.5>>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.add %a, %a : {kind} return %0 : {kind} }}"
    probe = vt.Probe()
    vt.run(text, [np.array([1, 2], np.int8)], probe=probe)
    assert [(each.dtype, each.read().tolist()) for each in probe.values] == [("int8", [2, 4])]


NESTED = """func.func private @step(%v: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.multiply %v, %v : tensor<f32> loc("model.py":7:3)
  return %0 : tensor<f32>
}
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<f32>
    cond { %c = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do {
      %s:2 = stablehlo.while(%k = %i, %w = %v) : tensor<i32>, tensor<f32>
        cond { %c = stablehlo.compare LT, %k, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1> }
        do {
          %x = func.call @step(%w) : (tensor<f32>) -> tensor<f32>
          %l = stablehlo.add %k, %one : tensor<i32>
          stablehlo.return %l, %x : tensor<i32>, tensor<f32>
        }
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s#1 : tensor<i32>, tensor<f32>
    }
  return %r#1 : tensor<f32>
}"""
A = np.array(3, np.float32)


def test_values_in_nested_loops_and_functions_come_with_their_iterations() -> None:
    probe = vt.Probe("multiply")
    assert vt.run(NESTED, [A], probe=probe)[0] == 3**8
    assert [(each.iteration, float(each.read())) for each in probe.values] == [
        ((0, 0), 9),
        ((0, 1), 81),
        ((1, 0), 6561),
    ]
    site = probe.values[0].site
    assert (site.path, site.function, site.location) == ("@step/0:stablehlo.multiply", "step", '"model.py":7:3')


def test_ops_are_chosen_by_location_and_by_function() -> None:
    counts = []
    for pattern, function in ((r"model\.py.:7", None), (None, "step"), ("compare", "main")):
        probe = vt.Probe(pattern, function)
        vt.run(NESTED, [A], probe=probe)
        counts.append(len(probe.values))
    assert counts == [3, 3, 3 + 3 + 2]


def test_all_ops_are_probed_without_a_pattern() -> None:
    probe = vt.Probe()
    vt.run(NESTED, [A], probe=probe)
    paths = {each.site.path for each in probe.values}
    assert "@main/3:stablehlo.while" in paths
    assert "@main/3:stablehlo.while/1/0:stablehlo.while/1/0:func.call" in paths
    assert "@main/3:stablehlo.while/0/0:stablehlo.compare" in paths


def test_what_functions_and_loops_take_is_kept_if_asked_for() -> None:
    probe = vt.Probe("argument", "step", arguments=True)
    vt.run(NESTED, [A], probe=probe)
    assert [(each.site.path, each.iteration, float(each.read())) for each in probe.values] == [
        ("@step", (0, 0), 3), ("@step", (0, 1), 9), ("@step", (1, 0), 81)
    ]  # fmt: skip


def test_values_are_those_of_the_op_whatever_it_becomes() -> None:
    text = """func.func @main(%a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<2xf32> {
      %0 = stablehlo.divide %a, %b : tensor<2xi32>
      %1 = stablehlo.convert %0 : (tensor<2xi32>) -> tensor<2xf32>
      %2 = chlo.erf %1 : tensor<2xf32> -> tensor<2xf32>
      return %2 : tensor<2xf32> }"""
    probe = vt.Probe("divide|erf")
    (result,) = vt.run(text, [np.array([7, 1], np.int32), np.array([2, 0], np.int32)], probe=probe)
    assert [each.site.op for each in probe.values] == ["stablehlo.divide", "chlo.erf"]
    assert probe.values[0].read().tolist() == [3, -1]
    assert probe.values[1].read().tolist() == result.tolist()


def test_values_of_dynamic_shape_are_kept_with_the_shape_that_they_have() -> None:
    text = """func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.add %a, %a : tensor<?xf32> return %0 : tensor<?xf32> }"""
    executable = vt.load_executable(text)
    for size in (2, 3):
        probe = vt.Probe()
        executable.run([np.ones(size, np.float32)], probe=probe)
        assert [each.shape for each in probe.values] == [(size,)]


def test_all_values_of_a_segment_come_from_one_evaluation() -> None:
    evaluated = []

    def evaluate(*taken: Any) -> Any:
        evaluated.append(taken[1])
        return evaluate_here(*taken)

    body = "".join(f"%{number + 1} = stablehlo.add %{number}, %{number} : tensor<f32>\n" for number in range(50))
    text = f"func.func @main(%0: tensor<f32>) -> tensor<f32> {{ {body} return %50 : tensor<f32> }}"
    probe = vt.Probe()
    Stepper(load_program(text), None, evaluate).run([A], probe)
    assert [float(each.read()) for each in probe.values] == [3.0 * 2**number for number in range(1, 51)]
    assert len(evaluated) == 1


def test_large_values_are_not_all_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vhlo_tools.execution.stepping.planning._PROBED", 100)
    evaluated = []

    def evaluate(*taken: Any) -> Any:
        results = evaluate_here(*taken)
        evaluated.append(sum(each.nbytes for each in results))
        return results

    body = "".join(f"%{number + 1} = stablehlo.add %{number}, %{number} : tensor<8xf32>\n" for number in range(20))
    text = f"func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {{ {body} return %20 : tensor<8xf32> }}"
    probe = vt.Probe()
    Stepper(load_program(text), None, evaluate).run([np.ones(8, np.float32)], probe)
    assert [each.read()[0] for each in probe.values] == [2.0**number for number in range(1, 21)]
    assert max(evaluated) == 4 * 32


def test_more_than_may_stay_in_memory_is_refused() -> None:
    with pytest.raises(vt.EngineError, match="exceed the memory limit at @.*: give the probe a folder"):
        vt.run(NESTED, [A], probe=vt.Probe(memory=30))


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(vt.InvalidInputError, match=r"'\(' is not a valid regular expression"):
        vt.Probe("(")


def test_xla_shows_no_intermediate_values() -> None:
    with pytest.raises(vt.EngineError, match="use the engine reference for probes"):
        vt.run(NESTED, [A], engine="xla", probe=vt.Probe())


def test_the_command_line_writes_an_index_that_tables_are_read_from(tmp_path: Path) -> None:
    (tmp_path / "nested.mlir").write_text(NESTED)
    folder = tmp_path / "probes"
    arguments = ["run", str(tmp_path / "nested.mlir"), "-i", "3.0", "--probe", str(folder), "--probe-ops", "multiply"]
    assert main(arguments) == 0
    with (folder / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["iteration"]) for row in rows] == [
        ("000000.npy", "[0, 0]"), ("000001.npy", "[0, 1]"), ("000002.npy", "[1, 0]")
    ]  # fmt: skip
    columns = ["file", "op", "result", "dtype", "shape", "location", "path", "function", "iteration", "device"]
    assert list(rows[0]) == columns
    assert np.load(folder / "000001.npy") == 81
    assert main(arguments) == 2
    assert main([*arguments, "--force"]) == 0


def test_options_of_probes_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nested.mlir").write_text(NESTED)
    assert main(["run", str(tmp_path / "nested.mlir"), "-i", "3.0", "--probe-ops", "multiply"]) == 2
    assert "--probe-ops and --probe-function require --probe DIR" in capsys.readouterr().err


def test_bits_of_small_floats_are_read_back(tmp_path: Path) -> None:
    text = """func.func @main(%a: tensor<256xf8E5M2>) -> tensor<256xf8E5M2> {
      %0 = stablehlo.reverse %a, dims = [0] : tensor<256xf8E5M2> return %0 : tensor<256xf8E5M2> }"""
    array = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    vt.run(text, [array], probe=vt.Probe(folder=tmp_path))
    (value,) = vt.read_probes(tmp_path)
    assert value.read().view(np.uint8).tolist() == list(range(255, -1, -1))
