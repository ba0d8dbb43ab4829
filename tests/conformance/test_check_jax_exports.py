"""The choice of readers in `check_jax_exports.py`; the campaign itself needs an environment of each release."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("check_jax_exports.py")
spec = importlib.util.spec_from_file_location("check_jax_exports", SCRIPT)
assert spec is not None
assert spec.loader is not None
campaign = importlib.util.module_from_spec(spec)
spec.loader.exec_module(campaign)


@pytest.mark.parametrize("number", [1, 5, 12, None])
def test_every_release_is_read_by_so_many_others(number: int | None) -> None:
    releases = campaign.RELEASES
    chosen = {writer: campaign.readers_of(writer, number) for writer in releases}
    for writer, readers in chosen.items():
        assert writer not in readers
        assert len(readers) == len(set(readers)) == (number or len(releases) - 1)
    if number is None or number >= 5:
        assert {reader for readers in chosen.values() for reader in readers} == set(releases)
        assert all(releases[at + 1] in chosen[each] for at, each in enumerate(releases[:-1]))
