"""Some of the random modules of HLO, and what is drawn of them."""

from __future__ import annotations

import pytest
from check_hlo import check

pytestmark = pytest.mark.long


def test_modules_of_any_signature_are_read_with_their_aliases() -> None:
    outcome = check(range(40))
    assert outcome.wrong == []
    # It draws past the sixth parameter and result, where XLA's text has comments, and what aliases must follow.
    assert all(outcome.seen.values()), outcome.seen


def test_what_is_drawn_nests_four_deep_and_has_64_parameters() -> None:
    from check_hlo import MOST, draw_module, leaves

    modules = [draw_module(seed) for seed in range(600)]
    assert max(len(each.parameters) for each in modules) == MOST
    assert max(len(at) for each in modules for shape in each.parameters for at, _ in leaves(shape)) == 4
