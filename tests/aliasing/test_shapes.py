"""Shapes as XLA has them, and how they are printed."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, Plain, entry_name, parse_aliases
from vhlo_tools.aliasing.attributes import describe
from vhlo_tools.aliasing.shapes import _ELEMENTS

NUMPY = {"i1": "bool", "index": "int64", "complex<f32>": "complex64", "complex<f64>": "complex128"}


def numpy_name(element: str) -> str:
    if small := re.fullmatch(r"f(\d)(E\w+)", element):
        return f"float{small[1]}_{small[2].lower()}"
    kinds = {"ui": "uint", "i": "int", "bf": "bfloat", "f": "float"}
    name = re.fullmatch(r"([a-z]+)(\d+)", element)
    return NUMPY.get(element) or (f"{kinds[name[1]]}{name[2]}" if name else element)


@pytest.mark.parametrize("element", _ELEMENTS)
def test_bytes_of_an_array_are_those_of_numpy(element: str) -> None:
    name = numpy_name(element)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    packed = {"i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "f4E2M1FN": 4}.get(element)
    expected = 8 * dtype.itemsize if packed is None else packed
    assert Array.of_stablehlo(element, (8, 3)).bytes == expected * 3 * 8 // 8
    assert Array.of_stablehlo(element, ()).bytes == dtype.itemsize


@pytest.mark.parametrize(
    ("value", "text"), [((), "array<i64>"), ((1, -2), "array<i64: 1, -2>"), ([True, "a"], '[true, "a"]')]
)
def test_attributes_are_described_as_mlir_prints_them(value: Plain, text: str) -> None:
    assert describe(value) == text


def test_a_wrong_entry_is_shown() -> None:
    with pytest.raises(vt.AliasError, match="nonsense.* is no"):
        parse_aliases("{ {0}: (0, {}, may-alias), nonsense }")


def test_entries_need_a_comma_and_no_space() -> None:
    assert [each.output_index for each in parse_aliases("{{0}:(0,{},may-alias),{1}:(1,{},must-alias)}")] == [(0,), (1,)]
    with pytest.raises(vt.AliasError, match=f"expected a comma or the end of the list, found '{'x' * 60}'$"):
        parse_aliases(f"{{ {{0}}: (0, {{}}, may-alias) {'x' * 70} }}")


def test_the_entry_is_main_or_the_only_function() -> None:
    assert [entry_name(names) for names in (("a", "main"), ("a",), ("a", "b"), ())] == ["main", "a", None, None]
