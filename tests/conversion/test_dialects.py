"""What no artifact can hold becomes plain StableHLO of the same meaning: numpy says what that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.conversion.arith_ops import ARITHMETIC
from vhlo_tools.conversion.legalizing import MHLO
from vhlo_tools.conversion.tensor_ops import SHAPES, TENSORS

pytestmark = pytest.mark.every_python

# Values that show the difference between signed and unsigned, floor and truncation, ordered and unordered.
INTEGERS = np.array([[7, -7, 100, -128, 5], [3, 3, -100, 2, 5]], np.int8)
FLOATS = np.array([[1.5, -2.5, np.nan, 0.0, 3.0], [1.5, 2.0, 1.0, np.nan, -4.0]], np.float32)
POSITIVE = np.array([0.5, 1.0, 2.5, 4.0], np.float32)
SMALL = np.array([-0.75, -0.5, 0.25, 0.5], np.float32)
UNSIGNED = INTEGERS.view(np.uint8)


def floats(values: Any) -> Any:
    return np.array(values, np.float32)


def unsigned(function: Any) -> Any:
    """Return a function of the same bits as unsigned integers."""
    return lambda a, b: function(a.view(np.uint8), b.view(np.uint8))


def negated(function: Any) -> Any:
    return lambda a, b: ~function(a, b)


#: For each op on two operands: its spelling, its operands, and what it gives.
BINARY: dict[str, tuple[Any, Any]] = {
    "arith.addf": (FLOATS, lambda a, b: a + b),
    "arith.addi": (INTEGERS, lambda a, b: a + b),
    "arith.andi": (INTEGERS, lambda a, b: a & b),
    "arith.divf": (FLOATS, lambda a, b: a / b),
    "arith.divsi": (INTEGERS, lambda a, b: np.trunc(a / b.astype(np.float64)).astype(np.int8)),
    "arith.divui": (INTEGERS, unsigned(np.floor_divide)),
    "arith.maximumf": (FLOATS, np.maximum),
    "arith.maxsi": (INTEGERS, np.maximum),
    "arith.maxui": (INTEGERS, unsigned(np.maximum)),
    "arith.minimumf": (FLOATS, np.minimum),
    "arith.minsi": (INTEGERS, np.minimum),
    "arith.minui": (INTEGERS, unsigned(np.minimum)),
    "arith.mulf": (FLOATS, lambda a, b: a * b),
    "arith.muli": (INTEGERS, lambda a, b: a * b),
    "arith.ori": (INTEGERS, lambda a, b: a | b),
    "arith.remf": (FLOATS, np.fmod),
    "arith.remsi": (INTEGERS, lambda a, b: np.fmod(a.astype(np.int32), b).astype(np.int8)),
    "arith.remui": (INTEGERS, unsigned(np.remainder)),
    "arith.shli": (np.array([[1, -1, 5], [1, 3, 0]], np.int8), lambda a, b: a << b),
    "arith.shrsi": (np.array([[64, -64, 5], [1, 3, 0]], np.int8), lambda a, b: a >> b),
    "arith.shrui": (np.array([[64, -64, 5], [1, 3, 0]], np.int8), unsigned(np.right_shift)),
    "arith.subf": (FLOATS, lambda a, b: a - b),
    "arith.subi": (INTEGERS, lambda a, b: a - b),
    "arith.xori": (INTEGERS, lambda a, b: a ^ b),
    "math.atan2": (np.stack([SMALL, POSITIVE]), np.arctan2),
    "math.powf": (np.stack([POSITIVE, SMALL]), np.power),
}

#: For each op on one operand: the operand, and what it gives.
ERF = np.array([-0.7111556, -0.5204999, 0.2763264, 0.5204999], np.float32)
TRIGONOMETRIC = ("cos", "cosh", "sin", "sinh", "tan", "tanh")
UNARY: dict[str, tuple[Any, Any]] = {
    **{f"math.{name}": (SMALL, getattr(np, name)) for name in (*TRIGONOMETRIC, "exp", "expm1")},
    **{f"math.a{name}": (SMALL, getattr(np, f"arc{name}")) for name in TRIGONOMETRIC if name != "cosh"},
    **{f"math.{name}": (POSITIVE, getattr(np, name)) for name in ("cbrt", "log", "log1p", "sqrt")},
    "arith.negf": (FLOATS[0], np.negative),
    "math.absf": (FLOATS[0], np.abs),
    "math.absi": (INTEGERS[0][:3], np.abs),
    "math.acosh": (1 + POSITIVE, np.arccosh),
    "math.ceil": (FLOATS[0], np.ceil),
    "math.ctlz": (np.array([1, 0, -1, 64], np.int8), lambda a: np.array([7, 8, 0, 1], np.int8)),
    "math.ctpop": (np.array([1, 0, -1, 65], np.int8), lambda a: np.array([1, 0, 8, 2], np.int8)),
    "math.erf": (SMALL, lambda a: ERF),
    "math.erfc": (SMALL, lambda a: 1 - ERF),
    "math.floor": (FLOATS[0], np.floor),
    "math.round": (np.array([0.5, -0.5, 1.5, 2.5], np.float32), lambda a: np.array([1, -1, 2, 3], np.float32)),
    "math.roundeven": (np.array([0.5, -0.5, 1.5, 2.5], np.float32), np.round),
    "math.rsqrt": (POSITIVE, lambda a: 1 / np.sqrt(a)),
    "mhlo.copy": (SMALL, lambda a: a),
}
OF_MHLO_TOO = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")
UNARY |= {f"mhlo.{name}": UNARY[f"math.{name}"] for name in OF_MHLO_TOO}

#: For each conversion: the operand, what it gives, and the types in between.
CONVERSIONS: dict[str, tuple[Any, Any]] = {
    "arith.bitcast": (np.array([1.0, -2.0], np.float32), np.array([1.0, -2.0], np.float32).view(np.int32)),
    "arith.extf": (SMALL.astype(np.float16), SMALL),
    "arith.extsi": (INTEGERS[0], INTEGERS[0].astype(np.int32)),
    "arith.extui": (INTEGERS[0], UNSIGNED[0].astype(np.int32)),
    "arith.fptosi": (np.array([1.9, -1.9], np.float32), np.array([1, -1], np.int32)),
    "arith.fptoui": (np.array([1.9, 200.5], np.float32), np.array([1, 200], np.uint8).view(np.int8)),
    "arith.sitofp": (INTEGERS[0], INTEGERS[0].astype(np.float32)),
    "arith.truncf": (SMALL, SMALL.astype(np.float16)),
    "arith.trunci": (np.array([300, -1], np.int32), np.array([44, -1], np.int8)),
    "arith.uitofp": (INTEGERS[0], UNSIGNED[0].astype(np.float32)),
}


def mlir_type(array: Any) -> str:
    letters = {"b": "i", "i": "i", "f": "f"}[array.dtype.kind]
    bits = 1 if array.dtype.kind == "b" else array.dtype.itemsize * 8
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{letters}{bits}>"


def outcome(text: str, *inputs: Any) -> tuple[Any, ...]:
    """Return what a program computes once it is an artifact without other dialects."""
    artifact = vt.serialize(text)
    assert {each.level for each in artifact.findings} == {"note"}
    assert set(artifact.dialects) <= {"builtin", "vhlo"}
    return vt.run(artifact, inputs)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str) -> None:
    (one, other), expected = BINARY[name]
    kind = mlir_type(one)
    text = f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{ %0 = {name} %a, %b : {kind} return %0 : {kind} }}"
    (found,) = outcome(text, one, other)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected(one, other).view(one.dtype), rtol=1e-6)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str) -> None:
    operand, expected = UNARY[name]
    kind = mlir_type(operand)
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = {name} %a : {kind} return %0 : {kind} }}"
    (found,) = outcome(text, operand)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected(operand), rtol=2e-6)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str) -> None:
    operand, expected = CONVERSIONS[name]
    before, after = mlir_type(operand), mlir_type(expected)
    text = f"func.func @main(%a: {before}) -> {after} {{ %0 = {name} %a : {before} to {after} return %0 : {after} }}"
    (found,) = outcome(text, operand)
    np.testing.assert_array_equal(found, expected)


ORDERS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
OTHERWISE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
COMPARISONS: dict[str, tuple[Any, Any]] = {
    "cmpf oeq": (FLOATS, np.equal),
    "cmpf une": (FLOATS, np.not_equal),
    **{f"cmpf o{name}": (FLOATS, order) for name, order in ORDERS.items()},
    # Of NaN, what is unordered holds always.
    **{f"cmpf u{name}": (FLOATS, negated(ORDERS[other])) for name, other in OTHERWISE.items()},
    "cmpi eq": (INTEGERS, np.equal),
    "cmpi ne": (INTEGERS, np.not_equal),
    **{f"cmpi s{name}": (INTEGERS, order) for name, order in ORDERS.items()},
    **{f"cmpi u{name}": (INTEGERS, unsigned(order)) for name, order in ORDERS.items()},
}


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(op: str) -> None:
    values, expected = COMPARISONS[op]
    kind = mlir_type(values[0])
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> tensor<5xi1> {{
      %0 = arith.{op}, %a, %b : {kind}
      return %0 : tensor<5xi1>
    }}"""
    np.testing.assert_array_equal(outcome(text, *values)[0], expected(*values))


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def cast_of_size(op: str, dimension: int) -> tuple[str, list[Any], list[Any]]:
    text = f"""func.func @main(%a: tensor<3x4xf32>) -> tensor<1xi32> {{
      %c = arith.constant {dimension} : index
      %0 = tensor.dim %a, %c : tensor<3x4xf32>
      %1 = arith.{op} %0 : index to i32
      %2 = tensor.from_elements %1 : tensor<1xi32>
      return %2 : tensor<1xi32>
    }}"""
    return text, [MATRIX], [np.array([MATRIX.shape[dimension]], np.int32)]


