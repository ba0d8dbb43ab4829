"""Per-axis quantized tensors as the integers in which they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.both_engines import function
from support.expansions import check_same, check_same_on_devices, expanded

import vhlo_tools as vt

_FEATURE = "uniform_quantized_per_axis"
#: Storage, its least and greatest number.
_STORAGES: dict[str, tuple[int, int]] = {
    "i4": (-8, 7),
    "i8": (-128, 127),
    "i8<-127:127>": (-127, 127),
    "u8": (0, 255),
    "i16": (-(2**15), 2**15 - 1),
    "u16": (0, 2**16 - 1),
    "i32": (-(2**31), 2**31 - 1),
}
_SCALES, _ZEROS = (0.5, 0.3, 0.0078125), (0, 3, 5)


def _kind(shape: str, axis: int, storage: str = "i8", expressed: str = "f32", zeros: Any = _ZEROS) -> str:
    steps = ", ".join(f"{scale}:{zero}" for scale, zero in zip(_SCALES, zeros, strict=True))
    return f"tensor<{shape}!quant.uniform<{storage}:{expressed}:{axis}, {{{steps}}}>>"


def _in_numpy(numbers: Any, storage: str, axis: int) -> Any:
    """Return numbers that were quantized and dequantized, by the formulas of the specification."""
    low, high = _STORAGES[storage]
    shape = [-1 if index == axis else 1 for index in range(numbers.ndim)]
    scales, zeros = (np.array(each, np.float32).reshape(shape) for each in (_SCALES, _ZEROS))
    steps = np.clip(numbers / scales + zeros, np.float32(low), np.float32(high))
    # The nearest float may be one more than the greatest integer.
    integers = np.minimum(np.round(steps).astype(np.int64), high)
    return (integers - zeros.astype(np.int64)).astype(np.float32) * scales


@pytest.mark.sample(3)
@pytest.mark.parametrize("storage", _STORAGES)
@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((5, 3, 2), 1), ((2, 0, 3), 2)], ids=str)
def test_quantize_and_dequantize(storage: str, shape: tuple[int, ...], axis: int) -> None:
    sizes = "".join(f"{size}x" for size in shape)
    kind, floats = _kind(sizes, axis, storage), f"tensor<{sizes}f32>"
    body = f"""%0 = stablehlo.uniform_quantize %a : ({floats}) -> {kind}
      %1 = stablehlo.uniform_dequantize %0 : ({kind}) -> {floats}"""
    program = function(f"%a: {floats}", body, ["%1"], [floats])
    artifact, notes = expanded(program, _FEATURE, "0.9.0")
    assert len(notes) == 2
    assert "quant" not in artifact.text()
    rng = np.random.default_rng(0)
    value = (rng.standard_normal(shape) * 10.0 ** rng.choice([0, 1, 2, 6, 12], shape)).astype(np.float32)
    check_same(program, artifact, [[value]])
    (found,) = vt.run(artifact, [value], engine="reference")
    np.testing.assert_array_equal(found, _in_numpy(value, storage, axis))


@pytest.mark.parametrize("expressed", ["bf16", "f16", "f64"])
def test_expressed_types(expressed: str) -> None:
    kind, floats = _kind("4x3x", 1, "i8", expressed), f"tensor<4x3x{expressed}>"
    body = f"""%0 = stablehlo.convert %a : (tensor<4x3xf32>) -> {floats}
      %1 = stablehlo.uniform_quantize %0 : ({floats}) -> {kind}
      %2 = stablehlo.uniform_dequantize %1 : ({kind}) -> {floats}"""
    program = function("%a: tensor<4x3xf32>", body, ["%2"], [floats])
    artifact, _ = expanded(program, _FEATURE)
    rng = np.random.default_rng(1)
    check_same(program, artifact, [[rng.standard_normal((4, 3)).astype(np.float32) * 30]])


_WEIGHTS = _kind("2x3x", 1, "i8<-127:127>", zeros=(0, 0, 0))
_GIVEN = "tensor<4x2x!quant.uniform<i8:f32, 0.05:1>>"
_SUMS = "tensor<4x3x!quant.uniform<i8:f32, 0.25:-4>>"
_PER_AXIS_SUMS = _kind("4x3x", 1, "i32", zeros=(0, 0, 0))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("given", "gives"), [("tensor<4x2xf32>", "tensor<4x3xf32>"), (_GIVEN, _SUMS), (_GIVEN, _PER_AXIS_SUMS)]
)
@pytest.mark.parametrize("is_constant", [False, True])
def test_products_with_quantized_weights(given: str, gives: str, is_constant: bool) -> None:
    quantize = f"%w = stablehlo.uniform_quantize %b : (tensor<2x3xf32>) -> {_WEIGHTS}"
    if is_constant:
        stored = "dense<[[1, -127, 3], [0, 127, -6]]> : tensor<2x3xi8>"
        quantize = f'%w = "stablehlo.constant"() <{{value = {stored}}}> : () -> {_WEIGHTS}'
    body = quantize
    value, found = "%a", "%p"
    if "quant" in given:
        body += f"\n%q = stablehlo.uniform_quantize %a : (tensor<4x2xf32>) -> {given}"
        value, found = "%q", "%d"
    body += f"""
      %p = stablehlo.dot_general {value}, %w, contracting_dims = [1] x [0] {{my.tag = "kept"}}
        : ({given}, {_WEIGHTS}) -> {gives}"""
    if "quant" in gives:
        body += f"\n%d = stablehlo.uniform_dequantize %p : ({gives}) -> tensor<4x3xf32>"
    program = function("%a: tensor<4x2xf32>, %b: tensor<2x3xf32>", body, [found], ["tensor<4x3xf32>"])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    text = artifact.text()
    assert "quant_per_axis" not in text
    # What has one scale for all elements remains.
    assert ("quant_v1" in text) == ("quant" in given)
    assert 'my.tag = #vhlo.string_v1<"kept">' in text
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(shape).astype(np.float32) * 4 for shape in ((4, 2), (2, 3))]
    check_same(program, artifact, [arrays])


def test_convolution() -> None:
    kernel = _kind("2x1x3x", 2, "i8<-127:127>", zeros=(0, 0, 0))
    body = f"""%w = stablehlo.uniform_quantize %b : (tensor<2x1x3xf32>) -> {kernel}
      %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<2x5x1xf32>, {kernel}) -> tensor<2x4x3xf32>"""
    program = function("%a: tensor<2x5x1xf32>, %b: tensor<2x1x3xf32>", body, ["%0"], ["tensor<2x4x3xf32>"])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 1), (2, 1, 3))]
    check_same(program, artifact, [arrays])


def test_elements_that_move_and_sums() -> None:
    rows, columns = _kind("4x3x", 1), _kind("3x4x", 0)
    cube, wider = _kind("4x1x3x", 2), _kind("2x4x3x", 2)
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<4x3xf32>) -> {rows}
      %1 = stablehlo.transpose %0, dims = [1, 0] : ({rows}) -> {columns}
      %2 = stablehlo.reshape %0 : ({rows}) -> {cube}
      %3 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : ({rows}) -> {wider}
      %4 = stablehlo.add %0, %0 : {rows}
      %5 = stablehlo.uniform_dequantize %1 : ({columns}) -> tensor<3x4xf32>
      %6 = stablehlo.uniform_dequantize %2 : ({cube}) -> tensor<4x1x3xf32>
      %7 = stablehlo.uniform_dequantize %3 : ({wider}) -> tensor<2x4x3xf32>
      %8 = stablehlo.uniform_dequantize %4 : ({rows}) -> tensor<4x3xf32>
      %9 = stablehlo.bitcast_convert %0 : ({rows}) -> tensor<4x3xi8>"""
    results = {"%5": "3x4xf32", "%6": "4x1x3xf32", "%7": "2x4x3xf32", "%8": "4x3xf32", "%9": "4x3xi8"}
    program = function("%a: tensor<4x3xf32>", body, list(results), [f"tensor<{each}>" for each in results.values()])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    text = artifact.text()
    # Moving integers needs no arithmetic.
    assert text.count("vhlo.divide_v1") == 2
    value = np.random.default_rng(4).standard_normal((4, 3)).astype(np.float32) * 9
    check_same(program, artifact, [[value]])
    (turned, *_) = vt.run(artifact, [value], engine="reference")
    np.testing.assert_array_equal(turned, _in_numpy(value, "i8", 1).T)


