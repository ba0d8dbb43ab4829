"""Buffers donated or not, to programs with and without aliases, on both engines."""

from __future__ import annotations

import warnings
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt

ENGINES = ["reference", "xla"]
F32 = "tensor<4xf32>"


def increment(argument: str = " {tf.aliasing_output = 0 : i32}", module: str = "") -> str:
    return f"""module{module} {{
      func.func @main(%a: {F32}{argument}) -> {F32} {{
        %one = stablehlo.constant dense<1.0> : {F32}
        %0 = stablehlo.add %a, %one : {F32}
        return %0 : {F32}
      }}
    }}"""


def of_module(kind: str) -> str:
    alias = f'{{kind = "{kind}", parameter_index = array<i64>, parameter_number = 0 : i64}}'
    return f" attributes {{mhlo.input_output_alias = [{{alias = {alias}, output_index = array<i64>}}]}}"


MUST = increment("", of_module("must_alias"))
SWAP = f"""func.func @main(%a: {F32} {{tf.aliasing_output = 0 : i32}}, %b: {F32} {{tf.aliasing_output = 1 : i32}})
    -> ({F32}, {F32}) {{ return %b, %a : {F32}, {F32} }}"""


def numbers() -> np.ndarray[Any, Any]:
    return np.array([1.0, 2.0, 3.0, 4.0], np.float32)


@pytest.fixture(params=[*ENGINES, "xla in this process"])
def engine(request: pytest.FixtureRequest) -> Any:
    if request.param == "xla in this process":
        request.getfixturevalue("xla_here")
    return request.param.partition(" ")[0]


def placed(execution: vt.Execution) -> list[str]:
    return [each.placement for each in execution.report.outputs]


# In place


@pytest.mark.parametrize("program", [increment(), increment("", of_module("may_alias")), MUST])
def test_the_result_is_in_the_array_that_was_given_away(program: str) -> None:
    array = numbers()
    (result,) = vt.run(program, [array], donate=(0,))
    assert np.shares_memory(result, array)
    assert array.tolist() == [2, 3, 4, 5]


def test_a_buffer_that_was_given_away_is_deleted(engine: Any) -> None:
    buffer = vt.Buffer(numbers(), donate=True)
    (result,) = vt.run(increment(), [buffer], engine=engine)
    assert result.tolist() == [2, 3, 4, 5]
    assert buffer.is_deleted
    assert repr(buffer) == "Buffer(deleted)"
    for use in (np.asarray, lambda each: each.address, lambda each: vt.run(increment(), [each], engine=engine)):
        with pytest.raises(vt.BufferDeletedError, match=r"this buffer, float32\[4\], was donated"):
            use(buffer)
    assert (buffer.shape, buffer.dtype.name, buffer.nbytes) == ((4,), "float32", 16)


#: A step on the interpreter takes twenty times as long as on XLA, and would show a leak or a copy as soon.
INCREMENTS: Final = {"reference": 1_000, "xla": 2_000}


@pytest.mark.sample(1)
def test_thousands_of_increments_of_one_buffer(engine: Any) -> None:
    executable = vt.load_executable(increment(), engine=engine)
    buffer = vt.Buffer(np.zeros(4, np.float32)) if engine == "reference" else vt.Buffer.on_xla(np.zeros(4, np.float32))
    address = buffer.address
    for _ in range(INCREMENTS[engine]):
        (buffer,) = executable.execute([buffer], donate=(0,)).buffers
        assert buffer.address == address
    assert np.asarray(buffer).tolist() == [INCREMENTS[engine]] * 4


@pytest.mark.sample(2)
def test_thousands_of_increments_without_giving_away(engine: Any) -> None:
    executable = vt.load_executable(increment(), engine=engine)
    array = numbers()
    before = array.tobytes()
    given = vt.Buffer(array) if engine == "reference" else vt.Buffer.on_xla(array)
    for _ in range(INCREMENTS[engine]):
        execution = executable.execute([given])
        assert execution.report.bytes_copied == 16
        assert execution.buffers[0].address != given.address
        assert np.asarray(given).tobytes() == before
    assert array.tobytes() == before


