"""Programs on a plugin of PJRT that has a device: values of every type, shapes, donation, limits, refusals."""

from __future__ import annotations

import importlib
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES, FEATURES
from support.element_types import TYPES
from support.one_function import ALIASED, F32, LOOP, main, same_bits

import vhlo_tools as vt
from vhlo_tools.cli.main import main as vhlo
from vhlo_tools.compat import installed_plugins, plugin_library

#: XLA for the CPU, of StableHLO 1.13.3.
ENGINE = "pjrt:xla_cpu_pjrt"
#: It has none of these.
UNKNOWN = ("f6E2M3FN", "f6E3M2FN")


same = partial(same_bits, engine=ENGINE)


@pytest.mark.parametrize("element", [each for each in TYPES if each not in UNKNOWN])
def test_values_of_each_type(element: str) -> None:
    kind = f"tensor<8x{element}>"
    op = "or" if element == "i1" else "maximum" if element == "f8E8M0FNU" else "add"
    program = main(f"%0 = stablehlo.{op} %a, %b : {kind}", f"%a: {kind}, %b: {kind}", f"{kind}, {kind}", "%0, %a")
    values = np.array([1, 0, 1, 1, 0, 1, 1, 1] if element != "f8E8M0FNU" else [1, 2] * 4).astype(TYPES[element])
    same(program, [values, values[::-1].copy()])


@pytest.mark.parametrize("element", UNKNOWN)
def test_types_that_it_lacks_are_refused(element: str) -> None:
    kind = f"tensor<4x{element}>"
    with pytest.raises(vt.EngineError, match=r"the plugin cannot compile the text: "):
        vt.run(main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind), [[1, 1, 1, 1]], engine=ENGINE)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3, 5), (1,) * 12, (1 << 22,), (1025, 1023)])
def test_shapes_are_kept_by_rows(shape: tuple[int, ...]) -> None:
    sizes, turned = "".join(f"{each}x" for each in shape), "".join(f"{each}x" for each in reversed(shape))
    order = ", ".join(map(str, reversed(range(len(shape)))))
    program = main(
        f"%0 = stablehlo.transpose %a, dims = [{order}] : (tensor<{sizes}i32>) -> tensor<{turned}i32>",
        f"%a: tensor<{sizes}i32>",
        f"tensor<{turned}i32>",
    )
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    (found,) = vt.run(program, [array], engine=ENGINE)
    assert np.array_equal(found, array.T)
    # An input that is not contiguous.
    (back,) = vt.run(program, [np.array(array, order="F")], engine=ENGINE)
    assert np.array_equal(back, array.T)


def test_tuples_tokens_and_empty_arrays() -> None:
    program = """func.func @main(%t: !stablehlo.token, %a: tuple<tensor<2xf32>, tensor<0xi64>>)
        -> (!stablehlo.token, tuple<tensor<0xi64>, tensor<2xf32>>) {
      %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<2xf32>, tensor<0xi64>>) -> tensor<2xf32>
      %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<2xf32>, tensor<0xi64>>) -> tensor<0xi64>
      %2 = stablehlo.tuple %1, %0 : tuple<tensor<0xi64>, tensor<2xf32>>
      return %t, %2 : !stablehlo.token, tuple<tensor<0xi64>, tensor<2xf32>>
    }"""
    token, (empty, pair) = vt.run(program, [None, ([1, 2], np.zeros(0, np.int64))], engine=ENGINE)
    assert token is None
    assert empty.shape == (0,)
    assert pair.tolist() == [1, 2]


def test_dynamic_shapes_are_those_of_the_inputs() -> None:
    kind = "tensor<?x3xf32>"
    executable = vt.load_executable(main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind), engine=ENGINE)
    for size in (1, 4, 0, 4):
        (found,) = executable.run([np.ones((size, 3), np.float32)])
        assert found.shape == (size, 3)


def test_quantized_tensors_are_the_integers_that_they_are_stored_in() -> None:
    kind = "tensor<3x!quant.uniform<i8:f32, 0.5>>"
    same(main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind), [np.array([1, -4, 100], np.int8)])