def test_other_scales_need_arithmetic() -> None:
    one, other = _kind("4x3x", 1), _kind("4x3x", 1, "i16", zeros=(1, 2, 3))
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<4x3xf32>) -> {one}
      %1 = stablehlo.uniform_quantize %0 : ({one}) -> {other}
      %2 = stablehlo.uniform_dequantize %1 : ({other}) -> tensor<4x3xf32>"""
    program = function("%a: tensor<4x3xf32>", body, ["%2"], ["tensor<4x3xf32>"])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    value = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32) * 20
    check_same(program, artifact, [[value]])


def test_sizes_that_are_known_at_run_time_only() -> None:
    rows, columns = _kind("?x3x", 1), _kind("3x?x", 0)
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<?x3xf32>) -> {rows}
      %1 = stablehlo.transpose %0, dims = [1, 0] : ({rows}) -> {columns}
      %2 = stablehlo.get_dimension_size %1, dim = 1 : ({columns}) -> tensor<i32>
      %3 = stablehlo.uniform_dequantize %1 : ({columns}) -> tensor<3x?xf32>"""
    program = function("%a: tensor<?x3xf32>", body, ["%2", "%3"], ["tensor<i32>", "tensor<3x?xf32>"])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    value = np.random.default_rng(6).standard_normal((5, 3)).astype(np.float32) * 9
    check_same(program, artifact, [[value]], engines=["reference"])
    size, found = vt.run(artifact, [value], engine="reference")
    assert size == 5
    np.testing.assert_array_equal(found, _in_numpy(value, "i8", 1).T)


