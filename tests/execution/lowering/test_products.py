"""Short forms of products, sums and selections, against numpy, and against XLA where it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

import vhlo_tools as vt

pytestmark = pytest.mark.every_python


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize(("one", "other"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))])
def test_dot(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    a, b = draw(*one), draw(*other)
    expected = np.asarray(a @ b)
    kinds = [tensor(each, "f32") for each in (a, b, expected)]
    op = f"%0 = stablehlo.dot %a, %b, precision = [HIGHEST, DEFAULT] : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"
    text = function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]])
    for (found,) in run_on_both(text, [a, b]):
        assert np.array_equal(found, expected)


def test_broadcast() -> None:
    a = draw(3)
    op = "%0 = stablehlo.broadcast %a, sizes = [2, 1] : (tensor<3xf32>) -> tensor<2x1x3xf32>"
    text = function("%a: tensor<3xf32>", op, ["%0"], ["tensor<2x1x3xf32>"])
    for (found,) in run_on_both(text, [a]):
        assert np.array_equal(found, np.broadcast_to(a, (2, 1, 3)))


@pytest.mark.parametrize(
    ("config", "one", "other"),
    [
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,jk->ki", (2, 3), (3, 4)),
        ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
        ("ij,kj->", (2, 3), (4, 3)),
        ("i,j->ij", (2,), (3,)),
        ("ijk,j->i", (2, 3, 4), (3,)),
        ("...ij,...jk->...ik", (5, 6, 2, 3), (5, 6, 3, 4)),
        ("i...,i->...", (2, 3, 4), (2,)),
        (",ij->ji", (), (2, 3)),
    ],
)
def test_einsum(config: str, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    a, b = draw(*one), draw(*other)
    expected = np.asarray(np.einsum(config, a, b))
    kinds = [tensor(each, "f32") for each in (a, b, expected)]
    op = f'%0 = stablehlo.einsum %a, %b, config = "{config}" : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]]), [a, b])
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("config", "shape"), [("ijk->ki", (2, 3, 4)), ("ij->", (2, 3)), ("i...->...i", (2, 3, 4))])
def test_unary_einsum(config: str, shape: tuple[int, ...]) -> None:
    a = draw(*shape)
    expected = np.asarray(np.einsum(config, a))
    kinds = [tensor(each, "f32") for each in (a, expected)]
    op = f'%0 = "stablehlo.unary_einsum"(%a) {{einsum_config = "{config}"}} : ({kinds[0]}) -> {kinds[1]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}", op, ["%0"], [kinds[1]]), [a])
    assert np.array_equal(found, expected)


def test_a_diagonal_is_refused_by_name() -> None:
    op = '%0 = "stablehlo.unary_einsum"(%a) {einsum_config = "ii->i"} : (tensor<2x2xf32>) -> tensor<2xf32>'
    with pytest.raises(vt.EngineError, match=r"unary_einsum.*the form 'ii' of a tensor with 2 dimensions"):
        vt.run(function("%a: tensor<2x2xf32>", op, ["%0"], ["tensor<2xf32>"]), [draw(2, 2)])


@pytest.mark.parametrize(
    ("shape", "indices", "dim", "batch"),
    [
        ((5, 3), [4, 0, 9, 1], 0, 0),
        ((3, 5), [4, -1], 1, 0),
        ((5, 3), [[1, 2], [3, 0]], 0, 0),
        ((2, 5, 3), [[1, 2, 4], [3, 0, 0]], 1, 1),
        ((2, 3, 5), [[1, 2], [3, 0]], 2, 1),
        ((5,), 3, 0, 0),
    ],
)
def test_torch_index_select(shape: tuple[int, ...], indices: Any, dim: int, batch: int) -> None:
    a, chosen = draw(*shape), np.array(indices, np.int32)
    # Indices out of range are those nearest to them.
    clipped = np.clip(chosen, 0, shape[dim] - 1)
    if batch:
        expected = np.stack([np.take(each, index, dim - 1) for each, index in zip(a, clipped, strict=True)])
    else:
        expected = np.asarray(np.take(a, clipped, dim))
    kinds = tensor(a, "f32"), tensor(chosen, "i32"), tensor(expected, "f32")
    attributes = f"{{dim = {dim} : i64, batch_dims = {batch} : i64}}"
    op = f'%0 = "stablehlo.torch_index_select"(%a, %b) {attributes} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}'
    (found,) = vt.run(function(f"%a: {kinds[0]}, %b: {kinds[1]}", op, ["%0"], [kinds[2]]), [a, chosen])
    assert np.array_equal(found, expected)
