"""What the numerical suite recorded of three engines: the page has it, and each cause is one that is listed."""

from __future__ import annotations

import json
import subprocess
import sys

from numerical_rules import FILE, read_rules
from support.corpus import ROOT

RECORD = json.loads(FILE.with_suffix(".json").read_text())


def test_the_page_is_what_was_recorded() -> None:
    script = ROOT / "scripts" / "write_engines.py"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0


def test_every_cause_is_listed_and_every_listed_cause_occurs() -> None:
    listed = {(each.engine, each.outcome, each.reason) for each in read_rules().known}
    assert {(each["engine"], each["outcome"], each["reason"]) for each in RECORD["causes"]} == listed


def test_the_numbers_add_up() -> None:
    for engine, counted in RECORD["engines"].items():
        assert sum(counted.values()) == RECORD["programs"]
        causes = [each for each in RECORD["causes"] if each["engine"] == engine]
        assert sum(each["programs"] for each in causes) == RECORD["programs"] - counted["agrees"]
