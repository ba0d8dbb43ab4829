"""What no artifact can hold becomes plain StableHLO of the same meaning: numpy says what that is."""

from __future__ import annotations

import gc
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.convert.portable import make_portable
from vhlo_tools.convert.portable.arithmetic import ARITHMETIC
from vhlo_tools.convert.portable.leftovers import LEFTOVERS
from vhlo_tools.convert.portable.tensors import SHAPES, TENSORS

# Values that show the difference between signed and unsigned, floor and truncation, ordered and unordered.
INTEGERS = np.array([[7, -7, 100, -128, 5], [3, 3, -100, 2, 5]], np.int8)
FLOATS = np.array([[1.5, -2.5, np.nan, 0.0, 3.0], [1.5, 2.0, 1.0, np.nan, -4.0]], np.float32)
POSITIVE = np.array([0.5, 1.0, 2.5, 4.0], np.float32)
SMALL = np.array([-0.75, -0.5, 0.25, 0.5], np.float32)
UNSIGNED = INTEGERS.view(np.uint8)


def floats(values: Any) -> Any:
    return np.array(values, np.float32)


def remainder(one: Any, other: Any) -> Any:
    return np.fmod(one.astype(np.int32), other).astype(one.dtype)


def quotient(one: Any, other: Any) -> Any:
    return np.trunc(one / other.astype(np.float64)).astype(one.dtype)