#: For each op on shapes and parts: a function, its inputs and its results.
PROGRAMS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "arith.constant": (
        """func.func @main() -> (tensor<2xi64>, tensor<f32>) {
          %0 = arith.constant dense<[1, 2]> : tensor<2xi64>
          %1 = arith.constant 2.5 : f32
          %2 = tensor.from_elements %1 : tensor<f32>
          return %0, %2 : tensor<2xi64>, tensor<f32>
        }""",
        [],
        [np.array([1, 2]), np.float32(2.5)],
    ),
    "arith.index_cast": cast_of_size("index_cast", 1),
    "arith.index_castui": cast_of_size("index_castui", 0),
    "arith.select": (
        """func.func @main(%p: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
          %0 = arith.select %p, %a, %b : tensor<2xi1>, tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
        [np.array([True, False]), floats([1, 2]), floats([3, 4])],
        [floats([1, 4])],
    ),
    "arith.cmpf": (
        """func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
          %0 = tensor.extract %a[] : tensor<f32>
          %1 = tensor.extract %b[] : tensor<f32>
          %2 = arith.cmpf ogt, %0, %1 : f32
          %3 = arith.select %2, %0, %1 : f32
          %4 = tensor.from_elements %3 : tensor<f32>
          return %4 : tensor<f32>
        }""",
        [np.float32(1), np.float32(3)],
        [np.float32(3)],
    ),
    "arith.cmpi": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<i1> {
          %c = arith.constant 1 : index
          %0 = tensor.dim %a, %c : tensor<3x4xf32>
          %1 = arith.cmpi ugt, %0, %c : index
          %2 = tensor.from_elements %1 : tensor<i1>
          return %2 : tensor<i1>
        }""",
        [MATRIX],
        [np.array(True)],
    ),
    "mhlo.bitcast": (
        """func.func @main(%a: tensor<2x3xi32>) -> (tensor<6xi32>, tensor<3x2xi32>, tensor<6xf32>) {
          %0 = mhlo.bitcast %a {source_layout = dense<[0, 1]> : tensor<2xindex>,
            result_layout = dense<0> : tensor<1xindex>} : (tensor<2x3xi32>) -> tensor<6xi32>
          %1 = mhlo.bitcast %a {source_layout = dense<[1, 0]> : tensor<2xindex>,
            result_layout = dense<[0, 1]> : tensor<2xindex>} : (tensor<2x3xi32>) -> tensor<3x2xi32>
          %2 = mhlo.bitcast %a : (tensor<2x3xi32>) -> tensor<6xf32>
          return %0, %1, %2 : tensor<6xi32>, tensor<3x2xi32>, tensor<6xf32>
        }""",
        [np.arange(6, dtype=np.int32).reshape(2, 3)],
        [
            np.array([0, 3, 1, 4, 2, 5], np.int32),
            np.array([[0, 3], [1, 4], [2, 5]], np.int32),
            np.arange(6, dtype=np.int32).view(np.float32),
        ],
    ),
    "mhlo.fusion": (
        """func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %0:2 = "mhlo.fusion"(%a, %b) <{fusion_kind = #mhlo<fusion_kind kLoop>}> ({
          ^bb0(%c: tensor<2xf32>, %d: tensor<2xf32>):
            %1 = mhlo.copy %d : tensor<2xf32>
            %2 = stablehlo.subtract %c, %1 : tensor<2xf32>
            "mhlo.return"(%2, %c) : (tensor<2xf32>, tensor<2xf32>) -> ()
          }) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
          return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
        }""",
        [floats([5, 6]), floats([1, 4])],
        [floats([4, 2]), floats([5, 6])],
    ),
    "mhlo.domain": (
        """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "mhlo.domain"(%a) {kind = #mhlo<kind sharding>, entry_metadata = "{}", exit_metadata = "{}"}
            : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
        [floats([1, 2])],
        [floats([1, 2])],
    ),
    "mhlo.topk": (
        """func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
          %0, %1 = mhlo.topk(%a, k=2, largest=true) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
          return %0, %1 : tensor<2xf32>, tensor<2xi32>
        }""",
        [floats([1, 4, 2, 3])],
        [floats([4, 3]), np.array([1, 3], np.int32)],
    ),
    "tensor.bitcast": (
        """func.func @main(%a: tensor<2xi32>) -> tensor<2xui32> {
          %0 = tensor.bitcast %a : tensor<2xi32> to tensor<2xui32>
          return %0 : tensor<2xui32>
        }""",
        [np.array([1, -1], np.int32)],
        [np.array([1, 2**32 - 1], np.uint32)],
    ),
    "tensor.cast": (
        """func.func @main(%a: tensor<?x4xf32>) -> tensor<3x4xf32> {
          %0 = tensor.cast %a : tensor<?x4xf32> to tensor<3x4xf32>
          return %0 : tensor<3x4xf32>
        }""",
        [MATRIX],
        [MATRIX],
    ),
    "tensor.collapse_shape": (
        """func.func @main(%a: tensor<3x4xf32>, %b: tensor<?x4xf32>) -> (tensor<12xf32>, tensor<?xf32>) {
          %0 = tensor.collapse_shape %a [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
          %1 = tensor.collapse_shape %b [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
          return %0, %1 : tensor<12xf32>, tensor<?xf32>
        }""",
        [MATRIX, MATRIX],
        [MATRIX.ravel(), MATRIX.ravel()],
    ),
    "tensor.concat": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<3x8xf32> {
          %0 = tensor.concat dim(1) %a, %a : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
          return %0 : tensor<3x8xf32>
        }""",
        [MATRIX],
        [np.concatenate([MATRIX, MATRIX], 1)],
    ),
    "tensor.dim": (
        """func.func @main(%a: tensor<?x4xf32>) -> tensor<?xf32> {
          %c0 = arith.constant 0 : index
          %c4 = arith.constant 4 : index
          %0 = tensor.dim %a, %c0 : tensor<?x4xf32>
          %1 = arith.muli %0, %c4 : index
          %2 = tensor.from_elements %1 : tensor<1xindex>
          %3 = stablehlo.dynamic_reshape %a, %2 : (tensor<?x4xf32>, tensor<1xindex>) -> tensor<?xf32>
          return %3 : tensor<?xf32>
        }""",
        [MATRIX],
        [MATRIX.ravel()],
    ),
    "tensor.empty": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
          %0 = tensor.empty() : tensor<3x4xf32>
          %1 = tensor.insert_slice %a into %0[0, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<3x4xf32>
          return %1 : tensor<3x4xf32>
        }""",
        [MATRIX],
        [MATRIX],
    ),
    "tensor.expand_shape": (
        """func.func @main(%a: tensor<12xf32>, %b: tensor<?xf32>, %c: tensor<?x1xi1>)
            -> (tensor<3x4xf32>, tensor<?x4xf32>) {
          %0 = tensor.expand_shape %a [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
          %i = arith.constant 0 : index
          %n = tensor.dim %c, %i : tensor<?x1xi1>
          %1 = tensor.expand_shape %b [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32>
          return %0, %1 : tensor<3x4xf32>, tensor<?x4xf32>
        }""",
        [MATRIX.ravel(), MATRIX.ravel(), np.zeros((3, 1), bool)],
        [MATRIX, MATRIX],
    ),
    "tensor.extract": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<2xf32> {
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %0 = tensor.extract %a[%c1, %c2] : tensor<3x4xf32>
          %1 = tensor.extract %a[%c2, %c1] : tensor<3x4xf32>
          %2 = tensor.from_elements %0, %1 : tensor<2xf32>
          return %2 : tensor<2xf32>
        }""",
        [MATRIX],
        [floats([6, 9])],
    ),
    "tensor.extract_slice": (
        """func.func @main(%a: tensor<3x4xf32>, %n: tensor<?xi1>) -> (tensor<2xf32>, tensor<2x2xf32>, tensor<0x4xf32>) {
          %0 = tensor.extract_slice %a[1, 0] [1, 2] [1, 3] : tensor<3x4xf32> to tensor<2xf32>
          %c0 = arith.constant 0 : index
          %i = tensor.dim %n, %c0 : tensor<?xi1>
          %1 = tensor.extract_slice %a[%i, 1] [2, 2] [1, 1] : tensor<3x4xf32> to tensor<2x2xf32>
          %2 = tensor.extract_slice %a[2, 0] [0, 4] [1, 1] : tensor<3x4xf32> to tensor<0x4xf32>
          return %0, %1, %2 : tensor<2xf32>, tensor<2x2xf32>, tensor<0x4xf32>
        }""",
        [MATRIX, np.zeros(1, bool)],
        [MATRIX[1, ::3], MATRIX[1:, 1:3], MATRIX[:0]],
    ),
    "tensor.from_elements": (
        """func.func @main(%a: tensor<3x4xf32>) -> (tensor<2x1xf32>, tensor<0xf32>) {
          %c1 = arith.constant 1 : index
          %0 = tensor.extract %a[%c1, %c1] : tensor<3x4xf32>
          %1 = tensor.from_elements %0, %0 : tensor<2x1xf32>
          %2 = tensor.from_elements : tensor<0xf32>
          return %1, %2 : tensor<2x1xf32>, tensor<0xf32>
        }""",
        [MATRIX],
        [floats([[5], [5]]), np.zeros(0, np.float32)],
    ),
    "tensor.insert": (
        """func.func @main(%a: tensor<3x4xf32>, %b: tensor<f32>) -> (tensor<3x4xf32>, tensor<f32>) {
          %c1 = arith.constant 1 : index
          %0 = arith.constant 50.0 : f32
          %1 = tensor.insert %0 into %a[%c1, %c1] : tensor<3x4xf32>
          %2 = tensor.insert %0 into %b[] : tensor<f32>
          return %1, %2 : tensor<3x4xf32>, tensor<f32>
        }""",
        [MATRIX, np.float32(1)],
        [np.where(MATRIX == 5, np.float32(50), MATRIX), np.float32(50)],
    ),
    "tensor.insert_slice": (
        """func.func @main(%a: tensor<3x4xf32>, %b: tensor<2xf32>) -> tensor<3x4xf32> {
          %0 = tensor.insert_slice %b into %a[1, 2] [1, 2] [1, 1] : tensor<2xf32> into tensor<3x4xf32>
          return %0 : tensor<3x4xf32>
        }""",
        [MATRIX, floats([70, 80])],
        [floats([[0, 1, 2, 3], [4, 5, 70, 80], [8, 9, 10, 11]])],
    ),
    "tensor.pad": (
        """func.func @main(%a: tensor<2xf32>) -> tensor<5xf32> {
          %z = arith.constant 9.0 : f32
          %0 = tensor.pad %a low[1] high[2] {
          ^bb0(%i: index):
            tensor.yield %z : f32
          } : tensor<2xf32> to tensor<5xf32>
          return %0 : tensor<5xf32>
        }""",
        [floats([1, 2])],
        [floats([9, 1, 2, 9, 9])],
    ),
    "tensor.pad, by a constant within": (
        """func.func @main(%a: tensor<2xi8>) -> tensor<4xi8> {
          %0 = tensor.pad %a low[1] high[1] {
          ^bb0(%i: index):
            %unused = arith.constant 4 : i8
            %z = arith.constant 9 : i8
            tensor.yield %z : i8
          } : tensor<2xi8> to tensor<4xi8>
          return %0 : tensor<4xi8>
        }""",
        [np.ones(2, np.int8)],
        [np.array([9, 1, 1, 9], np.int8)],
    ),
    "tensor.rank": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<1xi64> {
          %0 = tensor.rank %a : tensor<3x4xf32>
          %1 = arith.index_cast %0 : index to i64
          %2 = tensor.from_elements %1 : tensor<1xi64>
          return %2 : tensor<1xi64>
        }""",
        [MATRIX],
        [np.array([2])],
    ),
    "tensor.reshape": (
        """func.func @main(%a: tensor<?x4xf32>) -> (tensor<?xf32>, tensor<12xf32>) {
          %s = arith.constant dense<12> : tensor<1xi32>
          %0 = tensor.reshape %a(%s) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
          %1 = tensor.cast %a : tensor<?x4xf32> to tensor<3x4xf32>
          %2 = tensor.reshape %1(%s) : (tensor<3x4xf32>, tensor<1xi32>) -> tensor<12xf32>
          return %0, %2 : tensor<?xf32>, tensor<12xf32>
        }""",
        [MATRIX],
        [MATRIX.ravel(), MATRIX.ravel()],
    ),
    "tensor.splat": (
        """func.func @main(%a: tensor<f32>) -> tensor<2x2xf32> {
          %0 = tensor.extract %a[] : tensor<f32>
          %1 = tensor.splat %0 : tensor<2x2xf32>
          return %1 : tensor<2x2xf32>
        }""",
        [np.float32(3)],
        [np.full((2, 2), 3, np.float32)],
    ),
    "shape.shape_of": (
        """func.func @main(%a: tensor<?x4xf32>, %b: tensor<f32>) -> tensor<?x4xf32> {
          %0 = shape.shape_of %a : tensor<?x4xf32> -> tensor<2xindex>
          %1 = stablehlo.dynamic_broadcast_in_dim %b, %0, dims = [] : (tensor<f32>, tensor<2xindex>) -> tensor<?x4xf32>
          return %1 : tensor<?x4xf32>
        }""",
        [MATRIX, np.float32(2)],
        [np.full((3, 4), 2, np.float32)],
    ),
    "shape.broadcast": (
        """func.func @main(%a: tensor<?x1xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
          %0 = shape.shape_of %a : tensor<?x1xf32> -> tensor<2xindex>
          %1 = shape.shape_of %b : tensor<?xf32> -> tensor<1xindex>
          %2 = shape.cstr_broadcastable %0, %1 : tensor<2xindex>, tensor<1xindex>
          %3 = shape.assuming %2 -> (tensor<?x?xf32>) {
            %4 = shape.broadcast %0, %1 : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
            %5 = stablehlo.dynamic_broadcast_in_dim %a, %4, dims = [0, 1]
              : (tensor<?x1xf32>, tensor<2xindex>) -> tensor<?x?xf32>
            shape.assuming_yield %5 : tensor<?x?xf32>
          }
          return %3 : tensor<?x?xf32>
        }""",
        [floats([[1], [2]]), np.zeros(3, np.float32)],
        [floats([[1, 1, 1], [2, 2, 2]])],
    ),
    "shape.const_shape": (
        """func.func @main(%b: tensor<f32>) -> tensor<?x?xf32> {
          %0 = shape.const_shape [2] : tensor<1xindex>
          %1 = shape.const_shape [3] : tensor<1xindex>
          %2 = shape.concat %0, %1 : tensor<1xindex>, tensor<1xindex> -> tensor<2xindex>
          %3 = stablehlo.dynamic_broadcast_in_dim %b, %2, dims = [] : (tensor<f32>, tensor<2xindex>) -> tensor<?x?xf32>
          return %3 : tensor<?x?xf32>
        }""",
        [np.float32(2)],
        [np.full((2, 3), 2, np.float32)],
    ),
    "shape.num_elements": (
        """func.func @main(%a: tensor<?x4xf32>) -> tensor<3xi64> {
          %0 = shape.shape_of %a : tensor<?x4xf32> -> tensor<2xindex>
          %1 = shape.num_elements %0 : tensor<2xindex> -> index
          %c1 = arith.constant 1 : index
          %2 = shape.get_extent %0, %c1 : tensor<2xindex>, index -> index
          %3 = shape.rank %0 : tensor<2xindex> -> index
          %4 = tensor.from_elements %1, %2, %3 : tensor<3xindex>
          %5 = arith.index_cast %4 : tensor<3xindex> to tensor<3xi64>
          return %5 : tensor<3xi64>
        }""",
        [MATRIX],
        [np.array([12, 4, 2])],
    ),
    "shape.dim": (
        """func.func @main(%a: tensor<?x4xf32>) -> tensor<1xi64> {
          %c0 = arith.constant 0 : index
          %0 = shape.dim %a, %c0 : tensor<?x4xf32>, index -> index
          %1 = tensor.from_elements %0 : tensor<1xindex>
          %2 = shape.to_extent_tensor %1 : tensor<1xindex> -> tensor<1xindex>
          %3 = arith.index_cast %2 : tensor<1xindex> to tensor<1xi64>
          return %3 : tensor<1xi64>
        }""",
        [MATRIX],
        [np.array([3])],
    ),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    text, inputs, expected = PROGRAMS[name]
    found = outcome(text, *inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_a_value_that_waits_for_a_token_goes_through_a_barrier() -> None:
    """The interpreter has no tokens."""
    artifact = vt.serialize("""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %t = mhlo.create_token : !mhlo.token
      %0 = mhlo.add_dependency %a, %t : (tensor<2xf32>, !mhlo.token) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert artifact.inventory().ops["vhlo.optimization_barrier_v1"] == 1
    assert "return %1#0" in str(vt.deserialize(artifact))


def test_bounds_and_tokens_of_mhlo_become_those_of_stablehlo() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<?xf32, #mhlo.type_extensions<bounds = [4]>>, %t: !mhlo.token)
        -> (tensor<?xf32, #mhlo.type_extensions<bounds = [4]>>, !mhlo.token) {
      return %a, %t : tensor<?xf32, #mhlo.type_extensions<bounds = [4]>>, !mhlo.token
    }""")
    assert "(tensor<?xf32, #stablehlo.bounds<4>>, !stablehlo.token)" in str(vt.deserialize(artifact))


def test_every_rule_is_tested() -> None:
    tested = "\n".join(
        ["mhlo.add_dependency", *BINARY, *UNARY, *CONVERSIONS, *(text for text, _, _ in PROGRAMS.values())]
    )
    assert [name for name in {**ARITHMETIC, **MHLO, **TENSORS, **SHAPES} if name not in tested] == []
