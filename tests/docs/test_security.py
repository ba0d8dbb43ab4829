"""Every claim of the page about security names a test that exists."""

from __future__ import annotations

import re

import pytest
from support.corpus import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = re.findall(r"^\| (.+) \| (`tests/.+`) \|$", PAGE.partition("## Claims and tests")[2], re.MULTILINE)
CLAIMS = [(claim, test) for claim, tests in ROWS for test in re.findall("`([^`]+)`", tests)]


def test_there_are_claims() -> None:
    assert 20 < len(ROWS) == len(re.findall(r"^\| .*`tests/", PAGE, re.MULTILINE))


@pytest.mark.parametrize(("claim", "test"), CLAIMS)
def test_a_claim_has_a_test(claim: str, test: str) -> None:
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text()
    assert not name or f"\ndef {name}(" in text, claim
