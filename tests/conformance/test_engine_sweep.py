"""Some of the random programs on which XLA, the interpreter and numpy must agree."""

from __future__ import annotations

import numpy as np
import pytest
from engine_sweep import Drawn, draw_program, ended

pytestmark = pytest.mark.long


@pytest.mark.parametrize("number", range(24))
def test_the_engines_agree(number: int) -> None:
    kind, drawn = draw_program(1, number)
    assert ended(drawn) == ("equal", ""), f"{kind}\n{drawn.text}"


def test_the_program_of_a_number_is_always_the_same() -> None:
    (_, one), (_, other) = draw_program(1, 7), draw_program(1, 7)
    assert one.text == other.text
    assert all(map(np.array_equal, one.inputs, other.inputs))


def test_what_differs_crashes_or_is_refused_is_told() -> None:
    text = "func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> { return %x : tensor<2xi32> }"
    given = np.array([1, 2], np.int32)
    assert ended(Drawn(text, [given], [given]))[0] == "equal"
    assert ended(Drawn(text, [given], [given + 1])) == ("different", "numpy and xla, numpy and reference")
    assert ended(Drawn(text, [given.astype(np.float32)], []))[0] == "refused"