#: For each op on two operands: its spelling, its operands, and what it gives.
BINARY: dict[str, tuple[Any, Any]] = {
    "arith.addf": (FLOATS, lambda a, b: a + b),
    "arith.addi": (INTEGERS, lambda a, b: a + b),
    "arith.andi": (INTEGERS, lambda a, b: a & b),
    "arith.divf": (FLOATS, lambda a, b: a / b),
    "arith.divsi": (INTEGERS, quotient),
    "arith.divui": (INTEGERS, lambda a, b: (a.view(np.uint8) // b.view(np.uint8)).view(np.int8)),
    "arith.maximumf": (FLOATS, np.maximum),
    "arith.maxsi": (INTEGERS, np.maximum),
    "arith.maxui": (INTEGERS, lambda a, b: np.maximum(a.view(np.uint8), b.view(np.uint8)).view(np.int8)),
    "arith.minimumf": (FLOATS, np.minimum),
    "arith.minsi": (INTEGERS, np.minimum),
    "arith.minui": (INTEGERS, lambda a, b: np.minimum(a.view(np.uint8), b.view(np.uint8)).view(np.int8)),
    "arith.mulf": (FLOATS, lambda a, b: a * b),
    "arith.muli": (INTEGERS, lambda a, b: a * b),
    "arith.ori": (INTEGERS, lambda a, b: a | b),
    "arith.remf": (FLOATS, np.fmod),
    "arith.remsi": (INTEGERS, remainder),
    "arith.remui": (INTEGERS, lambda a, b: (a.view(np.uint8) % b.view(np.uint8)).view(np.int8)),
    "arith.shli": (np.array([[1, -1, 5], [1, 3, 0]], np.int8), lambda a, b: a << b),
    "arith.shrsi": (np.array([[64, -64, 5], [1, 3, 0]], np.int8), lambda a, b: a >> b),
    "arith.shrui": (
        np.array([[64, -64, 5], [1, 3, 0]], np.int8),
        lambda a, b: (a.view(np.uint8) >> b.view(np.uint8)).view(np.int8),
    ),
    "arith.subf": (FLOATS, lambda a, b: a - b),
    "arith.subi": (INTEGERS, lambda a, b: a - b),
    "arith.xori": (INTEGERS, lambda a, b: a ^ b),
    "math.atan2": (np.stack([SMALL, POSITIVE]), np.arctan2),
    "math.powf": (np.stack([POSITIVE, SMALL]), np.power),
}

#: For each op on one operand: the operand, and what it gives.
UNARY: dict[str, tuple[Any, Any]] = {
    "arith.negf": (FLOATS[0], np.negative),
    "math.absf": (FLOATS[0], np.abs),
    "math.absi": (INTEGERS[0][:3], np.abs),
    "math.acos": (SMALL, np.arccos),
    "math.acosh": (1 + POSITIVE, np.arccosh),
    "math.asin": (SMALL, np.arcsin),
    "math.asinh": (SMALL, np.arcsinh),
    "math.atan": (SMALL, np.arctan),
    "math.atanh": (SMALL, np.arctanh),
    "math.cbrt": (POSITIVE, np.cbrt),
    "math.ceil": (FLOATS[0], np.ceil),
    "math.cos": (SMALL, np.cos),
    "math.cosh": (SMALL, np.cosh),
    "math.ctlz": (np.array([1, 0, -1, 64], np.int8), lambda a: np.array([7, 8, 0, 1], np.int8)),
    "math.ctpop": (np.array([1, 0, -1, 65], np.int8), lambda a: np.array([1, 0, 8, 2], np.int8)),
    "math.erf": (SMALL, lambda a: np.array([-0.7111556, -0.5204999, 0.2763264, 0.5204999], np.float32)),
    "math.erfc": (SMALL, lambda a: 1 - np.array([-0.7111556, -0.5204999, 0.2763264, 0.5204999], np.float32)),
    "math.exp": (SMALL, np.exp),
    "math.expm1": (SMALL, np.expm1),
    "math.floor": (FLOATS[0], np.floor),
    "math.log": (POSITIVE, np.log),
    "math.log1p": (POSITIVE, np.log1p),
    "math.round": (np.array([0.5, -0.5, 1.5, 2.5], np.float32), lambda a: np.array([1, -1, 2, 3], np.float32)),
    "math.roundeven": (np.array([0.5, -0.5, 1.5, 2.5], np.float32), np.round),
    "math.rsqrt": (POSITIVE, lambda a: 1 / np.sqrt(a)),
    "math.sin": (SMALL, np.sin),
    "math.sinh": (SMALL, np.sinh),
    "math.sqrt": (POSITIVE, np.sqrt),
    "math.tan": (SMALL, np.tan),
    "math.tanh": (SMALL, np.tanh),
    "mhlo.acos": (SMALL, np.arccos),
    "mhlo.acosh": (1 + POSITIVE, np.arccosh),
    "mhlo.asin": (SMALL, np.arcsin),
    "mhlo.asinh": (SMALL, np.arcsinh),
    "mhlo.atanh": (SMALL, np.arctanh),
    "mhlo.copy": (SMALL, lambda a: a),
    "mhlo.cosh": (SMALL, np.cosh),
    "mhlo.erf": (SMALL, lambda a: np.array([-0.7111556, -0.5204999, 0.2763264, 0.5204999], np.float32)),
    "mhlo.sinh": (SMALL, np.sinh),
}

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


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str) -> None:
    (one, other), expected = BINARY[name]
    kind = mlir_type(one)
    text = f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{ %0 = {name} %a, %b : {kind} return %0 : {kind} }}"
    (found,) = outcome(text, one, other)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected(one, other), rtol=1e-6)


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


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("oeq", lambda a, b: a == b),
        ("ogt", lambda a, b: a > b),
        ("oge", lambda a, b: a >= b),
        ("olt", lambda a, b: a < b),
        ("ole", lambda a, b: a <= b),
        ("ugt", lambda a, b: ~(a <= b)),
        ("uge", lambda a, b: ~(a < b)),
        ("ult", lambda a, b: ~(a >= b)),
        ("ule", lambda a, b: ~(a > b)),
        ("une", lambda a, b: a != b),
    ],
)
def test_comparisons_of_floats(predicate: str, expected: Any) -> None:
    kind = "tensor<5xf32>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> tensor<5xi1> {{
      %0 = arith.cmpf {predicate}, %a, %b : {kind}
      return %0 : tensor<5xi1>
    }}"""
    np.testing.assert_array_equal(outcome(text, *FLOATS)[0], expected(*FLOATS))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("slt", np.less),
        ("sle", np.less_equal),
        ("sgt", np.greater),
        ("sge", np.greater_equal),
        ("ult", lambda a, b: a.view(np.uint8) < b.view(np.uint8)),
        ("ule", lambda a, b: a.view(np.uint8) <= b.view(np.uint8)),
        ("ugt", lambda a, b: a.view(np.uint8) > b.view(np.uint8)),
        ("uge", lambda a, b: a.view(np.uint8) >= b.view(np.uint8)),
    ],
)
def test_comparisons_of_integers(predicate: str, expected: Any) -> None:
    kind = "tensor<5xi8>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> tensor<5xi1> {{
      %0 = arith.cmpi {predicate}, %a, %b : {kind}
      return %0 : tensor<5xi1>
    }}"""
    np.testing.assert_array_equal(outcome(text, *INTEGERS)[0], expected(*INTEGERS))


