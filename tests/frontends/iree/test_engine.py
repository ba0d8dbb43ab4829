"""Programs on the engine `iree`: values of every type, shapes, donation, limits, and what it refuses."""

from __future__ import annotations

import gc
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.element_types import TYPES
from support.one_function import ALIASED, F32, LOOP, main, same_bits

import vhlo_tools as vt
from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.iree import _compilers, _tools

#: IREE 3.13.0 cannot write these to memory.
UNKNOWN = ("f6E2M3FN", "f6E3M2FN")


#: IREE 3.13.0 crashes on it.
CRASH = main(
    "%0 = stablehlo.bitcast_convert %a : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>",
    "%a: tensor<2xcomplex<f32>>",
    "tensor<2xcomplex<f32>>",
)


same = partial(same_bits, engine="iree")


@pytest.mark.parametrize("element", TYPES)
def test_values_of_each_type(element: str) -> None:
    kind = f"tensor<8x{element}>"
    op = "or" if element == "i1" else "maximum" if element == "f8E8M0FNU" else "add"
    program = main(f"%0 = stablehlo.{op} %a, %b : {kind}", f"%a: {kind}, %b: {kind}", f"{kind}, {kind}", "%0, %a")
    # There is no zero among powers of two; test_disagreements.py has what becomes of NaN there.
    values = np.array([1, 0, 1, 1, 0, 1, 1, 1] if element != "f8E8M0FNU" else [1, 2] * 4).astype(TYPES[element])
    same(program, [values, values[::-1].copy()])


@pytest.mark.parametrize("element", UNKNOWN)
def test_types_that_it_lacks_are_refused(element: str) -> None:
    kind = f"tensor<4x{element}>"
    program = main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind)
    # IREE compiles in threads, and which of the two ops it meets first is by chance.
    with pytest.raises(vt.EngineError, match=r"the text: it has no lowering of vector\.(load|store) "):
        vt.run(program, [[1, 1, 1, 1]], engine="iree")


def test_64_bits_stay_64_bits() -> None:
    program = main(
        "%0 = stablehlo.add %a, %a : tensor<2xi64>\n %1 = stablehlo.divide %b, %c : tensor<2xf64>",
        "%a: tensor<2xi64>, %b: tensor<2xf64>, %c: tensor<2xf64>",
        "tensor<2xi64>, tensor<2xf64>",
        "%0, %1",
    )
    sums, quotients = same(program, [[1 << 40, 3], [1, 2], [3, 7]])
    assert sums[0] == 1 << 41
    assert quotients[0] == 1 / 3


def test_tuples_tokens_and_empty_arrays() -> None:
    program = """func.func @main(%t: !stablehlo.token, %a: tuple<tensor<2xf32>, tensor<0xi64>>)
        -> (!stablehlo.token, tuple<tensor<0xi64>, tensor<2xf32>>) {
      %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<2xf32>, tensor<0xi64>>) -> tensor<2xf32>
      %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<2xf32>, tensor<0xi64>>) -> tensor<0xi64>
      %2 = stablehlo.tuple %1, %0 : tuple<tensor<0xi64>, tensor<2xf32>>
      return %t, %2 : !stablehlo.token, tuple<tensor<0xi64>, tensor<2xf32>>
    }"""
    token, (empty, pair) = vt.run(program, [None, ([1, 2], np.zeros(0, np.int64))], engine="iree")
    assert token is None
    assert empty.shape == (0,)
    assert pair.tolist() == [1, 2]


def test_dynamic_shapes_are_compiled_once() -> None:
    kind = "tensor<?x3xf32>"
    executable = vt.load_executable(main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind), engine="iree")
    for size in (1, 4, 0):
        (found,) = executable.run([np.ones((size, 3), np.float32)])
        assert found.shape == (size, 3)
    engine: Any = executable._engine
    assert engine._any is not None
    assert not engine._compiled


def test_shapes_that_it_does_not_compile_are_those_of_the_inputs() -> None:
    body = """%one = stablehlo.constant dense<1> : tensor<1xi32>
      %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %t = stablehlo.concatenate %s, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %0 = stablehlo.dynamic_reshape %a, %t : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>"""
    executable = vt.load_executable(main(body, "%a: tensor<?xf32>", "tensor<?x1xf32>"), engine="iree")
    for size in (3, 2, 3):
        (found,) = executable.run([np.arange(size, dtype=np.float32)])
        assert found.tolist() == [[each] for each in range(size)]
    engine: Any = executable._engine
    assert engine._any is None
    assert list(engine._compiled) == [((3,),), ((2,),)]


def test_quantized_tensors_are_the_integers_that_they_are_stored_in() -> None:
    kind = "tensor<3x!quant.uniform<i8:f32, 0.5>>"
    same(main(f"%0 = stablehlo.add %a, %a : {kind}", f"%a: {kind}", kind), [np.array([1, -4, 100], np.int8)])


