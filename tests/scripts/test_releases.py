"""The script that keeps the tables of releases: their files, the index, and real releases."""

from __future__ import annotations

import tomllib
from datetime import date

import pytest
import releases
from packaging.version import Version
from release_probing import probe


@pytest.mark.parametrize("table", releases.tables(), ids=lambda table: table.path.parent.name)
def test_the_files_are_as_the_script_writes_them(table: releases.Table) -> None:
    known = tomllib.loads(table.path.read_text())["release"]
    assert releases.written(table, releases.merged(table, known, [])) == table.path.read_text()


def test_a_new_release_stands_at_its_place() -> None:
    table = releases.tables()[0]
    known = tomllib.loads(table.path.read_text())["release"]
    day = date(2024, 8, 1)
    new = {"package": "jaxlib", "release": "0.4.32", "date": day, "stablehlo": "1.5.0", "minimum": "0.9.0"}
    entries = releases.merged(table, known, [new, new])
    assert len(entries) == len(known) + 1
    place = entries.index(new)
    assert entries[place - 1]["release"] == "0.4.31"
    assert entries[place + 1]["release"] == "0.4.33"
    assert 'release = "0.4.32"\ndate = 2024-08-01\n' in releases.written(table, entries)


@pytest.mark.releases
def test_the_index_knows_what_the_table_has() -> None:
    table = releases.tables()[1]
    known = {Version(each["release"]) for each in tomllib.loads(table.path.read_text())["release"]}
    assert known <= set(releases.available("jax"))


@pytest.mark.releases
@pytest.mark.parametrize("release", ["jaxlib==0.5.3", "torch-mlir==20261001"])
def test_a_release_says_what_the_table_has(release: str) -> None:
    package, _, number = release.partition("==")
    entries = tomllib.loads(releases.tables()[0].path.read_text())["release"]
    (known,) = (each for each in entries if (each["package"], each["release"]) == (package, number))
    found, doubts = releases.entry_of(release)
    assert not doubts
    assert found == {key: value for key, value in known.items() if key not in ("package", "release", "date")}
    assert probe(release).probed is False
