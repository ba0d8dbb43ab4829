"""Which engine `auto` takes, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.execution.reference.preparation import estimated_steps

pytestmark = pytest.mark.every_python


def chosen(text: str, **options: Any) -> tuple[str, str]:
    executable = vt.load_executable(text, **options)
    inputs = [
        np.zeros([2 if size is None else size for size in each.sizes], np.float32) for each in _arrays(executable)
    ]
    report = executable.execute(inputs).report
    return report.engine, report.why


def _arrays(executable: vt.Executable) -> Any:
    return executable.signature.parameters


def product(size: int, kind: str = "f32") -> str:
    tensor = f"tensor<{size}x{size}x{kind}>"
    op = f"stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : ({tensor}, {tensor}) -> {tensor}"
    return f"func.func @main(%a: {tensor}) -> {tensor} {{ %0 = {op} return %0 : {tensor} }}"


def body(op: str, kind: str = "tensor<4xf32>") -> str:
    return f"func.func @main(%a: {kind}) -> {kind} {{ {op} return %0 : {kind} }}"


def test_what_is_small_goes_to_the_interpreter() -> None:
    engine, why = chosen(product(32))
    assert engine == "reference"
    assert why.startswith("it is small: the interpreter takes about 0.008")


def test_what_is_large_goes_to_xla() -> None:
    assert chosen(product(256)) == ("xla", "the interpreter would take about 4.2 s")


def test_what_the_interpreter_lacks_goes_to_xla_with_the_reason() -> None:
    engine, why = chosen(body("%0 = arith.maximumf %a, %a : tensor<4xf32>").replace("arith.maximumf", "stablehlo.add"))
    assert engine == "reference"
    bounds = "%l = stablehlo.constant dense<0.0> : tensor<f32> %s = stablehlo.constant dense<4> : tensor<1xi64>"
    drawn = "%0 = stablehlo.rng %l, %l, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>)"
    engine, why = chosen(body(f"{bounds} {drawn} -> tensor<4xf32>"))
    assert engine == "xla"
    assert "the reference interpreter cannot run stablehlo.rng" in why


def test_handlers_and_what_is_known_decide() -> None:
    call = body("%0 = stablehlo.custom_call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>")
    assert chosen(call, handlers={"f": lambda _, array: array})[0] == "reference"
    sharding = body("%0 = stablehlo.custom_call @Sharding(%a) : (tensor<4xf32>) -> tensor<4xf32>")
    assert chosen(sharding)[0] == "reference"


def test_what_no_engine_can_run_has_both_reasons() -> None:
    text = body("%0 = stablehlo.custom_call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>")
    with pytest.raises(vt.EngineError) as said:
        vt.load_executable(text)
    for part in (
        "no engine can run the text",
        "no handler for custom calls of f on the interpreter",
        "give a handler for it (--handler f=MODULE:FUNCTION, handlers={'f': function})",
    ):
        assert part in str(said.value)


def test_what_is_large_and_xla_lacks_goes_to_the_interpreter() -> None:
    kind = "tensor<1000000xf32>"
    narrow = "tensor<1000000xf6E2M3FN>"
    text = f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = stablehlo.convert %a : ({kind}) -> {narrow}
      %1 = stablehlo.convert %0 : ({narrow}) -> {kind}
      return %1 : {kind}
    }}"""
    executable = vt.load_executable(text)
    assert executable.engine == "reference"


def test_what_was_asked_for_is_taken() -> None:
    assert chosen(product(4), engine="xla") == ("xla", "as requested")


def test_dynamic_shapes_are_taken_for_middling() -> None:
    assert chosen(body("%0 = stablehlo.add %a, %a : tensor<?xf32>", "tensor<?xf32>"))[0] == "reference"
    product_of_unknown = body(
        "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]"
        " : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
    )
    assert chosen(product_of_unknown)[0] == "reference"


@pytest.mark.parametrize(
    ("op", "steps"),
    [
        ("%0 = stablehlo.add %a, %a : tensor<8x8xf32>", 64),
        ("%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
         "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>", 512),
        ("%0 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1] : "
         "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>", 64),
        ("%z = stablehlo.constant dense<0.0> : tensor<f32> "
         "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] : "
         "(tensor<8x8xf32>, tensor<f32>) -> tensor<f32>", 64),
        ("%0 = func.call @g(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>", 128),
        ("%0 = stablehlo.while(%x = %a) : tensor<8x8xf32> cond { %c = stablehlo.constant dense<false> : tensor<i1> "
         "stablehlo.return %c : tensor<i1> } do { %y = stablehlo.add %x, %x : tensor<8x8xf32> "
         "stablehlo.return %y : tensor<8x8xf32> }", 32 * 64),
    ],
)  # fmt: skip
def test_steps_are_elements_times_what_is_contracted(op: str, steps: int, provider: Provider) -> None:
    function = """func.func private @g(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %0 = stablehlo.add %x, %x : tensor<8x8xf32>
      %1 = stablehlo.add %0, %x : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }"""
    text = f"{function} func.func @main(%a: tensor<8x8xf32>) {{ {op} return }}"
    found = estimated_steps(provider.parse(provider.new_context(), text))
    assert steps <= found <= steps * 1.1 + 8


def test_a_function_that_calls_itself_has_an_estimate(provider: Provider) -> None:
    text = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = func.call @main(%a) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert estimated_steps(provider.parse(provider.new_context(), text)) < 10
