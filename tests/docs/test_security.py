"""Every claim of the page about security names a test that exists."""

from __future__ import annotations

import re

import pytest
from support.corpus import ROOT

CLAIMS = re.findall(r"^\| (.+) \| `(tests/[^`]+)` \|$", (ROOT / "docs" / "security.md").read_text(), re.MULTILINE)


def test_there_are_claims() -> None:
    assert len(CLAIMS) > 20


@pytest.mark.parametrize(("claim", "test"), CLAIMS)
def test_a_claim_has_a_test(claim: str, test: str) -> None:
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text()
    assert not name or f"\ndef {name}(" in text, claim
