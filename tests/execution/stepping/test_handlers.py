"""Custom calls computed by functions in Python, on the reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.execution import parse_tensor_type
from vhlo_tools.execution.stepping.stepper import Stepper
from vhlo_tools.execution.stepping.steps import evaluate_here
from vhlo_tools.program import load_program

VECTOR = np.array([1, 2], np.float32)


def program(
    body: str, arguments: str = "%a: tensor<2xf32>", results: str = "tensor<2xf32>", functions: str = ""
) -> str:
    return f"{functions}\nfunc.func @main({arguments}) -> ({results}) {{ {body} }}"


def double(_: vt.CustomCall, array: Any) -> Any:
    return array * array.dtype.type(2)


CALL = "%0 = stablehlo.custom_call @double(%a) : (tensor<2xf32>) -> tensor<2xf32>"
LOOP = """
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<2xf32>
    cond { CONDITION stablehlo.return %c : tensor<i1> }
    do {
      %j = stablehlo.add %i, %one : tensor<i32>
      BODY
      stablehlo.return %j, %w : tensor<i32>, tensor<2xf32>
    }
  return %r#1 : tensor<2xf32>
"""
LESS = "%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>"


def run(text: str, *inputs: Any, handlers: Any = None) -> list[Any]:
    taken: Any = inputs
    found = vt.run(text, taken, handlers={"double": double} if handlers is None else handlers)
    return [each if each is None else each.tolist() for each in found]


def test_a_handler_computes_a_custom_call() -> None:
    assert run(program(f"{CALL} return %0 : tensor<2xf32>"), VECTOR) == [[2, 4]]


def test_what_stands_around_a_call_is_evaluated() -> None:
    body = f"""
      {CALL.replace("%a", "%x").replace("%0 =", "%y =")}
      %z = stablehlo.subtract %y, %a : tensor<2xf32>
      return %z, %x : tensor<2xf32>, tensor<2xf32>"""
    before = "%x = stablehlo.negate %a : tensor<2xf32>"
    assert run(program(before + body, results="tensor<2xf32>, tensor<2xf32>"), VECTOR) == [[-3, -6], [-1, -2]]


def test_a_handler_sees_the_attributes_and_the_types_of_the_call() -> None:
    seen: list[Any] = []

    def look(call: vt.CustomCall, *arrays: Any) -> Any:
        seen.append((call, arrays))
        return [np.zeros((), np.int32), np.ones(3, np.float16)]

    body = """%0:2 = "stablehlo.custom_call"(%a, %a) {call_target_name = "look", api_version = 4 : i32,
        backend_config = {axis = 1 : i64}} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<i32>, tensor<3xf16>)
      return %0#1 : tensor<3xf16>"""
    assert run(program(body, results="tensor<3xf16>"), VECTOR, handlers={"look": look}) == [[1, 1, 1]]
    ((call, arrays),) = seen
    assert (call.target, call.attributes["backend_config"]) == ("look", {"axis": 1})
    assert [each.text for each in call.results] == ["tensor<i32>", "tensor<3xf16>"]
    assert len(arrays) == 2
    assert not arrays[0].flags.writeable


def test_calls_in_functions_that_are_called_twice() -> None:
    functions = f"""
      func.func private @inner(%a: tensor<2xf32>) -> tensor<2xf32> {{ {CALL} return %0 : tensor<2xf32> }}
      func.func private @outer(%a: tensor<2xf32>) -> tensor<2xf32> {{
        %0 = func.call @inner(%a) : (tensor<2xf32>) -> tensor<2xf32>
        %1 = func.call @inner(%0) : (tensor<2xf32>) -> tensor<2xf32>
        return %1 : tensor<2xf32>
      }}"""
    body = "%0 = func.call @outer(%a) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32>"
    assert run(program(body, functions=functions), VECTOR) == [[4, 8]]


def test_calls_in_the_body_of_a_loop() -> None:
    body = "%w0 = stablehlo.custom_call @double(%v) : (tensor<2xf32>) -> tensor<2xf32>"
    body += "%w = stablehlo.add %w0, %a : tensor<2xf32>"
    assert run(program(LOOP.replace("CONDITION", LESS).replace("BODY", body)), VECTOR) == [[15, 30]]


def test_calls_in_the_condition_of_a_loop() -> None:
    condition = "%c = stablehlo.custom_call @more(%v) : (tensor<2xf32>) -> tensor<i1>"
    body = "%w = stablehlo.add %v, %a : tensor<2xf32>"
    handlers = {"more": lambda _, array: bool(array.sum() < 20)}
    assert run(program(LOOP.replace("CONDITION", condition).replace("BODY", body)), VECTOR, handlers=handlers) == [
        [7, 14]
    ]


def evaluations(text: str, *inputs: Any) -> tuple[list[Any], list[str]]:
    """Return the results, and the digests of what was evaluated."""
    digests = []

    def evaluate(provider: Provider, digest: str, bytecode: bytes, arrays: Any) -> Any:
        digests.append(digest)
        return evaluate_here(provider, digest, bytecode, arrays)

    stepper = Stepper(load_program(text), {"double": double}, evaluate)
    return [each.tolist() for each in stepper.run(list(inputs))], digests


