"""Programs of strangers: whatever they hold, the process that asks for a run lives, and is told why there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

F32, V = "tensor<f32>", "tensor<8xf32>"
ONE = np.float32(1)


def nested(depth: int) -> str:
    opened = "".join(f'%v{each} = "stablehlo.if"(%c) ({{ ' for each in range(depth))
    end = f"}}, {{ stablehlo.return %a : {F32} }}) : (tensor<i1>) -> {F32} "
    closed = "".join(end + (f"stablehlo.return %v{each} : {F32} " if each else "") for each in reversed(range(depth)))
    return (
        f"func.func @main(%a: {F32}, %c: tensor<i1>) -> {F32} {{ "
        f"{opened} stablehlo.return %a : {F32} {closed} return %v0 : {F32} }}"
    )


def chained(length: int, calls: int = 1) -> str:
    """Return functions each of which calls the next so many times."""
    lines = [f"func.func @main(%a: {F32}) -> {F32} {{ %0 = call @f0(%a) : ({F32}) -> {F32} return %0 : {F32} }}"]
    for each in range(length):
        body = "".join(f"%v{n + 1} = call @f{each + 1}(%v{n}) : ({F32}) -> {F32} " for n in range(calls))
        last = f"%v{calls} = stablehlo.add %v0, %v0 : {F32}"
        inner = body if each < length - 1 else last
        lines.append(f"func.func private @f{each}(%v0: {F32}) -> {F32} {{ {inner} return %v{calls} : {F32} }}")
    return "\n".join(lines)


def test_what_is_nested_deep_is_not_given_to_xla() -> None:
    with pytest.raises(vt.EngineError, match="levels deep, and deeper nesting crashes XLA"):
        vt.run(nested(300), [ONE, np.True_], engine="xla")
    # The interpreter survives more, and is asked in a child process.
    assert vt.run(nested(300), [ONE, np.True_]) == (1,)


def test_calls_within_calls_are_not_given_to_xla() -> None:
    with pytest.raises(vt.EngineError, match="levels deep, and deeper nesting crashes XLA"):
        vt.run(chained(600), [ONE], engine="xla")
    assert vt.run(chained(600), [ONE]) == (2,)


def test_calls_that_double_forty_times_are_not_given_to_xla() -> None:
    with pytest.raises(vt.EngineError, match=r"it has \d{12,} ops after XLA inlines all calls"):
        vt.run(chained(40, calls=2), [ONE], engine="xla")


def test_values_larger_than_there_are_numbers_for_are_refused() -> None:
    huge = "tensor<4611686018427387904x4x8xf32>"
    text = f"""func.func @main(%a: {V}) -> tensor<1x1x8xf32> {{
      %0 = stablehlo.broadcast_in_dim %a, dims = [2] : ({V}) -> {huge}
      %1 = stablehlo.slice %0 [0:1, 0:1, 0:8] : ({huge}) -> tensor<1x1x8xf32>
      return %1 : tensor<1x1x8xf32>
    }}"""
    with pytest.raises(vt.EngineError, match="in bytes overflows 63 bits"):
        vt.run(text, [np.ones(8, np.float32)])


def test_tuples_a_thousand_deep_are_refused() -> None:
    kind = "tuple<" * 1000 + F32 + ">" * 1000
    with pytest.raises(vt.EngineError, match="are nested 1001 deep"):
        vt.load_executable(f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}")


def called(target: str, attributes: str, *results: str) -> str:
    kinds = ", ".join(results)
    return f"""func.func @main(%a: {V}) -> {results[0]} {{
      %0:{len(results)} = stablehlo.custom_call @{target}(%a) {{{attributes}}} : ({V}) -> ({kinds})
      return %0#0 : {results[0]}
    }}"""


@pytest.mark.parametrize(
    "results", [("tensor<9xf32>", "tensor<9xi32>"), ("tensor<2x3xf32>", "tensor<2x3xi32>"), (V,)], ids=str
)
def test_top_k_of_more_than_there_is_is_refused(results: tuple[str, ...]) -> None:
    with pytest.raises(vt.EngineError, match="TopK requires one tensor"):
        vt.run(called("TopK", "", *results), [np.ones(8, np.float32)], engine="xla")


def test_top_k_as_it_should_be_is_run() -> None:
    text = called("TopK", "", "tensor<3xf32>", "tensor<3xi32>")
    (given,) = vt.run(text, [np.arange(8, dtype=np.float32)], engine="xla")
    assert given.tolist() == [7, 6, 5]


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"])
def test_functions_of_another_process_are_not_called(target: str) -> None:
    attributes = "api_version = 4 : i32, backend_config = {index = 0 : ui64}"
    with pytest.raises(vt.EngineError, match="a function of the process that created the program"):
        vt.run(called(target, attributes, V), [np.ones(8, np.float32)], engine="xla")

    def double(_: vt.CustomCall, array: Any) -> Any:
        return array * 2

    (given,) = vt.run(called(target, attributes, V), [np.ones(8, np.float32)], engine="xla", handlers={target: double})
    assert given.tolist() == [2] * 8


def test_what_xla_makes_of_dynamic_shapes_itself_is_refused() -> None:
    with pytest.raises(vt.EngineError, match="XLA reserves this target"):
        vt.run(called("SliceToDynamic", "", V), [np.ones(8, np.float32)], engine="xla")
