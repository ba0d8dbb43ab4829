"""How element types are called elsewhere."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.constants import (
    _NAMES,
    element_named,
    element_size,
    numpy_name,
    safetensors_name,
    structure_of,
)


@pytest.mark.parametrize("element", sorted(_NAMES))
def test_names_go_there_and_back(element: str) -> None:
    name = numpy_name(element)
    assert name is not None
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert dtype.name == name
    # What takes fewer than eight bits takes a byte, and an index as many as an i64, which comes back for it.
    assert element_size(element) == dtype.itemsize
    assert element_named(name) == ("i64" if element == "index" else element)


def test_vhlo_types_of_complex_numbers() -> None:
    assert structure_of("complex<f32>") == {"type": "complex_v1", "element": {"type": "f32_v1"}}
    assert element_size("complex<f64>") == 16


def test_names_that_nobody_has() -> None:
    assert (numpy_name("token"), safetensors_name("token"), element_size("token")) == (None, None, None)
    assert element_size("complex<complex<f32>>") is None
    assert safetensors_name("i4") is None
    with pytest.raises(vt.InvalidInputError, match="numpy's object is not an element type"):
        element_named("object")