def test_many_arguments_results_and_programs() -> None:
    """More programs than a child keeps, one of more arguments and results than any table of small ones holds."""
    for number in range(40):
        (found,) = vt.run(
            main(f"%c = stablehlo.constant dense<{number}> : tensor<i32>", "", "tensor<i32>", "%c"), [], engine=ENGINE
        )
        assert found == number
    count = 300
    names = [f"%a{number}" for number in range(count)]
    kinds = ", ".join(["tensor<i16>"] * count)
    taken = ", ".join(f"{name}: tensor<i16>" for name in names)
    program = f"func.func @main({taken}) -> ({kinds}) {{ return {', '.join(reversed(names))} : {kinds} }}"
    assert [int(each) for each in vt.run(program, list(range(count)), engine=ENGINE)] == list(reversed(range(count)))


def test_donated_inputs_are_deleted_and_reported_as_copied() -> None:
    buffer = vt.Buffer(np.ones(4, np.float32))
    execution = vt.load_executable(ALIASED, engine=ENGINE).execute([buffer], donate=(0,))
    assert buffer.is_deleted
    assert execution.outputs[0].tolist() == [2, 2, 2, 2]
    (report,) = execution.report.outputs
    assert report.placement == "copied"
    assert report.reason == "the plugin xla_cpu_pjrt writes results to memory of their own"


def test_an_input_that_is_not_donated_is_as_it_was() -> None:
    array = np.ones(4, np.float32)
    for _ in range(3):
        assert vt.run(ALIASED, [array], engine=ENGINE)[0].tolist() == [2, 2, 2, 2]
    assert array.tolist() == [1, 1, 1, 1]


def test_features_are_computed_or_refused() -> None:
    computed = set()
    for path in sorted(FEATURES.glob("*.mlir")):
        try:
            report = vt.verify(
                path, engines=["reference", ENGINE], rounds=8, tolerance=vt.Tolerance(relative=1e-3, absolute=1e-3)
            )
        except vt.VhloToolsError:
            continue
        assert report.passed, report
        assert report.on_engines is not None
        if ENGINE in report.on_engines.ran:
            computed.add(path.stem)
    assert {
        "composite",
        "dot_algorithm",
        "gather_scatter_batching_dims",
        "tan",
        "uniform_quantized_per_axis",
    } <= computed


def test_threads_share_one_child() -> None:
    found: list[Any] = []

    def work(number: int) -> None:
        program = main(f"%c = stablehlo.constant dense<{number}.0> : tensor<4xf32>\n%0 = stablehlo.add %a, %c : {F32}")
        found.append((number, vt.run(program, [[1, 2, 3, 4]], engine=ENGINE)[0].tolist()))

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [(number, [number + each for each in (1.0, 2.0, 3.0, 4.0)]) for number in range(6)]


def test_a_run_has_a_limit_of_time_and_the_next_program_runs(saxpy: str) -> None:
    executable = vt.load_executable(LOOP, engine=ENGINE)
    executable.prepare()
    with pytest.raises(vt.EngineTimeoutError, match=r"the text: the plugin xla_cpu_pjrt: .* after 1 s while at exec"):
        executable.run([1], timeout=1)
    assert vt.run(saxpy, [2, [1, 2, 3, 4], [1, 1, 1, 1]], engine=ENGINE)[0].tolist() == [3, 5, 7, 9]


def test_a_run_has_a_limit_of_memory(saxpy: str) -> None:
    kind = "tensor<4000000x4000xf32>"
    body = f"%0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> {kind}"
    with pytest.raises(vt.EngineError):
        vt.run(main(body, "%a: tensor<f32>", kind), [1], engine=ENGINE)
    assert vt.run(saxpy, [2, [1, 2, 3, 4], [1, 1, 1, 1]], engine=ENGINE)[0].tolist() == [3, 5, 7, 9]


