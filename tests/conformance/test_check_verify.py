"""Some of the changes that verification has to find."""

from __future__ import annotations

import pytest
from check_verify import campaign

pytestmark = pytest.mark.long


def test_changes_that_an_input_shows_are_found() -> None:
    seen, missed = campaign(programs=2, changes=6)
    assert missed == []
    assert seen["mutants"] == 12
    assert seen["found"] >= 6