def test_a_first_copy_to_the_memory_of_xla_is_told() -> None:
    executable = vt.load_executable(increment(), engine="xla")
    execution = executable.execute([vt.Buffer(np.zeros(4, np.float32))], donate=(0,))
    assert (execution.report.bytes_in_place, execution.report.bytes_moved, execution.report.bytes_copied) == (16, 16, 0)
    assert "copied to XLA's memory first; from then on it is in place" in str(execution.report)
    again = executable.execute(execution.buffers, donate=(0,))
    assert (again.report.bytes_in_place, again.report.bytes_moved) == (16, 0)
    assert "first" not in str(again.report)
    # The interpreter writes over the memory of the caller.
    reference = vt.load_executable(increment(), engine="reference")
    assert reference.execute([vt.Buffer(np.zeros(4, np.float32))], donate=(0,)).report.bytes_moved == 0


def test_inputs_that_change_places(engine: Any) -> None:
    executable = vt.load_executable(SWAP, engine=engine)
    one, two = (vt.Buffer(numbers() * factor) for factor in (1, 10))
    execution = executable.execute([one, two], donate=(0, 1))
    assert [each.tolist() for each in execution.outputs] == [[10, 20, 30, 40], [1, 2, 3, 4]]
    assert placed(execution) == ["in-place", "in-place"]
    assert execution.report.bytes_in_place == 32


def test_a_result_of_another_type_and_shape_takes_the_memory() -> None:
    program = """func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2x2xi32> {
      %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi32>
      %1 = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<2x2xi32>
      return %1 : tensor<2x2xi32>
    }"""
    array = numbers()
    (result,) = vt.run(program, [array], donate=(0,))
    assert result.tolist() == [[1, 2], [3, 4]]
    assert np.shares_memory(result, array)


def test_elements_that_take_more_bytes_in_numpy_than_on_a_device(engine: Any) -> None:
    program = """func.func @main(%a: tensor<2xi8> {tf.aliasing_output = 0 : i32}) -> tensor<4xi4> {
      %0 = stablehlo.constant dense<3> : tensor<4xi4>
      return %0 : tensor<4xi4>
    }"""
    execution = vt.load_executable(program, engine=engine).execute([vt.Buffer(np.array([1, 2], np.int8), True)])
    assert execution.outputs[0].tolist() == [ml_dtypes.int4(3)] * 4
    (report,) = execution.report.outputs
    if engine == "reference":
        assert report.placement == "copied"
        assert report.reason == "it has 2 bytes in numpy, but the output has 4"


# Copy protection


def test_what_was_not_given_away_is_untouched(engine: Any) -> None:
    array = numbers()
    execution = vt.load_executable(increment(), engine=engine).execute([array])
    assert execution.outputs[0].tolist() == [2, 3, 4, 5]
    assert array.tolist() == [1, 2, 3, 4]
    assert not np.shares_memory(execution.outputs[0], array)
    assert str(execution.report.outputs[0]) == (
        "output {}: 16 bytes, over a copy of parameter 0 {}: it was not donated"
    )


def test_a_live_view_protects_an_array(engine: Any) -> None:
    executable = vt.load_executable(increment(), engine=engine)
    array = numbers()
    view = array[1:]
    execution = executable.execute([array], donate=(0,))
    assert execution.report.outputs[0].reason == "its memory is held by a live view"
    assert view.tolist() == [2, 3, 4]
    del view
    execution = executable.execute([array], donate=(0,))
    assert placed(execution) == ["in-place"]