#: For each op on shapes and parts: a function, its inputs and its results.
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
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
    "arith.index_cast": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<1xi32> {
          %c = arith.constant 1 : index
          %0 = tensor.dim %a, %c : tensor<3x4xf32>
          %1 = arith.index_cast %0 : index to i32
          %2 = tensor.from_elements %1 : tensor<1xi32>
          return %2 : tensor<1xi32>
        }""",
        [MATRIX],
        [np.array([4], np.int32)],
    ),
    "arith.index_castui": (
        """func.func @main(%a: tensor<3x4xf32>) -> tensor<1xi32> {
          %c = arith.constant 0 : index
          %0 = tensor.dim %a, %c : tensor<3x4xf32>
          %1 = arith.index_castui %0 : index to i32
          %2 = tensor.from_elements %1 : tensor<1xi32>
          return %2 : tensor<1xi32>
        }""",
        [MATRIX],
        [np.array([3], np.int32)],
    ),
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


CHLO = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "lgamma", "sinh", "square", "tan", "next_after", "polygamma", "zeta", "broadcast_add"),
    *("broadcast_atan2", "broadcast_divide", "broadcast_maximum", "broadcast_minimum", "broadcast_multiply"),
    *("broadcast_next_after", "broadcast_polygamma", "broadcast_power", "broadcast_remainder", "broadcast_subtract"),
    "broadcast_zeta",
)


@pytest.mark.parametrize("name", CHLO)
def test_chlo_is_legalized(name: str, raw: RawLibrary) -> None:
    kind = "tensor<4xf32>"
    several = name in {"next_after", "polygamma", "zeta"}
    two = several or name.startswith("broadcast")
    types = f"({kind}, {kind})" if name.startswith("broadcast") else f"{kind}, {kind}" if several else kind
    text = f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = chlo.{name} %a{", %a" if two else ""} : {types} -> {kind}
      return %0 : {kind}
    }}"""
    artifact = vt.serialize(text)
    (note,) = artifact.findings
    assert note.message == f"chlo.{name} became plain StableHLO"
    assert raw.deserialize(bytes(artifact)) is not None
    assert "chlo" not in artifact.dialects


