"""Patterns for the types of operands and results."""

from __future__ import annotations

import pytest

from vhlo_tools.execution.call_rules import Bindings, Pattern
from vhlo_tools.execution.values import parse_tensor_type


def matched(*pairs: tuple[str, str], elements: tuple[str, ...] | None = None) -> list[bool]:
    bindings = Bindings()
    return [Pattern.parse(text).matches(parse_tensor_type(type_), elements, bindings) for text, type_ in pairs]


def test_a_name_is_one_size() -> None:
    assert matched(("T * n n", "tensor<2x4x4xf32>"), ("T * n", "tensor<2x4xf32>")) == [True, True]
    assert matched(("T * n n", "tensor<4x5xf32>")) == [False]
    assert matched(("T * n n", "tensor<4x4xf32>"), ("T * n", "tensor<5xf32>")) == [True, False]


def test_batch_dimensions_are_the_same_everywhere() -> None:
    assert matched(("T * n", "tensor<2x3x4xf32>"), ("i32 *", "tensor<2x3xi32>")) == [True, True]
    assert matched(("T * n", "tensor<2x3x4xf32>"), ("i32 *", "tensor<3x2xi32>")) == [True, False]
    assert matched(("T * n", "tensor<f32>"), ("T n", "tensor<2x4xf32>")) == [False, False]
    assert matched(("T ~", "tensor<2x3xf32>"), ("T ~", "tensor<4x9xf32>"), ("T ~", "tensor<4xf32>")) == [
        True,
        True,
        False,
    ]


def test_elements_follow_from_each_other() -> None:
    assert matched(("T", "tensor<complex<f64>>"), ("real", "tensor<f64>"), ("complex", "tensor<complex<f64>>")) == [
        True,
        True,
        True,
    ]
    assert matched(("T", "tensor<f32>"), ("real", "tensor<f32>"), ("complex", "tensor<complex<f64>>")) == [
        True,
        True,
        False,
    ]
    assert matched(("T", "tensor<f32>"), elements=("f64",)) == [False]


def test_sizes_are_computed() -> None:
    least = ("T m n", "tensor<3x5xf32>"), ("T min(m,n)", "tensor<3xf32>")
    assert matched(*least, ("T n-1", "tensor<4xf32>")) == [True, True, True]
    assert matched(*least, ("T n-1", "tensor<5xf32>")) == [True, True, False]


def test_a_size_that_is_not_known_matches_nothing() -> None:
    assert matched(("T n", "tensor<?xf32>")) == [False]


def test_what_is_expected_is_said_as_far_as_it_is_known() -> None:
    bindings = Bindings()
    square = Pattern.parse("T * n n")
    assert square.described(("f32", "f64"), bindings) == "f32 or f64[..., n, n]"
    assert square.matches(parse_tensor_type("tensor<2x4x4xf64>"), ("f32", "f64"), bindings)
    assert Pattern.parse("real * n n-1").described(None, bindings) == "f64[2, 4, 3]"


def test_conditions() -> None:
    bindings = Bindings(sizes={"k": 2, "n": 3})
    assert bindings.holds("k <= n-1")
    assert not bindings.holds("n <= k")
    assert bindings.holds("k == 2")
    with pytest.raises(ValueError, match="has no value"):
        bindings.holds("k <= m")