@pytest.mark.parametrize("options", [{"engine": "reference"}, {"engine": "xla", "in_process": True}], ids=str)
def test_a_live_view_of_a_result_protects_it(options: Any) -> None:
    executable = vt.load_executable(increment(), **options)
    (buffer,) = executable.execute([numbers()], donate=(0,)).buffers
    view = np.asarray(buffer)[2:]
    execution = executable.execute([buffer], donate=(0,))
    assert execution.report.outputs[0].reason == "its memory is held by a live view"
    assert view.tolist() == [4, 5]
    assert not buffer.is_deleted
    del view
    execution = executable.execute([buffer], donate=(0,))
    assert placed(execution) == ["in-place"]
    assert buffer.is_deleted


def test_values_of_a_result_in_another_process_are_copies() -> None:
    executable = vt.load_executable(increment(), engine="xla")
    (buffer,) = executable.execute([numbers()], donate=(0,)).buffers
    view = np.asarray(buffer)
    assert np.shares_memory(view, np.asarray(buffer))
    execution = executable.execute([buffer], donate=(0,))
    assert placed(execution) == ["in-place"]
    assert buffer.is_deleted
    assert view.tolist() == [2, 3, 4, 5]
    assert np.asarray(execution.buffers[0]).tolist() == [3, 4, 5, 6]


def test_another_buffer_protects_an_array(engine: Any) -> None:
    executable = vt.load_executable(increment(), engine=engine)
    array = numbers()
    given, other = vt.Buffer(array, donate=True), vt.Buffer(array)
    execution = executable.execute([given])
    assert execution.report.outputs[0].reason == "its memory is held by another Buffer"
    assert np.asarray(other).tolist() == [1, 2, 3, 4]
    assert not given.is_deleted


def test_memory_that_is_passed_twice_is_protected(engine: Any) -> None:
    program = f"""func.func @main(%a: {F32} {{tf.aliasing_output = 0 : i32}}, %b: {F32}) -> {F32} {{
      %0 = stablehlo.add %a, %b : {F32}
      return %0 : {F32}
    }}"""
    executable = vt.load_executable(program, engine=engine)
    array = numbers()
    buffer = vt.Buffer(array)
    for inputs in ([array, array], [buffer, buffer]):
        execution = executable.execute(inputs, donate=(0,))
        assert execution.outputs[0].tolist() == [2, 4, 6, 8]
        assert "is also passed for" in str(execution.report.outputs[0].reason)
        assert array.tolist() == [1, 2, 3, 4]


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (read_only, "it is read-only"),
        (lambda array: np.require(array, requirements=["O"])[:], "it is a view of the memory of another array"),
        (lambda array: array.astype(">f4"), "it does not have the type of the parameter, and was converted"),
        (lambda array: np.repeat(array, 2)[::2], "it does not have the type of the parameter, and was converted"),
    ],
)
def test_arrays_whose_memory_is_not_theirs_to_give(make: Any, reason: str, engine: Any) -> None:
    given = make(numbers())
    execution = vt.load_executable(increment(), engine=engine).execute([given], donate=(0,))
    assert execution.report.outputs[0].reason == reason
    assert execution.outputs[0].tolist() == [2, 3, 4, 5]
    assert np.array_equal(given, numbers())


# What must be aliased


def test_what_must_be_aliased_must_be_given_away(engine: Any) -> None:
    executable = vt.load_executable(MUST, engine=engine)
    array = numbers()
    with pytest.raises(vt.AliasError, match=r"output \{\} must overwrite parameter 0 .* it was not donated"):
        executable.execute([array])
    view = array[1:]
    with pytest.raises(vt.AliasError, match=r"held by a live view: donate it \(donate=\(0,\)\)"):
        executable.execute([array], donate=(0,))
    assert view.tolist() == [2, 3, 4]
    assert executable.run([numbers()], donate=(0,))[0].tolist() == [2, 3, 4, 5]


def test_aliases_that_xla_refuses_are_refused_on_both_engines(engine: Any) -> None:
    with pytest.raises(vt.AliasError, match="there is no output"):
        vt.run(increment(" {tf.aliasing_output = 3 : i32}"), [numbers()], engine=engine)


# Donors, and what is donated for nothing


