"""The tables of the page on performance are those that its script makes of what was measured."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from measurements import load
from performance_page import PAGE, PICTURES, TABLES, written


def test_the_page_has_the_tables_of_its_script() -> None:
    page = PAGE.read_text()
    assert written(page, load()) == page
    for name in TABLES:
        assert f"<!-- table: {name} -->\n| " in page


def test_the_page_shows_every_picture() -> None:
    """What is in them is compared where matplotlib is: `tests/frontends/scale/test_growth_pictures.py`."""
    shown = set(re.findall(r"\((performance-[a-z-]+\.svg)\)", PAGE.read_text()))
    assert shown == {path.name for path in PAGE.parent.glob("performance-*.svg")} == set(PICTURES)
