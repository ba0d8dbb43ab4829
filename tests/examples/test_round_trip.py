"""Every example comes back from artifacts as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import example_programs, writable_versions

import vhlo_tools as vt


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_a_round_trip_changes_nothing(path: Path) -> None:
    newest = vt.serialize(path, allow_other_dialects=True)
    module = vt.deserialize(newest)
    assert vt.diff(path, newest, ignore=["version"]) == []
    assert vt.diff(path, module, locations=True, ignore=["version"]) == []
    assert vt.diff(path, str(module), ignore=["version"]) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_a_round_trip_through_every_version_changes_nothing(path: Path) -> None:
    newest = vt.serialize(path, allow_other_dialects=True)
    written = 0
    for version in writable_versions():
        try:
            older = vt.retarget(newest, version)
        except vt.DowngradeError:
            continue
        written += 1
        assert vt.diff(newest, older, ignore=["version"]) == [], version
        back = vt.serialize(vt.deserialize(older), version, allow_other_dialects=True)
        assert vt.diff(older, back, locations=True) == [], version
    assert written > 1
