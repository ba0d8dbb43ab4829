"""Some of the chains of two ops of floats on which XLA and the interpreter must agree."""

from __future__ import annotations

import numpy as np
import pytest
from op_chains import Applied, alike, differing, firsts, same

#: Those with which XLA's algebra begins, and some others.
BEGUN = (
    Applied("divide", ["%x", "%y"]),
    Applied("divide", ["%large", "%x"]),
    Applied("add", ["%x", "%zero"]),
    Applied("add", ["%x", "%large"]),
    Applied("power", ["%x", "%y"]),
    Applied("multiply", ["%x", "%half"]),
    *(Applied(op, ["%x"]) for op in ("rsqrt", "exponential", "sqrt", "log")),
)


@pytest.mark.long
@pytest.mark.parametrize("first", BEGUN, ids=str)
def test_the_engines_agree(first: Applied) -> None:
    assert first in firsts()
    assert list(differing(first, "f32")) == []


def test_what_differs_is_told() -> None:
    one = np.array([1.0, np.nan, np.inf, 0.0, -np.inf])
    assert same(one, one).all()
    assert same(one, np.array([1.1, 1.0, -np.inf, np.nan, 1e9])).tolist() == [False] * 5
    assert alike(one, np.array([1.1, np.nan, -np.inf, -1e-7, np.inf])).tolist() == [True] * 5
    assert alike(one, np.array([np.inf, 0.0, 1.0, 1.0, np.nan])).tolist() == [False] * 5
