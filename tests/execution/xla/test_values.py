"""Values on XLA beyond plain arrays: tokens, quantized and bounded tensors; and programs that it must not be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

F32, TOKEN = "tensor<4xf32>", "!stablehlo.token"


def on_both(text: str, inputs: list[Any]) -> list[list[Any]]:
    return [
        [None if each is None else each.tolist() for each in vt.run(text, inputs, engine=engine)]
        for engine in ("xla", "reference")
    ]


def test_tokens_are_none_and_aliases_stay_with_their_arrays() -> None:
    text = f"""func.func @main(
        %t: {TOKEN}, %a: {F32} {{tf.aliasing_output = 2 : i32}}, %b: {F32}) -> ({F32}, {TOKEN}, {F32}) {{
      %0 = stablehlo.after_all %t, %t : {TOKEN}
      %1 = stablehlo.add %a, %b : {F32}
      return %b, %0, %1 : {F32}, {TOKEN}, {F32}
    }}"""
    executable = vt.load_executable(text, engine="xla")
    buffer = vt.Buffer.on_xla(np.arange(4, dtype=np.float32))
    address = buffer.address
    execution = executable.execute([None, buffer, [1.0] * 4], donate=(1,))
    assert execution.buffers[1] is None
    assert execution.buffers[2].address == address
    assert buffer.is_deleted
    assert execution.outputs[2].tolist() == [1, 2, 3, 4]


def test_a_program_of_tokens_alone() -> None:
    assert vt.run(f"func.func @main(%t: {TOKEN}) -> {TOKEN} {{ return %t : {TOKEN} }}", [None], engine="xla") == (None,)


@pytest.mark.parametrize("quantized", ["!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<u8:f32:0, {0.5:1,0.25}>"])
def test_quantized_tensors_are_stored_as_on_the_interpreter(quantized: str) -> None:
    kind = f"tensor<2x{quantized}>"
    text = f"""func.func @main(%a: {kind}) -> ({kind}, tensor<2xf32>) {{
      %0 = stablehlo.add %a, %a : {kind}
      %1 = stablehlo.uniform_dequantize %0 : ({kind}) -> tensor<2xf32>
      return %0, %1 : {kind}, tensor<2xf32>
    }}"""
    found, wanted = on_both(text, [[7, 9]])
    assert found == wanted


def test_bounded_sizes_are_those_of_the_inputs() -> None:
    kind = "tensor<?xf32, #stablehlo.bounds<4>>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.add %a, %a : {kind} return %0 : {kind} }}"
    for size in (0, 3, 4):
        found, wanted = on_both(text, [np.ones(size, np.float32)])
        assert found == wanted == [[2] * size]


REFUSED = {
    "infeed": (
        f'%t = stablehlo.create_token : {TOKEN} %0:2 = "stablehlo.infeed"(%t) : ({TOKEN}) -> ({F32}, {TOKEN})',
        "stablehlo.infeed: there is no infeed source, so",
    ),
    "outfeed": (
        f'%t = stablehlo.create_token : {TOKEN} %u = "stablehlo.outfeed"(%a, %t) : ({F32}, {TOKEN}) -> {TOKEN}',
        "stablehlo.outfeed: there is no outfeed consumer, so",
    ),
    "recursion": (f"%0 = func.call @g(%a) : ({F32}) -> {F32}", "func.call: it calls a recursive function"),
    "declared": (f"%0 = func.call @h(%a) : ({F32}) -> {F32}", "func.func: the function is declared, but not defined"),
    "resource": (
        f"%0 = stablehlo.constant dense_resource<r> : {F32}",
        "stablehlo.constant: the program does not contain the bytes",
    ),
    "six bits": (
        "%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf6E2M3FN>",
        "stablehlo.convert: XLA does not support 6-bit floats on a CPU; the engine reference does",
    ),
}
FUNCTIONS = {
    "recursion": f"func.func private @g(%a: {F32}) -> {F32} {{"
    f" %0 = func.call @g(%a) : ({F32}) -> {F32} return %0 : {F32} }}",
    "declared": f"func.func private @h({F32}) -> {F32}",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_hangs_xla_or_ends_the_process_is_refused_by_name(name: str) -> None:
    body, said = REFUSED[name]
    text = f"{FUNCTIONS.get(name, '')} func.func @main(%a: {F32}) -> {F32} {{ {body} return %a : {F32} }}"
    with pytest.raises(vt.EngineError, match=rf"text:1:\d+: the engine xla cannot run {said}"):
        vt.run(text, [[0.0] * 4], engine="xla")


@pytest.mark.parametrize("element", ["f4E2M1FN", "f6E2M3FN", "f6E3M2FN"])
def test_the_narrowest_floats_pass_or_are_refused_by_name(element: str) -> None:
    import ml_dtypes

    dtype = {
        "f4E2M1FN": ml_dtypes.float4_e2m1fn,
        "f6E2M3FN": ml_dtypes.float6_e2m3fn,
        "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    }[element]
    array = np.array([1, 0, 2], dtype)
    kind = f"tensor<3x{element}>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}"
    try:
        (result,) = vt.run(text, [array], engine="xla")
    except vt.EngineError as error:
        assert f"does not support elements of {element}: use the engine reference" in str(error)
    else:
        assert result.tobytes() == array.tobytes()
