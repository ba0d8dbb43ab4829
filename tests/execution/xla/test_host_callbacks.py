"""Handlers of custom calls on XLA: what they get, what they may return, and what their failures become."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support.element_types import EVERY_TYPE

import vhlo_tools as vt
from vhlo_tools.bindings import NARROW_ELEMENTS

pytestmark = [pytest.mark.usefixtures("both_places"), pytest.mark.every_python]

F32, SCALAR, TOKEN = "tensor<4xf32>", "tensor<f32>", "!stablehlo.token"
NUMBERS = np.arange(4, dtype=np.float32)


def calling(attributes: str = "", kind: str = F32, target: str = "f") -> str:
    call = f"stablehlo.custom_call @{target}(%a) {{{attributes}}} : ({kind}) -> {kind}"
    return f"func.func @main(%a: {kind}) -> {kind} {{ %0 = {call} return %0 : {kind} }}"


def run(text: str, inputs: list[Any], handler: Any) -> tuple[Any, ...]:
    return vt.run(text, inputs, engine="xla", handlers={"f": handler})


def twice(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> Any:
    return array + array


# What a handler gets


def test_a_handler_computes_the_call_and_sees_its_attributes() -> None:
    seen = []

    def scaled(call: vt.CustomCall, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(call)
        return array * np.float32(call.attributes["scale"])

    (result,) = run(calling("scale = 2.5 : f64"), [NUMBERS], scaled)
    assert result.tolist() == [0, 2.5, 5, 7.5]
    (call,) = seen
    assert (call.target, [each.text for each in call.results]) == ("f", [F32])


@pytest.mark.parametrize(
    "element",
    [
        *("bf16", "f8E4M3FN", "complex<f64>", "i1", "ui64", "f8E8M0FNU"),
        *(pytest.param(each, marks=pytest.mark.needs(NARROW_ELEMENTS)) for each in ("i4", "ui2", "f4E2M1FN")),
    ],
)
def test_every_kind_of_element_goes_in_and_out(element: str) -> None:
    array = np.array([1, 1, 1], EVERY_TYPE[element])
    (result,) = run(calling(kind=f"tensor<3x{element}>"), [array], lambda _, given: given)
    assert result.dtype == array.dtype
    assert result.tobytes() == array.tobytes()


def test_operands_are_row_by_row_whatever_the_layouts_of_the_call() -> None:
    layout = "dense<[0, 1]> : tensor<2xindex>"
    text = calling(f"operand_layouts = [{layout}], result_layouts = [{layout}]", "tensor<2x3xf32>")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = run(text, [array], twice)
    assert np.array_equal(result, array + array)


def test_operands_stay_what_they_were_after_the_run_and_cannot_be_changed() -> None:
    kept = []

    def keeping(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept.append(array)
        return array

    executable = vt.load_executable(calling(), engine="xla", handlers={"f": keeping})
    for factor in range(5):
        executable.run([NUMBERS * np.float32(factor)])
    assert [each.tolist() for each in kept] == [(NUMBERS * factor).tolist() for factor in range(5)]
    assert not any(each.flags.writeable for each in kept)


def test_a_result_may_be_the_operand_it_is_aliased_with() -> None:
    alias = "#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>"
    text = calling(f"output_operand_aliases = [{alias}]").replace("return %0", "return %a")
    assert run(text, [NUMBERS], lambda _, array: array[::-1])[0].tolist() == NUMBERS.tolist()
    text = calling(f"output_operand_aliases = [{alias}]")
    assert run(text, [NUMBERS], lambda _, array: array[::-1])[0].tolist() == NUMBERS[::-1].tolist()


def test_tokens_and_tuples_around_a_call() -> None:
    pair = f"tuple<{SCALAR}, {SCALAR}>"
    text = f"""func.func @main(%t: {TOKEN}, %a: {SCALAR}) -> ({TOKEN}, {SCALAR}, {SCALAR}) {{
      %given = stablehlo.tuple %a, %a : {pair}
      %0:2 = stablehlo.custom_call @f(%t, %given) : ({TOKEN}, {pair}) -> ({TOKEN}, {pair})
      %1 = stablehlo.get_tuple_element %0#1[0] : ({pair}) -> {SCALAR}
      %2 = stablehlo.get_tuple_element %0#1[1] : ({pair}) -> {SCALAR}
      return %0#0, %1, %2 : {TOKEN}, {SCALAR}, {SCALAR}
    }}"""
    results = run(text, [None, 3.0], lambda _, one, other: (one + one, one * other))
    assert results == (None, 6.0, 9.0)


def test_a_call_for_its_effect_alone() -> None:
    seen: list[float] = []
    text = f"""func.func @main(%a: {SCALAR}) -> {SCALAR} {{
      stablehlo.custom_call @f(%a) {{has_side_effect = true}} : ({SCALAR}) -> ()
      return %a : {SCALAR}
    }}"""
    assert run(text, [2.0], lambda _, value: seen.append(float(value)))[0] == 2
    assert seen == [2]


def test_a_call_in_a_loop_in_a_function_and_under_a_condition() -> None:
    body = f"""
    func.func private @g(%x: {SCALAR}) -> {SCALAR} {{
      %0 = stablehlo.custom_call @f(%x) : ({SCALAR}) -> {SCALAR}
      return %0 : {SCALAR}
    }}
    func.func @main(%a: {SCALAR}, %n: tensor<i32>) -> {SCALAR} {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%x = %a, %i = %zero) : {SCALAR}, tensor<i32>
        cond {{
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{
          %odd = stablehlo.remainder %i, %one : tensor<i32>
          %c = stablehlo.compare EQ, %odd, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %y = "stablehlo.if"(%c) ({{
            %z = func.call @g(%x) : ({SCALAR}) -> {SCALAR}
            stablehlo.return %z : {SCALAR}
          }}, {{ stablehlo.return %x : {SCALAR} }}) : (tensor<i1>) -> {SCALAR}
          %j = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %y, %j : {SCALAR}, tensor<i32>
        }}
      return %0#0 : {SCALAR}
    }}"""
    assert run(body, [1.0, 10], twice)[0] == 1024


def test_a_handler_may_run_programs_of_its_own() -> None:
    inner = calling(target="g")

    def outer(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> Any:
        return vt.run(inner, [array], engine="xla", handlers={"g": twice})[0]

    assert run(calling(), [NUMBERS], outer)[0].tolist() == [0, 2, 4, 6]


def test_numbers_close_to_zero_are_not_zero_in_a_handler() -> None:
    smallest = np.full(4, 1e-45, np.float32)
    seen: list[Any] = []

    def looking(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> Any:
        seen.extend((array > 0).tolist())
        return array + array

    (result,) = run(calling(), [smallest], looking)
    assert seen == [True] * 4
    assert result.view(np.uint32).tolist() == [2] * 4


def test_dynamic_shapes_are_those_of_the_inputs() -> None:
    kind = "tensor<?xf32>"
    size = "%s = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>"
    text = f"""func.func @main(%a: {kind}) -> {kind} {{
      {size}
      %n = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
      %0 = stablehlo.custom_call @f(%a, %n) {{
        indices_of_shape_operands = dense<[1]> : tensor<1xi64>
      }} : ({kind}, tensor<1xi32>) -> {kind}
      return %0 : {kind}
    }}"""
    for number in (1, 3):
        (result,) = run(text, [np.ones(number, np.float32)], lambda _, array, *sizes: array * 2)
        assert result.tolist() == [2] * number


# What goes wrong


def failing(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> None:
    raise LookupError(f"no {array[1]}")


def test_what_a_handler_raises_reaches_the_caller() -> None:
    with pytest.raises(vt.EngineError, match=r"custom call of f: its handler raised LookupError: no 1.0") as said:
        run(calling(), [NUMBERS], failing)
    assert isinstance(said.value.__cause__, LookupError)
    assert "Traceback" not in str(said.value)


def test_an_interruption_stays_one() -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(calling(), [NUMBERS], interrupted)


def test_a_program_runs_again_after_a_handler_failed() -> None:
    def positive(_: vt.CustomCall, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if array.min() < 0:
            raise ValueError("negative")
        return array

    executable = vt.load_executable(calling(), engine="xla", handlers={"f": positive})
    for _ in range(3):
        with pytest.raises(vt.EngineError, match="negative"):
            executable.run([-NUMBERS - 1])
        assert executable.run([NUMBERS])[0].tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda array: (array, array), "returned 2 results, expected 1"),
        (lambda array: None, "expected tensor<4xf32>"),
        (lambda array: array[:2], r"returned float32\[2\] as result 0, expected tensor<4xf32>"),
        (lambda array: array.astype(np.float64), r"returned float64\[4\] as result 0"),
        (lambda array: array.__setitem__(0, 1), "read-only"),
    ],
)
def test_nothing_that_does_not_fit_reaches_xla(returned: Any, said: str) -> None:
    with pytest.raises(vt.EngineError, match=said):
        run(calling(), [NUMBERS], lambda _, array: returned(array))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_call_without_a_handler_is_named_with_those_that_have_one(version: int) -> None:
    config = ", backend_config = {}" if version == 4 else ""
    text = calling(f"api_version = {version} : i32{config}").replace("@f", "@g")
    with pytest.raises(vt.EngineError, match=r"text:1:\d+: custom call of g: .*are handlers for f: give a handler"):
        run(text, [NUMBERS], twice)


BODIES = {
    "map": f'"stablehlo.map"(%a, %a) (BODY) {{dimensions = array<i64: 0>}} : ({F32}, {F32}) -> {F32}',
    "reduce": f'"stablehlo.reduce"(%a, %b) (BODY) {{dimensions = array<i64: 0>}} : ({F32}, {SCALAR}) -> {SCALAR}',
    "reduce_window": f'"stablehlo.reduce_window"(%a, %b) (BODY) {{window_dimensions = array<i64: 1>}}'
    f" : ({F32}, {SCALAR}) -> {F32}",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("within", ["itself", "a function"])
def test_a_call_where_xla_would_end_the_process_is_refused(name: str, within: str) -> None:
    scalars = f"({SCALAR}, {SCALAR}) -> {SCALAR}"
    call = f"stablehlo.custom_call @f(%x, %y) : {scalars}"
    function = f"func.func private @g(%x: {SCALAR}, %y: {SCALAR}) -> {SCALAR} {{ %1 = {call} return %1 : {SCALAR} }}"
    inner = call if within == "itself" else f"func.call @g(%x, %y) : {scalars}"
    body = f"{{ ^bb0(%x: {SCALAR}, %y: {SCALAR}): %1 = {inner} stablehlo.return %1 : {SCALAR} }}"
    op = BODIES[name].replace("BODY", body)
    kind = op.rpartition("-> ")[2]
    text = f"func.func @main(%a: {F32}, %b: {SCALAR}) -> {kind} {{ %0 = {op} return %0 : {kind} }}"
    with pytest.raises(vt.EngineError, match=f"XLA does not support custom calls in the body of stablehlo.{name}"):
        run(text if within == "itself" else function + text, [NUMBERS, 0.0], lambda _, one, other: one + other)


# Beside jax


@pytest.mark.sample(1)
def test_a_handler_may_import_jax_and_nothing_else_does() -> None:
    source = f"""
import sys
import numpy as np
import vhlo_tools as vt
from vhlo_tools.bindings import NARROW_ELEMENTS

def handler(call, array):
    assert "jax" not in sys.modules
    import jax
    jax.config.update("jax_platforms", "cpu")
    return np.asarray(jax.numpy.sin(array))

(result,) = vt.run({calling()!r}, [np.zeros(4, np.float32)], engine="xla", handlers={{"f": handler}})
assert result.tolist() == [0] * 4
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_call_outside_of_functions_is_refused() -> None:
    program = """module {
      %0 = stablehlo.custom_call @f() : () -> tensor<4xf32>
      func.func @main() -> tensor<f32> {
        %1 = stablehlo.constant dense<1.0> : tensor<f32>
        return %1 : tensor<f32>
      }
    }"""
    with pytest.raises(vt.VhloToolsError):
        vt.run(program, [], engine="xla")