def test_chlo_of_dynamic_shapes_computes_with_shapes() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = chlo.broadcast_add %a, %b : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32>
    }""")
    assert [each.message for each in artifact.findings] == ["chlo.broadcast_add became plain StableHLO"]
    (found,) = vt.run(artifact, [MATRIX[0], MATRIX])
    np.testing.assert_array_equal(found, MATRIX[0] + MATRIX)


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
    assert [name for name in {**ARITHMETIC, **LEFTOVERS, **TENSORS, **SHAPES} if name not in tested] == []


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("arith.maxnumf %a, %c", "tensor<2xf32>"),
        ("math.fma %a, %a, %a", "tensor<2xf32>"),
        ("arith.addi %b, %b", "tensor<2xi1>"),
        ("arith.maxui %b, %d", "tensor<2xi1>"),
        ("arith.cmpf ueq, %a, %a", "tensor<2xf32>"),
        ("mhlo.xla.rng_get_and_update_state {delta = 1 : i64}", "tensor<2xui64>"),
        # An op that StableHLO does not have on such elements takes none of its neighbours along.
        ("arith.shli %b, %d", "tensor<2xi1>"),
        ("math.ctpop %b", "tensor<2xi1>"),
    ],
)
def test_what_has_no_plain_form_is_named_with_its_place(op: str, kind: str) -> None:
    ending = f" : {kind}" if not op.startswith("mhlo") else ""
    arguments = "%a: tensor<2xf32>, %b: tensor<2xi1>, %c: tensor<2xf32>, %d: tensor<2xi1>"
    text = f"func.func @main({arguments}) {{\n  %0 = {op}{ending}\n  return\n}}"
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text, name="p.mlir")
    (finding,) = refused.value.findings
    assert finding.op == op.partition(" ")[0]
    assert str(finding.location) == "p.mlir:2:8"
    assert finding.remedy


@pytest.mark.parametrize(
    ("op", "kinds"),
    [
        ('"arith.truncf"(%a) {roundingmode = 3 : i32}', "(tensor<2xf32>) -> tensor<2xf16>"),
        ('"arith.addf"(%a, %a) {roundingmode = 1 : i32}', "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"),
        # The lowest bit counts, and to StableHLO all of them.
        ('"arith.index_castui"(%i)', "(tensor<2xindex>) -> tensor<2xi1>"),
        ('"arith.fptoui"(%a)', "(tensor<2xf32>) -> tensor<2xi1>"),
        ('"arith.constant"() {value = sparse<[[1]], [2]> : tensor<4xindex>}', "() -> tensor<4xindex>"),
        ('"tensor.empty"()', "() -> tensor<2x!quant.uniform<i8:f32, 0.1>>"),
    ],
)
def test_what_means_something_else_is_refused(op: str, kinds: str) -> None:
    text = f"""func.func @main(%a: tensor<2xf32>) {{
      %i = arith.constant dense<2> : tensor<2xindex>
      %0 = {op} : {kinds}
      return
    }}"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert op.partition('"(')[0].strip('"') in {finding.op for finding in refused.value.findings}


def test_constants_of_complex_numbers(raw: RawLibrary) -> None:
    """The bindings have no class for their values."""
    values = np.arange(400, dtype=np.float32).view(np.complex64) / 3
    listed = ", ".join(f"({each.real!r}, {each.imag!r})" for each in values.tolist())
    kind = "tensor<200xcomplex<f32>>"
    text = f"""func.func @main() -> ({kind}, tensor<2xcomplex<f64>>, tensor<3xcomplex<f32>>) {{
      %0 = arith.constant {{mhlo.sharding = "{{replicated}}"}} dense<[{listed}]> : {kind}
      %1 = "arith.constant"() {{value = dense<(1.0, -2.0)> : tensor<2xcomplex<f64>>}} : () -> tensor<2xcomplex<f64>>
      %2 = tensor.empty() : tensor<3xcomplex<f32>>
      return %0, %1, %2 : {kind}, tensor<2xcomplex<f64>>, tensor<3xcomplex<f32>>
    }}"""
    artifact = vt.serialize(text)
    found = vt.run(artifact, [])
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], np.full(2, 1 - 2j))
    assert found[2].shape == (3,)
    assert 'mhlo.sharding = "{replicated}"' in str(raw.deserialize(bytes(artifact)))


def test_constants_of_indices_are_as_large_as_they_say() -> None:
    artifact = vt.serialize("""func.func @main() -> tensor<200000000000xi64> {
      %0 = arith.constant dense<-3> : tensor<200000000000xindex>
      %1 = arith.index_cast %0 : tensor<200000000000xindex> to tensor<200000000000xi64>
      return %1 : tensor<200000000000xi64>
    }""")
    assert "dense<-3> : tensor<200000000000xi64>" in str(vt.deserialize(artifact))


def test_padding_may_be_a_constant_within() -> None:
    (found,) = outcome(
        """func.func @main(%a: tensor<2xi8>) -> tensor<4xi8> {
          %0 = tensor.pad %a low[1] high[1] {
          ^bb0(%i: index):
            %unused = arith.constant 4 : i8
            %z = arith.constant 9 : i8
            tensor.yield %z : i8
          } : tensor<2xi8> to tensor<4xi8>
          return %0 : tensor<4xi8>
        }""",
        np.ones(2, np.int8),
    )
    np.testing.assert_array_equal(found, [9, 1, 1, 9])


def test_padding_that_is_computed_is_refused() -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize("""func.func @main(%a: tensor<2xi64>) -> tensor<4xi64> {
          %0 = tensor.pad %a low[1] high[1] {
          ^bb0(%i: index):
            %z = arith.index_cast %i : index to i64
            tensor.yield %z : i64
          } : tensor<2xi64> to tensor<4xi64>
          return %0 : tensor<4xi64>
        }""")
    assert "tensor.pad" in {finding.op for finding in refused.value.findings}