def test_a_loop_without_calls_is_evaluated_whole() -> None:
    loop = LOOP.replace("CONDITION", LESS).replace("BODY", "%w = stablehlo.add %v, %a : tensor<2xf32>")
    found, digests = evaluations(program(f"{CALL} {loop.replace('%v = %a', '%v = %0')}"), VECTOR)
    assert found == [[5, 10]]
    assert len(digests) == 1


def test_a_segment_in_a_loop_is_made_once() -> None:
    body = "%w = stablehlo.custom_call @double(%v) : (tensor<2xf32>) -> tensor<2xf32>"
    found, digests = evaluations(program(LOOP.replace("CONDITION", LESS).replace("BODY", body)), VECTOR)
    assert found == [[8, 16]]
    # The constant zero, four conditions, three bodies.
    assert len(digests) == 8
    assert len(set(digests)) == 3


@pytest.mark.parametrize(("index", "expected"), [(0, [2, 4]), (1, [1, 2]), (7, [1, 2]), (-1, [1, 2])])
def test_calls_in_a_branch(index: int, expected: list[float]) -> None:
    body = f"""%r = "stablehlo.case"(%i) ({{ {CALL} stablehlo.return %0 : tensor<2xf32> }}, {{
        stablehlo.return %a : tensor<2xf32> }}) : (tensor<i32>) -> tensor<2xf32>
      return %r : tensor<2xf32>"""
    assert run(program(body, "%a: tensor<2xf32>, %i: tensor<i32>"), VECTOR, index) == [expected]


@pytest.mark.parametrize(("chosen", "expected"), [(True, [2, 4]), (False, [-1, -2])])
def test_calls_in_one_side_of_an_if(chosen: bool, expected: list[float]) -> None:
    body = f"""%r = "stablehlo.if"(%p) ({{ {CALL} stablehlo.return %0 : tensor<2xf32> }}, {{
        %1 = stablehlo.negate %a : tensor<2xf32> stablehlo.return %1 : tensor<2xf32> }}) : (tensor<i1>) -> tensor<2xf32>
      return %r : tensor<2xf32>"""
    assert run(program(body, "%a: tensor<2xf32>, %p: tensor<i1>"), VECTOR, chosen) == [expected]


def test_calls_in_the_decomposition_of_a_composite() -> None:
    functions = f"func.func private @d(%a: tensor<2xf32>) -> tensor<2xf32> {{ {CALL} return %0 : tensor<2xf32> }}"
    body = """%0 = stablehlo.composite "my.double" %a {decomposition = @d} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>"""
    assert run(program(body, functions=functions), VECTOR) == [[2, 4]]


def test_calls_in_the_body_of_a_map() -> None:
    body = """%0 = "stablehlo.map"(%a) ({ ^bb0(%x: tensor<f32>):
        %y = stablehlo.custom_call @double(%x) : (tensor<f32>) -> tensor<f32>
        %z = stablehlo.add %y, %x : tensor<f32>
        stablehlo.return %z : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>"""
    assert run(program(body), VECTOR) == [[3, 6]]


def test_calls_in_the_body_of_a_reduction() -> None:
    body = """%z = stablehlo.constant dense<10.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %z) across dimensions = [0, 2] : (tensor<2x3x2xf32>, tensor<f32>) -> tensor<3xf32>
      reducer(%x: tensor<f32>, %y: tensor<f32>) {
        %s = stablehlo.custom_call @plus(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %s : tensor<f32> }
      return %0 : tensor<3xf32>"""
    array = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    found = run(
        program(body, "%a: tensor<2x3x2xf32>", "tensor<3xf32>"), array, handlers={"plus": lambda _, x, y: x + y}
    )
    assert found == [(array.sum(axis=(0, 2)) + 10).tolist()]


def test_a_call_in_the_body_of_a_sort_is_refused_by_name() -> None:
    body = """%0 = "stablehlo.sort"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %c = stablehlo.custom_call @less(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1> }) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>"""
    with pytest.raises(
        vt.EngineError,
        match=r"stablehlo.sort: its body contains less, but besides control flow only "
        "the bodies of map and reduce",
    ):
        run(program(body), VECTOR, handlers={"less": lambda _, x, y: x < y})


def test_a_call_without_handler_is_refused_before_anything_runs() -> None:
    ran = []
    body = f"{CALL} %1 = stablehlo.custom_call @other(%0) : (tensor<2xf32>) -> tensor<2xf32> return %1 : tensor<2xf32>"
    with pytest.raises(
        vt.EngineError,
        match=r":\d+:\d+: .*no handler for custom calls of other: give .*; there are handlers for "
        ".*double",
    ):
        vt.run(program(body), [VECTOR], engine="reference", handlers={"double": lambda *each: ran.append(each)})
    assert not ran


