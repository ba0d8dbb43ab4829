"""Inputs that suit types and ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.api.running import load_executable
from vhlo_tools.verification import draw_inputs
from vhlo_tools.verification.drawing import Domain, _edges

F = "tensor<64xf32>"


def drawn(arguments: str, body: str, *, drawing: vt.Drawing | None = None) -> tuple[Any, ...]:
    return vt.draw_inputs(f"func.func @main({arguments}) {{ {body} return }}", 1, drawing=drawing)


@pytest.mark.parametrize(
    "element",
    ["i1", "i2", "i4", "ui4", "i8", "ui8", "i64", "ui64", "bf16", "f16", "f64", "f8E4M3FN", "f8E5M2FNUZ", "f8E8M0FNU"],
)
@pytest.mark.parametrize("all_values", [False, True])
def test_every_type(element: str, all_values: bool) -> None:
    drawing = vt.Drawing(edges=all_values, non_finite=all_values)
    (array,) = drawn("%a: tensor<50xELEMENT>".replace("ELEMENT", element), "", drawing=drawing)
    assert array.shape == (50,)
    assert len({array.tobytes()[at : at + array.itemsize] for at in range(0, array.nbytes, array.itemsize)}) > 1
    again = drawn("%a: tensor<50xELEMENT>".replace("ELEMENT", element), "", drawing=drawing)
    assert again[0].tobytes() == array.tobytes()


def test_edges_of_integers_are_drawn_on_request() -> None:
    edges = _edges(np.dtype("int32"), Domain(), vt.Drawing(edges=True))
    about = np.iinfo(np.int32)
    assert edges.tolist() == [about.min, about.min + 1, -1, 0, 1, about.max - 1, about.max]
    (array,) = drawn("%a: tensor<500xi32>", "", drawing=vt.Drawing(edges=True))
    assert {about.min, about.max} <= set(array.tolist())


def test_edges_and_what_is_not_finite_are_drawn_on_request() -> None:
    (plain,) = drawn(f"%a: {F}", "")
    assert np.isfinite(plain).all()
    (edges,) = drawn("%a: tensor<500xf32>", "", drawing=vt.Drawing(edges=True))
    assert {0.0, 1.0, -1.0, float(np.finfo(np.float32).max)} <= set(edges.tolist())
    assert np.any((edges != 0) & (np.abs(edges) < np.finfo(np.float32).tiny))
    # Zeros of both signs.
    assert set(np.signbit(edges[edges == 0]).tolist()) == {True, False}
    assert np.isfinite(edges).all()
    (wild,) = drawn("%a: tensor<500xf32>", "", drawing=vt.Drawing(non_finite=True))
    assert np.isnan(wild).any()
    assert np.isposinf(wild).any()
    assert np.isneginf(wild).any()


@pytest.mark.parametrize(
    ("op", "suits"),
    [
        (f"stablehlo.log %a : {F}", lambda a: (a > 0).all()),
        (f"stablehlo.sqrt %a : {F}", lambda a: (a > 0).all()),
        (f"chlo.acosh %a : {F} -> {F}", lambda a: (a >= 1).all()),
        (f"chlo.erf_inv %a : {F} -> {F}", lambda a: (np.abs(a) <= 1).all() and (a < 0).any()),
        (f"stablehlo.divide %a, %a : {F}", lambda a: (np.abs(a) > 0.1).all()),
    ],
)
@pytest.mark.parametrize("edges", [False, True])
def test_floats_that_suit_ops(op: str, suits: Any, edges: bool) -> None:
    (array,) = drawn(f"%a: {F}", f"%0 = {op}", drawing=vt.Drawing(edges=edges))
    assert suits(array) or (edges and "divide" in op and (array != 0).all())


def test_matrices_that_suit_cholesky() -> None:
    (array,) = drawn("%a: tensor<3x4x4xf64>", "%0 = stablehlo.cholesky %a, lower = true : tensor<3x4x4xf64>")
    assert (np.linalg.eigvalsh(array) > 0).all()


def test_indices_are_within_range_however_they_get_there() -> None:
    body = """
      %s = func.call @pick(%t, %i) : (tensor<7x3xf32>, tensor<64xi32>) -> tensor<64x3xf32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %d = stablehlo.dynamic_slice %t, %j, %z, sizes = [2, 3]
        : (tensor<7x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
      %b = "stablehlo.case"(%k) ({ stablehlo.return %z : tensor<i32> }, { stablehlo.return %z : tensor<i32> })
        : (tensor<i32>) -> tensor<i32>
      return } func.func private @pick(%t: tensor<7x3xf32>, %i: tensor<64xi32>) -> tensor<64x3xf32> {
      %0 = stablehlo.reshape %i : (tensor<64xi32>) -> tensor<64x1xi32>
      %1 = "stablehlo.gather"(%t, %0) {dimension_numbers = #stablehlo.gather<
        offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1, 3>}
        : (tensor<7x3xf32>, tensor<64x1xi32>) -> tensor<64x3xf32>
      func.return %1 : tensor<64x3xf32> } func.func private @rest() {"""
    starts = set()
    for seed in range(20):
        arguments = "%t: tensor<7x3xf32>, %i: tensor<64xi32>, %j: tensor<i32>, %k: tensor<i32>"
        program = f"func.func @main({arguments}) {{ {body} return }}"
        _, gathered, start, branch = vt.draw_inputs(program, seed)
        assert gathered.min() >= 0
        assert gathered.max() == 6
        assert 0 <= start <= 5
        assert 0 <= branch <= 1
        starts.add(int(start))
    # To the last that there is room for.
    assert max(starts) == 5


def test_integers_are_small_and_of_both_signs() -> None:
    (array,) = drawn("%a: tensor<500xi32>", "")
    assert {*array.tolist()} == {*range(-8, 9)}


def test_as_many_dimensions_as_numpy_has() -> None:
    most = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
    assert drawn(f"%a: tensor<{'1x' * most}f32>", "")[0].shape == (1,) * most
    with pytest.raises(vt.EngineError, match=f"has {most + 1} dimensions"):
        drawn(f"%a: tensor<{'1x' * (most + 1)}f32>", "")


def test_open_sizes() -> None:
    assert drawn("%a: tensor<?x2xf32>", "")[0].shape == (3, 2)
    assert drawn("%a: tensor<?x2xf32>", "", drawing=vt.Drawing(size=7))[0].shape == (7, 2)


@pytest.mark.parametrize(
    ("element", "edges"),
    [
        ("i8", {-128, -127, -1, 0, 1, 126, 127}),
        ("ui8", {0, 1, 254, 255}),
        ("i2", {-2, -1, 0, 1}),
        ("ui64", {0, 1, 2**64 - 2, 2**64 - 1}),
    ],
)
def test_edges_of_integers(element: str, edges: set[int]) -> None:
    (array,) = drawn(f"%a: tensor<500x{element}>", "", drawing=vt.Drawing(edges=True))
    found = {int(each) for each in array}
    assert edges <= found
    assert found - edges <= set(range(-8, 9))


@pytest.mark.parametrize(("element", "bits"), [("i2", 2), ("ui4", 4), ("i8", 8), ("ui32", 32)])
@pytest.mark.parametrize("edges", [False, True])
def test_shifts_are_by_fewer_bits_than_there_are(element: str, bits: int, edges: bool) -> None:
    kind = f"tensor<500x{element}>"
    shift = f"%0 = stablehlo.shift_left %a, %b : {kind}"
    _, by = drawn(f"%a: {kind}, %b: {kind}", shift, drawing=vt.Drawing(edges=edges))
    assert {int(each) for each in by} == set(range(bits))


def test_edges_that_suit_an_op() -> None:
    (roots,) = drawn("%a: tensor<500xf32>", "%0 = stablehlo.sqrt %a : tensor<500xf32>", drawing=vt.Drawing(edges=True))
    about = np.finfo(np.float32)
    assert {1.0, float(about.smallest_subnormal), float(about.tiny), float(about.max)} <= set(roots.tolist())
    assert (roots > 0).all()
    (divisors,) = drawn(
        "%a: tensor<500xi8>", "%0 = stablehlo.divide %a, %a : tensor<500xi8>", drawing=vt.Drawing(edges=True)
    )
    assert {-128, -1, 1, 127} <= set(divisors.tolist())
    assert (divisors != 0).all()


def test_a_drawing_has_a_seed_unless_it_is_given_one() -> None:
    executable = load_executable(f"func.func @main(%a: {F}) {{ return }}", engine="reference")
    (first,), (again,), (other,) = (
        draw_inputs(executable, drawing) for drawing in (vt.Drawing(), vt.Drawing(seed=0), vt.Drawing(seed=1))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    "type_", [f"tensor<{'1x' * 100}f32>", "tensor<2147483648x2xi64>", "tensor<254985430322250x128xf64>"]
)
def test_inputs_beyond_any_memory_are_an_error(type_: str) -> None:
    program = f"func.func @main(%a: {type_}) -> {type_} {{ return %a : {type_} }}"
    with pytest.raises(vt.EngineError, match=r"argument 0 of the text has .* are drawn"):
        vt.draw_inputs(program)
