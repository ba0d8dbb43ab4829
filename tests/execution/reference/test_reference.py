"""Evaluation against numpy, in every element type, and what cannot be evaluated."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.corpus import EXAMPLES
from support.element_types import TYPES

import vhlo_tools as vt
from vhlo_tools.execution import parse_tensor_type

pytestmark = pytest.mark.every_python


def identity(tensor: str) -> str:
    return f"func.func @main(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}"


def unary(op: str, tensor: str) -> str:
    return f"func.func @main(%a: {tensor}) -> {tensor} {{ %0 = {op} : {tensor} return %0 : {tensor} }}"


def values(element: str, count: int) -> np.ndarray[Any, Any]:
    """Return arrays of any bits, or of any of the values that fit a type of less than a byte."""
    dtype = np.dtype(TYPES[element])
    raw = np.random.default_rng(0).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    few = {"i1": 2, "i2": 2, "i4": 8, "ui2": 4, "ui4": 16}.get(element)
    return np.asarray(raw.view(dtype) if few is None else (raw % few).astype(np.int8).astype(dtype))


@pytest.mark.sample(16)
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_bit_of_every_type_goes_in_and_out(element: str, shape: tuple[int, ...]) -> None:
    array = values(element, int(np.prod(shape))).reshape(shape)
    tensor = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    (result,) = vt.run(identity(tensor), [array])
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert result.tobytes() == array.tobytes()


@pytest.mark.parametrize("element", [element for element in TYPES if element not in ("i1", "f8E8M0FNU")])
def test_arithmetic(element: str) -> None:
    array = np.array([0, 1, 1, 0, 1]).astype(TYPES[element])
    tensor = f"tensor<5x{element}>"
    (result,) = vt.run(unary("stablehlo.multiply %a, %a", tensor), [array])
    assert np.array_equal(result.astype(np.complex128), array.astype(np.complex128))


def test_arguments_and_results_of_several_carriages() -> None:
    program = """
    func.func @main(%a: tensor<2xcomplex<f32>>, %b: tensor<2xf32>, %c: tensor<2xbf16>)
        -> (tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<2xbf16>, tensor<2xf32>) {
      %0 = stablehlo.real %a : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
      return %b, %a, %c, %0 : tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<2xbf16>, tensor<2xf32>
    }"""
    a, b = np.array([1 + 2j, 3 - 4j], np.complex64), np.array([5, 6], np.float32)
    c = np.array([7, 8]).astype(ml_dtypes.bfloat16)
    results = vt.run(program, [a, b, c])
    for found, expected in zip(results, (b, a, c, a.real), strict=True):
        assert np.array_equal(found, expected)


def test_a_complex_constant() -> None:
    tensor = "tensor<2xcomplex<f64>>"
    program = f"""func.func @main() -> {tensor} {{
      %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : {tensor}
      return %0 : {tensor}
    }}"""
    assert np.array_equal(vt.run(program, [])[0], [1 + 2j, 3 - 4j])


def test_a_complex_program_that_calls_itself_main() -> None:
    program = """
    func.func @main(%a: tensor<complex<f32>>) -> tensor<complex<f32>> { return %a : tensor<complex<f32>> }
    func.func private @other(%a: tensor<complex<f32>>) -> tensor<complex<f32>> {
      %0 = func.call @main(%a) : (tensor<complex<f32>>) -> tensor<complex<f32>>
      return %0 : tensor<complex<f32>>
    }"""
    assert vt.run(program, [1j])[0] == np.complex64(1j)


@settings(max_examples=25)
@given(st.lists(st.floats(-(2.0**20), 2.0**20, width=32), min_size=4, max_size=4))
def test_saxpy_is_numpy(x: list[float]) -> None:
    (result,) = vt.run(EXAMPLES / "saxpy.mlir", [2.0, x, [1.0] * 4])
    assert np.array_equal(result, np.float32(2.0) * np.array(x, np.float32) + np.float32(1.0))


def test_strides_and_byte_orders() -> None:
    array = np.arange(12, dtype=">f8").reshape(3, 4)[:, ::2]
    assert np.array_equal(vt.run(identity("tensor<3x2xf64>"), [array])[0], array)
    assert np.array_equal(
        vt.run(identity("tensor<4x3xf64>"), [np.arange(12.0).reshape(3, 4).T])[0].T.ravel(), range(12)
    )


def test_dynamic_shapes_take_those_of_the_inputs() -> None:
    tensor = "tensor<?x2x?xcomplex<f32>>"
    program = unary("stablehlo.add %a, %a", tensor)
    array = np.ones((3, 2, 5), np.complex64)
    assert np.array_equal(vt.run(program, [array])[0], array + array)
    with pytest.raises(vt.EngineError, match=r"input 0 is complex64\[3, 4, 5\].*requires complex64\[any, 2, any\]"):
        vt.run(program, [np.ones((3, 4, 5), np.complex64)])


def test_a_jax_export_with_symbolic_shapes() -> None:
    import jax.export

    data = (EXAMPLES / "symbolic_export.jax_export").read_bytes()
    exported = jax.export.deserialize(bytearray(data))
    chance = np.random.default_rng(0)
    arguments = []
    for aval in exported.in_avals:
        shape = [{"b": 2, "s": 5}.get(str(size), size) for size in aval.shape]
        integers = np.issubdtype(aval.dtype, np.integer)
        arguments.append((chance.integers(0, 8, shape) if integers else chance.normal(size=shape)).astype(aval.dtype))
    tree = jax.tree.unflatten(exported.in_tree, arguments)
    if jax.__version_info__ < (0, 8, 2):
        # It refuses to call this file, as one of no devices.
        expected: Any = vt.run(EXAMPLES / "symbolic_export.jax_export", arguments, engine="xla")
    else:
        expected = jax.tree.leaves(exported.call(*tree[0], **tree[1]))
    results = vt.run(EXAMPLES / "symbolic_export.jax_export", arguments)
    assert len(results) == len(expected)
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_the_train_step_is_what_xla_computes() -> None:
    import jax

    path = EXAMPLES / "transformer_step.mlir"
    module = vt.deserialize(vt.serialize(path))
    types = [
        parse_tensor_type(str(each))
        for each in module.body.operations[0].operation.attributes["function_type"].value.inputs
    ]
    chance = np.random.default_rng(0)
    arguments = []
    for each in types:
        shape = [size or 0 for size in each.shape]
        draw = chance.integers(0, 8, shape) if each.dtype.kind == "i" else abs(chance.normal(size=shape))
        arguments.append(np.asarray(draw).astype(each.dtype))
    results = vt.run(path, arguments)
    expected = run_on_xla(jax, str(vt.deserialize(vt.serialize(path))), arguments)
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def run_on_xla(jax: Any, text: str, arguments: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    from jaxlib import xla_client

    client = jax.local_devices()[0].client
    devices = xla_client.DeviceList((jax.local_devices()[0],))
    text = text.replace("tf.aliasing_output", "my.aliasing_output")
    executable = client.compile_and_load(text, devices, xla_client.CompileOptions())
    buffers = [jax.device_put(argument) for argument in arguments]
    return [
        np.asarray(shards[0]) for shards in executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    ]


def test_chlo_is_lowered() -> None:
    from math import erf

    tensor = "tensor<3xf32>"
    program = (
        f"func.func @main(%a: {tensor}) -> {tensor} {{ %0 = chlo.erf %a : {tensor} -> {tensor} return %0 : {tensor} }}"
    )
    (result,) = vt.run(program, [[0.0, 0.5, -1.0]])
    np.testing.assert_allclose(result, [erf(x) for x in (0.0, 0.5, -1.0)], rtol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "requires 3 inputs, got 0"),
        (
            [1.0, np.zeros(4, np.float32), np.zeros(4)],
            r"input 2 is float64\[4\], but the program requires float32\[4\]",
        ),
        ([1.0, [1.0, 2.0], [0.0] * 4], r"input 1 is float32\[2\], but the program requires float32\[4\]"),
        (["a", [0.0] * 4, [0.0] * 4], "input 0 is not an array of numbers"),
        ([[[1], [2, 3]], [0.0] * 4, [0.0] * 4], "input 0 is not an array of numbers"),
        ([1j, [0.0] * 4, [0.0] * 4], "input 0 is complex: the program requires tensor<f32>"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Any], message: str) -> None:
    with pytest.raises(vt.EngineError, match=message):
        vt.run(EXAMPLES / "saxpy.mlir", inputs)


@pytest.mark.parametrize(
    ("element", "value"), [("i8", 300), ("i8", -129), ("ui8", -1), ("i32", 1.5), ("i4", 9), ("ui2", 4), ("i1", 2)]
)
def test_numbers_that_an_integer_cannot_hold(element: str, value: float) -> None:
    with pytest.raises(vt.EngineError, match="contains numbers that .* cannot represent"):
        vt.run(identity(f"tensor<{element}>"), [value])


F32 = "tensor<4xf32>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f'%0 = stablehlo.custom_call @f(%a) : ({F32}) -> {F32} loc("m.py":3:1)',
            "m.py:3:1: .*cannot run stablehlo.custom_call",
        ),
        (f"%0 = arith.maxnumf %a, %a : {F32}", "it does not support ops of the dialect arith"),
        (
            '%0 = stablehlo.create_token : !stablehlo.token %1 = "stablehlo.outfeed"(%0) : (!stablehlo.token) -> '
            "!stablehlo.token",
            "stablehlo.outfeed",
        ),
        (f"%0 = func.call @g(%a) : ({F32}) -> {F32}", "func.func: the function is declared, but not defined"),
        (
            "%0 = stablehlo.constant dense_resource<r> : tensor<4xf32>",
            "does not contain the bytes of its dense_resource",
        ),
    ],
)
def test_what_would_end_the_process_is_refused_by_name(body: str, message: str) -> None:
    program = f"func.func @main(%a: {F32}) -> {F32} {{\n {body}\n return %a : {F32}\n}}"
    if "@g" in body:
        program += f"\nfunc.func private @g({F32}) -> {F32}"
    with pytest.raises(vt.EngineError, match=message):
        vt.run(program, [[0.0] * 4], engine="reference")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            f"""func.func @main(%a: {F32}) -> {F32} {{
              %f = func.constant @g : ({F32}) -> {F32}
              %0 = func.call_indirect %f(%a) : ({F32}) -> {F32}
              return %0 : {F32}
            }}
            func.func private @g(%a: {F32}) -> {F32} {{ return %a : {F32} }}""",
            "cannot run func.constant",
        ),
        (
            """func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
              %0 = func.call @f(%a) : (tensor<?xf32>) -> tensor<?xf32>
              return %0 : tensor<?xf32>
            }
            func.func private @f(%a: tensor<?xf32>) -> tensor<?xf32> {
              %0 = func.call @f(%a) : (tensor<?xf32>) -> tensor<?xf32>
              return %0 : tensor<?xf32>
            }""",
            "do not resolve the shape|does not match these inputs",
        ),
    ],
)
def test_calls_that_would_end_the_process(program: str, message: str) -> None:
    with pytest.raises(vt.EngineError, match=message):
        vt.run(program, [np.zeros(4, np.float32)], engine="reference")


def test_a_module_that_nobody_verified(raw: Any) -> None:
    module = raw.parse(f"func.func @main(%a: {F32}) -> {F32} {{ %0 = stablehlo.abs %a : {F32} return %0 : {F32} }}")
    del module.body.operations[0].attributes["sym_name"]
    with pytest.raises(vt.InvalidProgramError, match="is not valid"):
        vt.run(module, [[0.0] * 4])


def test_programs_that_cannot_be_called() -> None:
    with pytest.raises(vt.InvalidProgramError, match="has no function @main to run: it has @f"):
        vt.run("func.func @f() { return }", [])
    with pytest.raises(vt.InvalidProgramError, match="it has no functions"):
        vt.run("module {}", [])
    with pytest.raises(vt.EngineError, match="numpy cannot represent values of type tensor<i7>"):
        vt.run("func.func @main(%a: tensor<i7>) { return }", [0])
    with pytest.raises(ValueError, match="'gpu' is not an engine"):
        vt.run("func.func @main() { return }", [], engine="gpu")
    assert vt.run("func.func @main() { return }", []) == ()


def test_the_module_of_the_caller_stays_as_it_is(raw: Any) -> None:
    tensor = "tensor<?xcomplex<f32>>"
    module = raw.parse(f"func.func @main(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}")
    before = str(module)
    assert vt.run(module, [np.ones(3, np.complex64)])[0].shape == (3,)
    assert str(module) == before