def test_an_exception_of_a_handler_names_the_call_and_comes_along() -> None:
    def fail(_: vt.CustomCall, array: Any) -> Any:
        raise KeyError("weights")

    text = program(f"{CALL} return %0 : tensor<2xf32>")
    with pytest.raises(
        vt.EngineError, match=r"model:2:\d+: custom call of double: its handler raised KeyError"
    ) as caught:
        vt.run(text, [VECTOR], handlers={"double": fail}, name="model")
    assert isinstance(caught.value.__cause__, KeyError)


def test_results_of_a_handler_that_do_not_fit_are_told() -> None:
    with pytest.raises(vt.EngineError, match=r"returned float32\[3\] as result 0, expected tensor<2xf32>"):
        run(
            program(f"{CALL} return %0 : tensor<2xf32>"), VECTOR, handlers={"double": lambda *_: np.ones(3, np.float32)}
        )


def test_calls_with_tokens_run_in_order() -> None:
    order = []
    body = """%t = stablehlo.create_token : !stablehlo.token
      %0:2 = stablehlo.custom_call @first(%t, %a)
        : (!stablehlo.token, tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>)
      %1 = stablehlo.custom_call @second(%0#0) {has_side_effect = true} : (!stablehlo.token) -> !stablehlo.token
      return %1, %0#1 : !stablehlo.token, tensor<2xf32>"""

    def first(_: vt.CustomCall, array: Any) -> Any:
        order.append("first")
        return array + 1

    handlers = {"first": first, "second": lambda _: order.append("second")}
    found = run(program(body, results="!stablehlo.token, tensor<2xf32>"), VECTOR, handlers=handlers)
    assert found == [None, [2, 3]]
    assert order == ["first", "second"]


@pytest.mark.parametrize("element", ["complex<f32>", "bf16", "i4", "f8E4M3FN", "ui64", "i1"])
def test_values_of_any_type_come_to_handlers_and_back(element: str) -> None:
    kind = f"tensor<3x{element}>"
    body = f"""%0 = stablehlo.reverse %a, dims = [0] : {kind}
      %1 = stablehlo.custom_call @same(%0) : ({kind}) -> {kind}
      %2 = stablehlo.reverse %1, dims = [0] : {kind}
      return %2 : {kind}"""
    array = np.array([0, 1, 1]).astype(parse_tensor_type(kind).dtype)
    seen = []

    def same(_: vt.CustomCall, value: Any) -> Any:
        seen.append(value.dtype)
        return value

    (found,) = vt.run(program(body, f"%a: {kind}", kind), [array], handlers={"same": same})
    assert seen == [array.dtype]
    assert found.tobytes() == array.tobytes()


def test_shapes_that_follow_from_the_inputs_are_resolved_around_calls() -> None:
    body = """%s = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %n = stablehlo.custom_call @double(%s) : (tensor<i32>) -> tensor<i32>
      %0 = stablehlo.add %a, %a : tensor<?xf32>
      return %0, %n : tensor<?xf32>, tensor<i32>"""
    text = program(body, "%a: tensor<?xf32>", "tensor<?xf32>, tensor<i32>")
    executable = vt.load_executable(text, handlers={"double": double})
    for size in (2, 3):
        found = executable.run([np.ones(size, np.float32)])
        assert [each.tolist() for each in found] == [[2.0] * size, 2 * size]


def test_recursion_without_end_is_told() -> None:
    functions = f"""func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {{ {CALL}
      %1 = func.call @f(%0) : (tensor<2xf32>) -> tensor<2xf32> return %1 : tensor<2xf32> }}"""
    body = "%0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32>"
    with pytest.raises(
        vt.EngineError, match=r"func.call: calls are nested 100 deep, .*: check that the recursion ends"
    ):
        run(program(body, functions=functions), VECTOR)


def test_what_is_donated_is_written_over() -> None:
    text = program(f"{CALL} return %0 : tensor<2xf32>", "%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}")
    buffer = vt.Buffer(np.array([1, 2], np.float32))
    execution = vt.load_executable(text, handlers={"double": double}).execute([buffer], donate=(0,))
    assert execution.outputs[0].tolist() == [2, 4]
    assert execution.report.bytes_in_place == 8


def test_results_share_no_memory_with_inputs_and_with_each_other() -> None:
    body = f"{CALL} return %a, %0, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>"
    text = program(body, results="tensor<2xf32>, tensor<2xf32>, tensor<2xf32>")
    found = vt.run(text, [VECTOR], handlers={"double": lambda _, array: array})
    arrays = [VECTOR, *found]
    assert all(each.flags.writeable for each in found)
    pairs = [(one, other) for index, one in enumerate(arrays) for other in arrays[:index]]
    assert not any(np.shares_memory(*pair) for pair in pairs)


def test_a_handler_may_use_its_memory_again() -> None:
    memory = np.zeros(2, np.float32)

    def count(_: vt.CustomCall, array: Any) -> Any:
        memory[:] += array
        return memory

    body = f"{CALL} {CALL.replace('%0', '%1')} return %0, %1 : tensor<2xf32>, tensor<2xf32>"
    text = program(body, results="tensor<2xf32>, tensor<2xf32>")
    assert run(text, VECTOR, handlers={"double": count}) == [[1, 2], [2, 4]]
