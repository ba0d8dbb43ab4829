"""Some of the custom calls that must not crash, run unknown, or give wrong numbers."""

from __future__ import annotations

import numpy as np
import pytest
from check_custom_calls import campaign
from custom_call_answers import wrong_results
from custom_call_drawing import draw_call
from custom_call_programs import program_of
from custom_call_targets import UNKNOWN

from vhlo_tools.execution import RULES

pytestmark = pytest.mark.long


def test_custom_calls_run_right_or_are_refused() -> None:
    outcome = campaign(range(60))
    assert outcome.wrong == []
    ended = {(how, end) for how, _, end in outcome.counts}
    assert ended >= {("right", "ran"), ("changed", "ran"), ("changed", "refused"), ("any", "refused")}


def test_the_calls_of_a_seed_are_the_same_in_every_process() -> None:
    assert program_of(draw_call(7)) == program_of(draw_call(7))


def test_no_name_of_the_unknown_is_known() -> None:
    assert not RULES.keys() & set(UNKNOWN)


def test_wrong_numbers_are_noticed() -> None:
    matrix = np.array([[2, 1], [1, 3]], np.float32)
    values, vectors = np.linalg.eigh(matrix)
    attributes = {"backend_config": '"1,1,100,1e-6"'}
    assert wrong_results("Eigh", attributes, [matrix], [vectors, values]) is None
    assert wrong_results("Eigh", attributes, [matrix], [vectors, values + 0.01]) is not None
    assert wrong_results("Eigh", attributes, [matrix], [vectors.T + 0.01, values]) is not None