def test_attributes_that_anybody_may_put_on_ops_stay_or_are_said_to_be_lost() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = arith.addf %a, %a {mhlo.sharding = "{replicated}"} : tensor<2xf32>
      %1 = mhlo.copy %0 {mhlo.sharding = "{replicated}"} : tensor<2xf32>
      %2 = chlo.tan %1 {mhlo.sharding = "{replicated}"} : tensor<2xf32> -> tensor<2xf32>
      return %2 : tensor<2xf32>
    }""")
    assert {each.message for each in artifact.findings} == {
        "arith.addf became stablehlo.add",
        "mhlo.copy became the value that it was given, without its mhlo.sharding",
        "chlo.tan became plain StableHLO, without its mhlo.sharding",
    }
    assert 'add %arg0, %arg0 {mhlo.sharding = "{replicated}"}' in str(vt.deserialize(artifact))


def test_notes_say_what_is_left() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<?xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %unused = arith.addf %b, %b : tensor<2xf32>
      %s = shape.shape_of %a : tensor<?xf32> -> tensor<1xindex>
      %w = shape.cstr_eq %s, %s : tensor<1xindex>, tensor<1xindex>
      %0 = math.erf %b : tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert {each.message for each in artifact.findings} == {
        "arith.addf is gone, for nothing that is left needs it",
        "shape.shape_of is gone, for nothing that is left needs it",
        "shape.cstr_eq is gone, and the constraint is not checked",
        "math.erf became plain StableHLO",
    }


def test_a_provider_without_chlo_is_spared_its_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the dialect is not known, the pass for it ends the process."""
    monkeypatch.setitem(vars(get_provider()), "lacking", ("chlo",))
    text = "func.func @main(%a: tensor<2xf32>) { %0 = math.erf %a : tensor<2xf32> return }"
    with pytest.raises(vt.UnsupportedFeatureError, match=r"math\.erf is of the dialect math"):
        vt.serialize(text)


def test_a_module_that_is_not_valid_is_refused(raw: RawLibrary) -> None:
    """Nobody verified it, and what rules look for may not be there."""
    module = raw.parse("func.func @main(%a: tensor<2xf32>) { %0 = arith.constant 1 : i32 return }")
    ir = raw.ir
    with module.context, ir.Location.unknown():
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            kind = ir.Type.parse("tensor<3xf32>")
            ir.Operation.create("mhlo.copy", results=[kind], operands=[block.arguments[0]])
            ir.Operation.create("shape.assuming", results=[kind], operands=[block.arguments[0]], regions=1)
    with pytest.raises(vt.InvalidProgramError):
        vt.serialize(module)


def test_what_stays_keeps_what_it_needs() -> None:
    """An op that cannot be rewritten is named alone, and not the constants that it uses."""
    text = """func.func @main(%a: tensor<?xf32>) {
      %c = arith.constant 0 : index
      %0 = tensor.dim %a, %c : tensor<?xf32>
      "func.call"(%0) {callee = @other} : (index) -> ()
      return
    }
    func.func private @other(index)"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert "tensor.dim" in {finding.op for finding in refused.value.findings}


def test_nothing_is_rewritten_unasked_or_needlessly(raw: RawLibrary) -> None:
    text = "func.func @main() -> tensor<f32> { %0 = arith.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    with pytest.raises(vt.UnsupportedFeatureError, match="may not be rewritten"):
        vt.serialize(text, legalize=False)
    kept = vt.serialize(text, allow_other_dialects=True)
    assert (kept.findings, "arith" in kept.dialects) == ((), True)
    module = raw.parse(text)
    before = str(module)
    assert "arith" not in vt.serialize(module).dialects
    assert str(module) == before


RESOURCES = """func.func @main() -> (tensor<4xf32>, tensor<3xi1>, tensor<2xi4>, tensor<2xbf16>, tensor<0xf32>, tensor<1xcomplex<f32>>) {
  %0 = stablehlo.constant dense_resource<floats> : tensor<4xf32>
  %1 = arith.constant dense_resource<booleans> : tensor<3xi1>
  %2 = stablehlo.constant dense_resource<nibbles> : tensor<2xi4>
  %3 = stablehlo.constant dense_resource<brains> : tensor<2xbf16>
  %4 = stablehlo.constant dense_resource<none> : tensor<0xf32>
  %5 = stablehlo.constant dense_resource<complex> : tensor<1xcomplex<f32>>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<3xi1>, tensor<2xi4>, tensor<2xbf16>, tensor<0xf32>, tensor<1xcomplex<f32>>
}
{-# dialect_resources: { builtin: {
  floats: "0x40000000000000000000803f0000004000004040",
  booleans: "0x01000000010001",
  nibbles: "0x010000000107",
  brains: "0x02000000803f0040",
  none: "0x04000000",
  complex: "0x080000000000803f00000040"
} } #-}"""  # noqa: E501