CALL = main(f"%0 = stablehlo.custom_call @my_scale(%a) : ({F32}) -> {F32}")
RECURSIVE = main(f"%0 = func.call @main(%a) : ({F32}) -> {F32}")


def test_what_it_cannot_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(vt.EngineError, match=r"the plugin cannot compile the text: .*my_scale"):
        vt.load_executable(CALL, engine=ENGINE).prepare()
    with pytest.raises(vt.EngineError, match=r"cannot run func.call: it calls a recursive function"):
        vt.load_executable(RECURSIVE, engine=ENGINE).prepare()
    with pytest.raises(vt.EngineError, match=r"the plugin xla_cpu_pjrt cannot call handlers, here of my_scale: use"):
        vt.load_executable(CALL, engine=ENGINE, handlers={"my_scale": lambda _, x: x})
    with pytest.raises(vt.EngineError, match=r"the plugin xla_cpu_pjrt does not expose intermediate values"):
        vt.run(ALIASED, [[1, 2, 3, 4]], engine=ENGINE, probe=vt.Probe(folder=str(tmp_path / "probes")))
    with pytest.raises(vt.EngineError, match=r"the engine pjrt:xla_cpu_pjrt runs programs on one device: use the"):
        vt.run_parallel(ALIASED, [[[1, 2, 3, 4]]], replicas=1, engine=ENGINE)


def test_what_is_no_plugin_is_named(tmp_path: Path) -> None:
    broken, other = tmp_path / "broken.so", Path(str(importlib.import_module("numpy._core._multiarray_umath").__file__))
    broken.write_bytes(b"GetPjrtApi")
    for named, message in (
        ("none", r"the engine pjrt:none: no plugin 'none' is installed: .*; installed are .*xla_cpu_pjrt"),
        (str(tmp_path / "none.so"), r"none.so: no such file: expected the library of a plugin"),
        (str(broken), r"broken.so: it cannot be asked: "),
        (str(other), r"it cannot be asked: .*GetPjrtApi"),
    ):
        with pytest.raises(vt.EngineError, match=message):
            vt.run(ALIASED, [[1, 2, 3, 4]], engine=f"pjrt:{named}")
    for named in ("pjrt:", "pjrt", "PJRT:xla_cpu_pjrt"):
        with pytest.raises(ValueError, match=r"is not an engine: expected one of .*, or pjrt:PLUGIN"):
            vt.run(ALIASED, [[1, 2, 3, 4]], engine=named)


def test_it_takes_part_in_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step, saxpy = (str(EXAMPLES / f"{name}.mlir") for name in ("transformer_step", "saxpy"))
    assert vhlo(["verify", step, step, "--engines", f"xla,{ENGINE}", "--rounds", "2"]) == 0
    capsys.readouterr()
    engines = ["reference", "xla", ENGINE]
    assert vhlo(["verify", saxpy, "--engines", ",".join(engines), "--atol", "1e-4", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["on_engines"]
    ran = [(each["engine"], each["refusal"], len(each["rounds"]) > 1) for each in said["runs"]]
    assert ran == [(each, None, True) for each in engines]
    absent = ["reference", "xla", "pjrt:none"]
    assert vhlo(["verify", saxpy, "--engines", ",".join(absent), "--atol", "1e-4"]) == 0
    assert "no plugin 'none' is installed" in capsys.readouterr().out


def test_a_plugin_is_named_or_its_library_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = plugin_library("xla_cpu_pjrt")
    assert "xla_cpu_pjrt" in installed_plugins()
    program = tmp_path / "program.mlir"
    program.write_text(ALIASED)
    for named in ("xla_cpu_pjrt", str(library)):
        assert vhlo(["run", str(program), "--engine", f"pjrt:{named}", "-i", "[1, 2, 3, 4]"]) == 0
        assert "[2. 4. 6. 8.]" in capsys.readouterr().out
    assert vhlo(["run", str(program), "--engine", "pjrt:", "-i", "[1, 2, 3, 4]"]) == 2
    assert "'pjrt:' is not an engine: expected one of" in capsys.readouterr().err
