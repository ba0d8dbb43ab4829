"""A sample of what tests/conformance/check_alias_round_trips.py checks: every version, every form, nothing changed."""

from __future__ import annotations

import pytest
from check_alias_round_trips import check, config_of, round_trip
from support.alias_programs import module_text

from vhlo_tools.aliasing import AliasConfig, encode_aliases

pytestmark = pytest.mark.long

#: With aliases of both kinds and donors among them.
SEEDS = range(11, 13)


def test_aliases_and_donors_go_round_through_every_version() -> None:
    outcome = check(SEEDS)
    assert outcome.wrong == []
    assert outcome.seen["must-aliases"]
    assert outcome.seen["donors"]
    assert outcome.seen["in argument form"] < outcome.seen["in module form"] == len(SEEDS)
    assert outcome.seen["steps"] == 9 * outcome.seen["round trips"]


def test_a_change_is_told() -> None:
    config = config_of(SEEDS[0])
    nothing = module_text(config.signature, encode_aliases(AliasConfig(config.signature)))
    changed = [step for step, same in round_trip(nothing, config, "module", "1.0.0") if not same]
    assert changed[0] == "VHLO"
    assert "HLO text" in changed