def test_donated_inputs_are_deleted_and_reported_as_copied() -> None:
    buffer = vt.Buffer(np.ones(4, np.float32))
    execution = vt.load_executable(ALIASED, engine="iree").execute([buffer], donate=(0,))
    assert buffer.is_deleted
    assert execution.outputs[0].tolist() == [2, 2, 2, 2]
    (report,) = execution.report.outputs
    assert (report.placement, report.reason) == ("copied", "IREE writes results to memory of their own")


def test_an_input_that_is_not_donated_is_as_it_was() -> None:
    array = np.ones(4, np.float32)
    vt.run(ALIASED, [array], engine="iree")
    assert array.tolist() == [1, 1, 1, 1]


def test_a_crash_is_an_error_and_the_next_program_runs(saxpy: str) -> None:
    with pytest.raises(vt.EngineCrashError, match=r"the text: IREE: .* while at compilation") as caught:
        vt.run(CRASH, [[1, 2j]], engine="iree")
    assert caught.value.signal == "SIGSEGV"
    assert vt.run(saxpy, [2, [1, 2, 3, 4], [1, 1, 1, 1]], engine="iree")[0].tolist() == [3, 5, 7, 9]


def test_a_run_has_a_limit_of_time() -> None:
    executable = vt.load_executable(LOOP, engine="iree")
    executable.prepare()
    with pytest.raises(vt.EngineTimeoutError, match=r"the text: IREE: .* after 1 s while at execution") as caught:
        executable.run([1], timeout=1)
    assert caught.value.seconds == 1


def test_a_run_has_a_limit_of_memory() -> None:
    kind = "tensor<1000000x4000xf32>"
    body = f"%0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> {kind}"
    with pytest.raises(vt.EngineError, match=r"failed in IREE: .*RESOURCE_EXHAUSTED"):
        vt.run(main(body, "%a: tensor<f32>", kind), [1], engine="iree")


CALL = main(f"%0 = stablehlo.custom_call @my_scale(%a) : ({F32}) -> {F32}")
REDUCE = main(
    f"""%0 = "stablehlo.all_reduce"(%a) ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %1 = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }}) {{replica_groups = dense<0> : tensor<1x1xi64>}} : ({F32}) -> {F32}"""
)
RECURSIVE = main(f"%0 = func.call @main(%a) : ({F32}) -> {F32}")
ARC = main("%0 = stablehlo.atan2 %a, %a : tensor<2xf64>", "%a: tensor<2xf64>", "tensor<2xf64>")
CHOLESKY = main(
    '%0 = "stablehlo.cholesky"(%a) : (tensor<2x2xf32>) -> tensor<2x2xf32>', "%a: tensor<2x2xf32>", "tensor<2x2xf32>"
)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        pytest.param(
            CALL, r"text:2:\d+: the engine iree cannot run stablehlo.custom_call: .* my_scale: use", id="call"
        ),
        pytest.param(REDUCE, r"cannot run stablehlo.all_reduce: it runs programs on one device: use", id="devices"),
        pytest.param(RECURSIVE, r"cannot run func.call: it calls a recursive function", id="recursion"),
        pytest.param(ARC, r"IREE cannot compile the text: it calls atan2 of the C library", id="linker"),
        pytest.param(CHOLESKY, r"the text: it has no lowering of stablehlo.cholesky as it is used here", id="lowering"),
    ],
)
def test_what_it_cannot_run_is_named(program: str, message: str) -> None:
    with pytest.raises(vt.EngineError, match=message):
        vt.load_executable(program, engine="iree").prepare()


def test_handlers_probes_and_devices_are_for_other_engines(tmp_path: Path) -> None:
    with pytest.raises(vt.EngineError, match=r"IREE cannot call handlers, here of my_scale: use the engine reference"):
        vt.load_executable(CALL, engine="iree", handlers={"my_scale": lambda _, x: x})
    with pytest.raises(vt.EngineError, match=r"IREE does not expose intermediate values"):
        vt.run(ALIASED, [[1, 2, 3, 4]], engine="iree", probe=vt.Probe(folder=str(tmp_path / "probes")))
    with pytest.raises(vt.EngineError, match=r"the engine iree runs programs on one device: use .* reference or xla"):
        vt.run_parallel(REDUCE, [[[1, 2, 3, 4]]], replicas=1, engine="iree")


def test_the_compiler_may_start_its_linker_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    worker = isolation.start(tools=_tools())
    limits = isolation.Limits(seconds=30)
    try:
        for attempt in ("write a file", "delete a file", "make a socket", "start a process", "be another program"):
            said = worker.call("support.isolated_functions:try_to", (attempt, str(path), 1), limits)
            assert said == "PermissionError", attempt
        assert worker.call("support.isolated_functions:make_temporary_file", (), limits).startswith("/")
    finally:
        worker.end()
    assert path.read_text() == "text"


def test_nothing_is_left_behind() -> None:
    vt.run(ALIASED, [[1, 2, 3, 4]], engine="iree")
    for each in list(_compilers._idle):
        each.end()
    gc.collect()
    assert not list(Path(tempfile.gettempdir()).glob("vhlo_tools-*/*"))
