"""What is near enough, and what is said of what is not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from vhlo_tools.verification import Tolerance, compare
from vhlo_tools.verification.comparison import has_subnormals, without_subnormals
from vhlo_tools.verification.rounds import Round

EXACT = Tolerance(ulp=0)


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "passes"),
    [
        (f32(1), f32(1), EXACT, True),
        (f32(0.0), f32(-0.0), EXACT, True),
        (f32(np.nan), -f32(np.nan), EXACT, True),
        (f32(np.nan), f32(1), Tolerance(2**63), False),
        (f32(np.inf), f32(float(np.finfo(np.float32).max)), Tolerance(10, 1.0, 1e38), False),
        (f32(np.inf), f32(-np.inf), Tolerance(10, 1.0, 1.0), False),
        (np.nextafter(f32(1), f32(2)), f32(1), EXACT, False),
        (np.nextafter(f32(1), f32(2)), f32(1), Tolerance(1), True),
        (f32(1.1), f32(1), Tolerance(0, relative=0.11), True),
        (f32(1.1), f32(1), Tolerance(0, relative=0.09), False),
        (f32(1e-9), f32(0), Tolerance(0, absolute=1e-8), True),
        (np.array([1 + 1j]), np.array([1 + 2j]), Tolerance(4), False),
        (np.array([1 + 1j, complex(np.nan, 1)]), np.array([1 + 1j, complex(np.nan, 1)]), EXACT, True),
        (np.array([1, 2]), np.array([1, 2]), EXACT, True),
        (np.array([2**63], np.uint64), np.array([2**63 + 1], np.uint64), Tolerance(9, 1.0, 9.0), False),
        (np.array([True]), np.array([False]), Tolerance(9, 9.0, 9.0), False),
        (np.array([1, -3]).astype(ml_dtypes.int4), np.array([1, -3]).astype(ml_dtypes.int4), EXACT, True),
        (np.array([1, -3]).astype(ml_dtypes.int4), np.array([1, 3]).astype(ml_dtypes.int4), EXACT, False),
        (np.zeros((0, 3)), np.zeros((0, 3)), EXACT, True),
        (np.array(1.5, ml_dtypes.bfloat16), np.array(1.5078125, ml_dtypes.bfloat16), Tolerance(1), True),
        (f32(1), np.array([1.0]), EXACT, False),
        (f32(1), f32(1, 1), EXACT, False),
    ],
)
def test_near_enough(found: Any, expected: Any, tolerance: Tolerance, passes: bool) -> None:
    assert compare(found, expected, tolerance, "0").passed is passes


def test_what_is_said() -> None:
    expected = np.ones((2, 3), np.float32)
    found = expected.copy()
    found[1, 2], found[0, 0] = 1.5, np.nextafter(np.float32(1), np.float32(2))
    compared = compare(found, expected, Tolerance(1), "1")
    assert (compared.differing, compared.outside, compared.worst) == (2, 1, (1, 2))
    assert str(compared) == (
        "output 1: float32[2, 3], 2 of 6 differ, 1 beyond the tolerance: at most 4194304 ulp, 0.5 absolute, "
        "0.5 relative; most at [1, 2]: 1.5, expected 1.0"
    )
    assert str(compare(expected, expected, EXACT, "0")) == "output 0: float32[2, 3], equal"
    wrong = compare(np.array([1, 2, 3]), np.array([1, 2, 300]), EXACT, "0")
    assert str(wrong) == (
        "output 0: int64[3], 1 of 3 differ, 1 beyond the tolerance: at most 297 absolute, 0.99 relative; "
        "most at [2]: 3, expected 300"
    )
    assert str(compare(f32(1), np.array([1.0]), EXACT, "0")) == "output 0: it is float32[1], expected float64[1]"


def test_distances_of_what_is_equal() -> None:
    """Of floats, bits may differ; of integers there is no unit in the last place."""
    for found, expected in ((f32(0.0), f32(-0.0)), (f32(np.nan), -f32(np.nan)), (f32(1), f32(1)), (f32(), f32())):
        compared = compare(found, expected, EXACT, "0")
        assert (compared.differing, compared.max_ulp, compared.worst) == (0, 0, None)
    assert compare(np.array([1, 2]), np.array([1, 2]), EXACT, "0").max_ulp is None
    # The bits above those of a narrow integer mean nothing.
    narrow = np.array([0x0F, 0xFF], np.uint8).view(ml_dtypes.int4)
    compared = compare(narrow[:1], narrow[1:], EXACT, "0")
    assert (compared.differing, compared.max_ulp) == (0, None)


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -126), (np.float64, -1022), (ml_dtypes.bfloat16, -126)])
def test_subnormal_numbers_are_taken_as_zeros_of_their_sign(dtype: Any, least: int) -> None:
    smallest = 2.0**least
    given = np.array([smallest, smallest / 2, -smallest / 2, 0, np.inf, -smallest], dtype)
    found = without_subnormals(given)
    assert found.tolist() == [smallest, 0, 0, 0, np.inf, -smallest]
    assert np.signbit(found).tolist() == [False, False, True, False, False, True]
    assert has_subnormals(given)
    assert not has_subnormals((found, None))
    assert not has_subnormals(np.array([smallest / 2], np.float16))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_each_part_of_a_complex_number_may_be_subnormal(dtype: Any) -> None:
    smallest = np.finfo(dtype).smallest_normal
    found = without_subnormals(np.array([complex(smallest / 2, 1), complex(1, smallest / 2), smallest], dtype))
    assert found.tolist() == [1j, 1, smallest]


def test_a_round_has_no_subnormal_inputs_unless_it_says_so() -> None:
    assert not Round("", ()).subnormals