def as_bytecode(raw: RawLibrary, text: str) -> bytes:
    sink = BytesIO()
    raw.parse(text).operation.write_bytecode(sink)
    return sink.getvalue()


@pytest.mark.parametrize("form", ["text", "bytecode", "module"])
def test_constants_in_resources_are_inlined(form: str, raw: RawLibrary) -> None:
    source = (
        RESOURCES if form == "text" else as_bytecode(raw, RESOURCES) if form == "bytecode" else raw.parse(RESOURCES)
    )
    artifact = vt.serialize(source)
    assert {each.feature for each in artifact.findings} == {"rewritten"}
    text = str(vt.deserialize(artifact))
    for shown in (
        "dense<[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<4xf32>",
        "dense<[true, false, true]> : tensor<3xi1>",
        "dense<[1, 7]> : tensor<2xi4>",
        "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xbf16>",
        "dense<> : tensor<0xf32>",
        "dense<(1.000000e+00,2.000000e+00)> : tensor<1xcomplex<f32>>",
    ):
        assert shown in text


def test_aligned_bytecode_is_read_wherever_it_stands(raw: RawLibrary) -> None:
    """The library refuses it unless the bytes happen to be aligned in memory."""
    data = as_bytecode(raw, RESOURCES)
    for _ in range(20):
        assert len(vt.serialize(bytes(bytearray(data)))) > 0


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ('{-# dialect_resources: { builtin: { w: "0x040000000000803f" } } #-}', "holds 4 bytes, but .* takes 16"),
        ("", "value of stablehlo.constant is dense_resource<w.*> : tensor<4xf32>, which has no form"),
    ],
)
def test_resources_that_cannot_be_inlined(resource: str, message: str) -> None:
    text = f"""func.func @main() -> tensor<4xf32> {{
      %0 = stablehlo.constant dense_resource<w> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }}
    {resource}"""
    with pytest.raises(vt.VhloToolsError, match=message) as refused:
        vt.serialize(text)
    assert isinstance(refused.value, vt.InvalidProgramError | vt.UnsupportedFeatureError)