def test_a_donor_is_used_by_the_output_that_it_fits(engine: Any) -> None:
    program = f"""func.func @main(%a: {F32} {{jax.buffer_donor = true}}, %b: tensor<8xf32>) -> (tensor<8xf32>, {F32}) {{
      %0 = stablehlo.add %a, %a : {F32}
      return %b, %0 : tensor<8xf32>, {F32}
    }}"""
    executable = vt.load_executable(program, engine=engine)
    buffer = vt.Buffer(numbers(), donate=True)
    execution = executable.execute([buffer, np.ones(8, np.float32)])
    assert placed(execution) == ["new", "in-place"]
    assert buffer.is_deleted
    assert placed(executable.execute([numbers(), np.ones(8, np.float32)])) == ["new", "copied"]


def test_what_is_given_away_for_nothing_is_deleted_and_told(engine: Any) -> None:
    executable = vt.load_executable(increment(""), engine=engine)
    buffer = vt.Buffer(numbers(), donate=True)
    with pytest.warns(vt.DonationWarning, match=r"parameter 0 \{\} of 16 bytes was donated, and no output") as caught:
        execution = executable.execute([buffer])
    assert caught[0].filename == __file__
    assert buffer.is_deleted
    assert [each.bytes for each in execution.report.unusable] == [16]
    assert placed(execution) == ["new"]
    with pytest.warns(vt.DonationWarning) as caught:
        vt.run(increment(""), [numbers()], donate=(0,), engine=engine)
    assert caught[0].filename == __file__


def test_a_warning_that_is_an_error_leaves_the_buffer(engine: Any) -> None:
    buffer = vt.Buffer(numbers(), donate=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(vt.DonationWarning):
            vt.run(increment(""), [buffer], engine=engine)
    assert np.asarray(buffer).tolist() == [1, 2, 3, 4]


# Tuples

NESTED = """func.func @main(%a: tuple<tensor<4xf32>, tuple<tensor<2xi32>>>, %b: tensor<4xf32>)
    -> (tuple<tensor<4xf32>>, tensor<2xi32>) {
  %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<4xf32>, tuple<tensor<2xi32>>>) -> tensor<4xf32>
  %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<4xf32>, tuple<tensor<2xi32>>>) -> tuple<tensor<2xi32>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<2xi32>>) -> tensor<2xi32>
  %3 = stablehlo.add %0, %b : tensor<4xf32>
  %4 = stablehlo.add %2, %2 : tensor<2xi32>
  %5 = stablehlo.tuple %3 : tuple<tensor<4xf32>>
  return %5, %4 : tuple<tensor<4xf32>>, tensor<2xi32>
}"""
NESTED_ALIASES = """module attributes {mhlo.input_output_alias = [
  {alias = {kind = "may_alias", parameter_index = array<i64: 0>, parameter_number = 0 : i64},
   output_index = array<i64: 0, 0>},
  {alias = {kind = "must_alias", parameter_index = array<i64: 1, 0>, parameter_number = 0 : i64},
   output_index = array<i64: 1>}]} {
  PROGRAM
}""".replace("PROGRAM", NESTED)


def test_parts_of_tuples_are_given_away(engine: Any) -> None:
    executable = vt.load_executable(NESTED_ALIASES, engine=engine)
    whole, part = np.array([3, 4], np.int32), numbers()
    execution = executable.execute([(part, [vt.Buffer(whole, donate=True)]), numbers()])
    (first,), second = execution.outputs
    assert (first.tolist(), second.tolist()) == ([2, 4, 6, 8], [6, 8])
    assert placed(execution) == ["copied", "in-place"]
    if engine == "reference":
        assert np.shares_memory(second, whole)
    execution = executable.execute([(numbers(), [np.array([3, 4], np.int32)]), numbers()], donate=(0,))
    assert placed(execution) == ["in-place", "in-place"]
    execution = executable.execute([(numbers(), [np.array([3, 4], np.int32)]), numbers()], donate=[(0, (1, 0))])
    assert placed(execution) == ["copied", "in-place"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            [np.zeros(4, np.float32)] * 2,
            r"input 0 is a ndarray, but the program requires a tuple: \(f32\[4\], \(s32\[2\]\)\)",
        ),
        ([(np.zeros(4, np.float32),), np.zeros(4, np.float32)], "input 0 has 1 elements, but the program requires 2"),
        ([([0] * 4, [[0, 1, 2]]), [0] * 4], r"input 0 at \{1,0\} is int32\[3\], but the program requires int32\[2\]"),
        ([([0] * 4, [[0, 1]])], "requires 2 inputs, got 1"),
    ],
)
def test_inputs_that_are_nested_otherwise(inputs: Any, message: str) -> None:
    with pytest.raises(vt.InvalidInputError, match=message):
        vt.run(NESTED, inputs)