def test_shapes_that_are_values() -> None:
    rows, cube = _kind("4x3x", 1), _kind("?x?x3x", 2)
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<4x3xf32>) -> {rows}
      %s = stablehlo.constant dense<[2, 2, 3]> : tensor<3xi64>
      %t = stablehlo.constant dense<[5, 4, 3]> : tensor<3xi64>
      %1 = stablehlo.dynamic_reshape %0, %s : ({rows}, tensor<3xi64>) -> {cube}
      %2 = stablehlo.dynamic_broadcast_in_dim %0, %t, dims = [1, 2] : ({rows}, tensor<3xi64>) -> {cube}
      %3 = stablehlo.uniform_dequantize %1 : ({cube}) -> tensor<?x?x3xf32>
      %4 = stablehlo.uniform_dequantize %2 : ({cube}) -> tensor<?x?x3xf32>"""
    program = function("%a: tensor<4x3xf32>", body, ["%3", "%4"], ["tensor<?x?x3xf32>"] * 2)
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    value = np.random.default_rng(9).standard_normal((4, 3)).astype(np.float32) * 9
    check_same(program, artifact, [[value]])
    shaped, spread = vt.run(artifact, [value], engine="reference")
    expected = _in_numpy(value, "i8", 1)
    np.testing.assert_array_equal(shaped, expected.reshape(2, 2, 3))
    np.testing.assert_array_equal(spread, np.broadcast_to(expected, (5, 4, 3)))


_ROWS, _FLOATS = _kind("4x3x", 1), "tensor<4x3xf32>"
_QUANTIZE = f"%0 = stablehlo.uniform_quantize %a : ({_FLOATS}) -> {_ROWS}"
_DEQUANTIZE = f"%2 = stablehlo.uniform_dequantize %1 : ({_ROWS}) -> {_FLOATS}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            function(f"%a: {_FLOATS}", _QUANTIZE, ["%0"], [_ROWS]),
            "func.return passes it on between blocks, where it remains quantized",
        ),
        (function(f"%1: {_ROWS}", _DEQUANTIZE, ["%2"], [_FLOATS]), "a function or a region takes tensor<4x3x!quant"),
        (
            function(
                f"%a: {_FLOATS}",
                f"{_QUANTIZE} %1 = func.call @pass(%0) : ({_ROWS}) -> {_ROWS} {_DEQUANTIZE}",
                ["%2"],
                [_FLOATS],
            )
            + f" func.func private @pass(%a: {_ROWS}) -> {_ROWS} {{ return %a : {_ROWS} }}",
            "func.call passes it on between blocks",
        ),
        (
            function(
                f"%a: {_FLOATS}",
                f"""{_QUANTIZE} %1 = stablehlo.while(%b = %0) : {_ROWS} cond {{
                  %c = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %c : tensor<i1>
                }} do {{ stablehlo.return %b : {_ROWS} }} {_DEQUANTIZE}""",
                ["%2"],
                [_FLOATS],
            ),
            # The first op that does.
            "stablehlo.return passes it on between blocks",
        ),
    ],
    ids=["result", "argument", "call", "loop"],
)
def test_what_passes_between_blocks_is_refused(text: str, reason: str) -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(text, "0.17.0", expand=True)
    assert f"it cannot be expanded: {reason}" in str(refused.value)


def test_a_value_from_outside_of_a_region() -> None:
    body = f"""{_QUANTIZE}
      %3 = "stablehlo.if"(%p) ({{
        %2 = stablehlo.uniform_dequantize %0 : ({_ROWS}) -> {_FLOATS}
        stablehlo.return %2 : {_FLOATS}
      }}, {{
        stablehlo.return %a : {_FLOATS}
      }}) : (tensor<i1>) -> {_FLOATS}"""
    program = function(f"%a: {_FLOATS}, %p: tensor<i1>", body, ["%3"], [_FLOATS])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    value = np.random.default_rng(7).standard_normal((4, 3)).astype(np.float32) * 9
    check_same(program, artifact, [[value, np.array(each)] for each in (True, False)])


def test_tensors_of_one_scale_remain() -> None:
    body = f"""%0 = stablehlo.uniform_quantize %a : (tensor<4x2xf32>) -> {_GIVEN}
      %1 = stablehlo.uniform_dequantize %0 : ({_GIVEN}) -> tensor<4x2xf32>"""
    program = function("%a: tensor<4x2xf32>", body, ["%1"], ["tensor<4x2xf32>"])
    assert bytes(vt.serialize(program, "0.17.0", expand=True)) == bytes(vt.serialize(program, "0.17.0"))


def test_aliases_and_devices() -> None:
    body = f"{_QUANTIZE} %1 = stablehlo.add %0, %0 : {_ROWS} {_DEQUANTIZE}"
    program = function(f"%a: {_FLOATS} {{tf.aliasing_output = 0 : i32}}", body, ["%2"], [_FLOATS])
    artifact, _ = expanded(program, _FEATURE, "0.9.0")
    assert '{#vhlo.string_v1<"tf.aliasing_output"> = #vhlo.integer_v1<0 : i32>}' in artifact.text()
    rng = np.random.default_rng(8)
    for devices in (2, 4):
        inputs = [[rng.standard_normal((4, 3)).astype(np.float32)] for _ in range(devices)]
        check_same_on_devices(program, artifact, inputs, replicas=devices)
