"""Some of the random programs on which XLA, the interpreter and numpy must agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from engine_sweep import draw_program, ended
from sweep_ops import OPS, UNDRAWN
from sweep_programs import Drawn, Value

from vhlo_tools.spec import known_ops

CHUNKS = 12


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engines_agree(chunk: int) -> None:
    counts = Counter[str]()
    for number in range(chunk, 300, CHUNKS):
        drawn = draw_program(1, number)
        how, why = ended(drawn)
        assert how not in ("different", "crashed"), f"--seed 1 --only {number}: {why}\n{drawn.text}"
        counts[how] += 1
    assert counts["refused"] <= 2


def test_every_op_is_drawn_or_there_is_a_reason() -> None:
    assert not OPS.keys() & UNDRAWN.keys()
    assert OPS.keys() | UNDRAWN.keys() == {op.name for op in known_ops()}


def test_the_program_of_a_number_is_always_the_same() -> None:
    one, other = draw_program(1, 7), draw_program(1, 7)
    assert one.text == other.text
    assert all(map(np.array_equal, one.inputs, other.inputs))


def identity(given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Drawn:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    return Drawn(text, [given], [Value("%x", "f32", (2,), expected)])


def test_what_differs_or_is_refused_is_told() -> None:
    given = np.array([0, 2], np.float32)
    assert ended(identity(given, given))[0] == "equal"
    assert ended(identity(given, given + 1)) == ("different", "numpy and xla, reference")
    assert ended(identity(given, given * np.float32(-1) * -1))[0] == "equal"
    assert ended(identity(given, np.array([-0.0, 2], np.float32))) == ("different", "numpy and xla, reference")
    assert ended(identity(given.astype(np.int32), given))[0] == "refused"