def test_a_vector_in_a_resource_is_named_by_its_op() -> None:
    text = """func.func @main() {
      %0 = arith.constant dense_resource<w> : vector<4xi8>
      return
    }
    {-# dialect_resources: { builtin: { w: "0x0100000007000001" } } #-}"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert [finding.op for finding in refused.value.findings] == ["arith.constant"]


ATTRIBUTES = """module {
  func.func @main(%a: tensor<4xf32> {my.u, my.n = {x = unit, y = [array<i32: 1, 2>, 3 : i32]}})
      -> (tensor<4xf32> {r.u = array<i32>, r.v = array<i16: 3, -4>}) attributes {f.u, f.a = array<f64: 1.5, 0.1>} {
    %0 = stablehlo.custom_call @x(%a) {backend_config = {u, k = array<i8: 1, -2>}, api_version = 4 : i32,
      my.other = array<f32: 1.5, 0x7FC00000>} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>,
      use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}>
      : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}"""


@pytest.mark.parametrize("target", ["0.9.0", "current"])
def test_attributes_are_spelled_and_given_back(target: str, raw: RawLibrary) -> None:
    text = (
        ATTRIBUTES
        if target == "current"
        else ATTRIBUTES.replace("backend_config = {u, k = array<i8: 1, -2>}, api_version = 4 : i32,", "")
    )
    before = str(raw.parse(text))
    artifact = vt.serialize(text, target)
    assert {(each.level, each.kind) for each in artifact.findings} == {("note", "attribute")}
    assert str(vt.deserialize(artifact)) == before
    # Whoever knows nothing of it sees `true` and dense tensors.
    plain = str(raw.deserialize(bytes(artifact)))
    assert "my.u = true" in plain
    assert "r.v = dense<[3, -4]> : tensor<2xi16>" in plain
    # The way round again, and through another version on the bytes.
    again = vt.serialize(vt.deserialize(artifact), target)
    assert bytes(again) == bytes(artifact)
    assert str(vt.deserialize(vt.retarget(artifact, "1.0.0" if target == "0.9.0" else "1.17.0"))) == before


def test_what_was_changed_since_is_not_given_back(raw: RawLibrary) -> None:
    artifact = vt.serialize("func.func @main(%a: tensor<f32> {my.u, my.n = array<i32: 1>}) { return }")
    module = raw.deserialize(bytes(artifact))
    with module.context:
        attributes = {"my.u": "false", "my.n": "dense<[1]> : tensor<1xi64>", "vhlo_tools.spelled": None}
        ir = raw.ir
        (held,) = module.body.operations[0].attributes["arg_attrs"]
        changed = {
            name: ir.Attribute.parse(text) if text else held["vhlo_tools.spelled"] for name, text in attributes.items()
        }
        module.body.operations[0].attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(changed)])
    back = str(vt.deserialize(vt.serialize(module)))
    assert "my.n = dense<1> : tensor<1xi64>, my.u = false" in back
    assert "vhlo_tools" not in back


def written_by_others(raw: RawLibrary, text: str) -> bytes:
    """Return an artifact that says of its attributes whatever it likes."""
    artifact = raw.serialize(raw.parse(text), "1.9.0")
    assert artifact is not None
    return artifact


def test_records_of_others_do_not_touch_what_ops_know(raw: RawLibrary) -> None:
    text = """func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %0 = "stablehlo.custom_call"(%a) <{has_side_effect = true, call_target_name = "x"}>
        {vhlo_tools.spelled = {has_side_effect = "unit"}} : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}>
        {vhlo_tools.spelled = {value = "array<i32>"}} : () -> tensor<2xi32>
      return %0, %1 : tensor<2xf32>, tensor<2xi32>
    }"""
    back = str(vt.deserialize(written_by_others(raw, text)))
    assert "has_side_effect = true" in back
    assert "stablehlo.constant dense<[1, 2]> : tensor<2xi32>" in back
    assert "vhlo_tools" not in back


def test_records_of_others_do_not_fill_the_memory(raw: RawLibrary) -> None:
    huge = "my.x = dense<0> : tensor<100000000000xi32>"
    text = f'func.func @main(%a: tensor<f32> {{{huge}, vhlo_tools.spelled = {{my.x = "array<i32>"}}}}) {{ return }}'
    assert f"{{{huge}}}" in str(vt.deserialize(written_by_others(raw, text)))


def test_attributes_may_nest_deep(raw: RawLibrary) -> None:
    depth = 2000
    nested = "[" * depth + "true" + "]" * depth
    record = '{"0" = ' * depth + '"unit"' + "}" * depth
    text = (
        f"func.func @main(%a: tensor<f32> {{my.x = {nested}, vhlo_tools.spelled = {{my.x = {record}}}}}) {{ return }}"
    )
    assert f"{{my.x = {nested}}}" in str(vt.deserialize(written_by_others(raw, text)))
    with pytest.raises(vt.UnsupportedFeatureError, match="holds a unit attribute"):
        vt.serialize(f"func.func @main(%a: tensor<f32> {{my.x = {nested.replace('true', 'unit')}}}) {{ return }}")


def test_what_was_refused_is_let_go_of_before_it_is_rewritten(monkeypatch: pytest.MonkeyPatch, raw: RawLibrary) -> None:
    """Of large constants there would be a copy more."""
    seen = []

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(raw.ir.Context._get_live_count())
        return make_portable(*arguments, **options)

    monkeypatch.setattr("vhlo_tools.convert.serialization.make_portable", watched)
    text = "func.func @main() -> tensor<f32> { %0 = arith.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    gc.collect()
    gc.disable()
    try:
        before = raw.ir.Context._get_live_count()
        vt.serialize(text)
    finally:
        gc.enable()
    assert seen == [before]


def test_units_that_xla_takes_no_notice_of_do_not_become_donors(raw: RawLibrary) -> None:
    text = "func.func @main(%a: tensor<4xf32> {jax.buffer_donor}) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    artifact = vt.serialize(text)
    assert not artifact.aliases()
    assert 'jax.buffer_donor = "unit"' in str(raw.deserialize(bytes(artifact)))
    assert "{jax.buffer_donor}" in str(vt.deserialize(artifact))
