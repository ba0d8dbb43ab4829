"""The tables and pictures of the page on performance are those that its script makes of what was measured."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from measurements import load
from performance_page import PAGE, TABLES, pictures, written


def test_the_page_has_the_tables_of_its_script() -> None:
    page = PAGE.read_text()
    assert written(page, load()) == page
    for name in TABLES:
        assert f"<!-- table: {name} -->\n| " in page


def test_the_pictures_are_those_of_its_script() -> None:
    drawn = pictures(load())
    assert {PAGE.with_name(name).read_text() == text for name, text in drawn.items()} == {True}
    assert all(f"({name})" in PAGE.read_text() for name in drawn)
    assert {path.name for path in PAGE.parent.glob("performance-*.svg")} == set(drawn)
