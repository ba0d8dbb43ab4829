"""Distances between floats, of every type and all of its values where these are few."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from vhlo_tools.verification.comparison import ulp_distance

NARROW = [name for name in dir(ml_dtypes) if name.startswith("float")] + ["bfloat16"]
_BITS = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}


@pytest.mark.parametrize("name", [*NARROW, "float16"])
def test_neighbours_are_one_apart(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    bits = np.arange(1 << _BITS.get(name, 8 * dtype.itemsize))
    every = bits.astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        wide = every.astype(np.float64)
    numbers, wide = every[~np.isnan(wide)], wide[~np.isnan(wide)]
    order = np.argsort(wide, kind="stable")
    distance = ulp_distance(numbers[order][1:], numbers[order][:-1])
    # Zeros of both signs are the same.
    assert np.array_equal(distance, (wide[order][1:] != wide[order][:-1]).astype(np.uint64))


@given(st.floats(width=64), st.integers(0, 1000))
def test_steps_of_doubles_are_counted(start: float, steps: int) -> None:
    end = np.float64(start)
    for _ in range(steps):
        with np.errstate(over="ignore"):
            end = np.nextafter(end, np.float64(np.inf))
    found = ulp_distance(np.array([end]), np.array([start]))
    expected = 0 if np.isnan(start) or start == np.inf else steps
    # The largest number is the last before infinity, which goes no further.
    assert found[0] == expected or np.isinf(end)


def test_the_whole_range_of_doubles() -> None:
    found = ulp_distance(np.array([np.inf, -np.inf]), np.array([-np.inf, np.inf]))
    assert found.tolist() == [2 * 0x7FF0000000000000] * 2


def test_what_is_no_number() -> None:
    payload = np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32)
    assert ulp_distance(payload, payload[::-1]).tolist() == [0, 0]
    assert ulp_distance(payload, np.zeros(2, np.float32)).tolist() == [2**64 - 1] * 2
