"""The tables of the page on work at scale are those that its script makes of what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from scale_page import MEASURED, PAGE, TABLES, written


def test_the_page_has_the_tables_of_its_script() -> None:
    page = PAGE.read_text()
    assert written(page, json.loads(MEASURED.read_text())) == page
    for name in TABLES:
        assert f"<!-- table: {name} -->\n| " in page
