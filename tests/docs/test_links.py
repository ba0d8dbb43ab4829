"""Links between pages lead somewhere, and the scripts that pages name are there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.corpus import ROOT
from support.documentation import ALL_PAGES, PAGES, page_name

DOCS = ROOT / "docs"


def tokens_of(page: Path) -> Iterator[Token]:
    """Yield the tokens of a page, those within lines too."""
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        yield token
        yield from token.children or ()


def links_of(page: Path) -> list[str]:
    """Return where the links of a page lead that stay in the repository."""
    links = [str(token.attrGet("href")) for token in tokens_of(page) if token.type == "link_open"]
    return [link for link in links if "://" not in link]


@cache
def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    tokens = list(tokens_of(page))
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    slugs = [
        re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", each).lower()).replace(" ", "-") for each in headings
    ]
    seen: Counter[str] = Counter()
    anchors = set()
    for slug in slugs:
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    listed = {(DOCS / link).resolve() for link in links_of(DOCS / "README.md")}
    pages = {page for page in ALL_PAGES if page.is_relative_to(DOCS)} - {DOCS / "README.md"}
    assert pages - listed == set()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_scripts_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"(?:scripts|benchmarks|tests/[a-z_]+)/[a-z_]+(?:\.[a-z]+)?", page.read_text())
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# One `two`: three\n\n# One two three\n")
    assert anchors_of(tmp_path / "page.md") == {"one-two-three", "one-two-three-1"}
    (tmp_path / "other.md").write_text(
        "[a](page.md#one) [b](gone.md) [c](page.md#one-two-three-1) [d](https://a.b/c)\n"
    )
    assert links_of(tmp_path / "other.md") == ["page.md#one", "gone.md", "page.md#one-two-three-1"]
    with pytest.raises(AssertionError, match=r"gone\.md"):
        test_links_lead_somewhere(tmp_path / "other.md")