# What callers get wrong


def test_there_is_no_such_input_to_give_away() -> None:
    with pytest.raises(vt.InvalidInputError, match="there is no parameter 2 to donate: the text has 1"):
        vt.run(increment(), [numbers()], donate=(2,))
    with pytest.raises(vt.InvalidInputError, match=r"there is no parameter 0 at \{1\} to donate"):
        vt.run(increment(), [numbers()], donate=[(0, (1,))])


def test_a_buffer_of_another_type() -> None:
    with pytest.raises(vt.InvalidInputError, match=r"input 0 is int64\[2\], but the program requires float32\[4\]"):
        vt.run(increment(), [vt.Buffer([1, 2])])
    with pytest.raises(TypeError, match="a Buffer is already an input"):
        vt.Buffer(vt.Buffer([1]))


def test_a_program_that_xla_refuses_leaves_what_was_given_away() -> None:
    program = f"""func.func @main(%a: {F32} {{tf.aliasing_output = 0 : i32}}) -> {F32} {{
      %0 = stablehlo.custom_call @nobody_knows_it(%a) : ({F32}) -> {F32}
      return %0 : {F32}
    }}"""
    buffer = vt.Buffer(numbers(), donate=True)
    with pytest.raises(vt.EngineError, match="nobody_knows_it"):
        vt.run(program, [buffer], engine="xla")
    assert np.asarray(buffer).tolist() == [1, 2, 3, 4]


# Buffers


def test_a_buffer_shows_its_values_to_read() -> None:
    array = numbers()
    for buffer in (vt.Buffer(array), vt.Buffer.on_xla(array)):
        view = np.asarray(buffer)
        assert view.tolist() == [1, 2, 3, 4]
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 5
        assert np.asarray(buffer, np.float64).dtype == np.float64
        copy = np.array(buffer)
        copy[0] = 5
        assert np.asarray(buffer)[0] == 1
        assert not np.shares_memory(copy, array)
    assert repr(vt.Buffer(array, donate=True)) == "Buffer(float32[4], donate=True)"
    assert repr(vt.Buffer.on_xla(array)) == "Buffer(float32[4], on XLA's device)"


def test_a_buffer_of_one_process_is_an_input_in_another() -> None:
    here, there = (vt.load_executable(increment(), engine="xla", in_process=each) for each in (True, False))
    given = vt.Buffer.on_xla(numbers(), in_process=True)
    for executable in (there, here, here, there, there):
        execution = executable.execute([given], donate=(0,))
        assert placed(execution) == ["in-place"]
        assert given.is_deleted
        (given,) = execution.buffers
    assert np.asarray(given).tolist() == [6, 7, 8, 9]


def test_a_buffer_of_one_engine_is_an_input_of_the_other() -> None:
    on_xla = vt.Buffer.on_xla(numbers(), donate=True)
    execution = vt.load_executable(increment(), engine="reference").execute([on_xla])
    assert execution.outputs[0].tolist() == [2, 3, 4, 5]
    (result,) = vt.run(increment(), execution.buffers, engine="xla", donate=(0,))
    assert result.tolist() == [3, 4, 5, 6]
