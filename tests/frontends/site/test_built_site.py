"""The built site: anchors are there, nothing is asked of the network, and what it says is what the generators made."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from docstring_markdown import fenced, linked
from support.corpus import ROOT

SITE = ROOT / "build" / "site"
PAGES = sorted(SITE.rglob("*.html"))
#: What a page loads, by element and attribute; the other links are for readers to follow.
LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}


class Reader(HTMLParser):
    """Reads the anchors, links and assets of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        of_style = tag != "link" or attributes.get("rel") in ("stylesheet", "icon", "preload")
        self.assets += [value for name, value in attributes.items() if (tag, name) in LOADS and of_style]


@cache
def read(page: Path) -> Reader:
    return Reader(page.read_text(encoding="utf-8"))


def test_there_are_pages() -> None:
    assert len(PAGES) > 150


def test_every_anchor_is_there() -> None:
    broken = []
    for page in PAGES:
        # It is for servers, and links from their root.
        if page.name == "404.html":
            continue
        for link in read(page).links:
            parts = urlsplit(link)
            if parts.scheme or not parts.fragment:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if unquote(parts.fragment) not in read(target).anchors:
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []


def test_no_asset_is_elsewhere() -> None:
    foreign = {
        asset for page in PAGES for asset in read(page).assets if urlsplit(asset).scheme or asset.startswith("//")
    }
    styles = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")]
    assert foreign == set()
    assert [each for each in styles if "url(http" in each or "@import" in each] == []


def test_tables_show_bars_in_code() -> None:
    assert "<code>vhlo check . | head -1</code>" in (SITE / "reference" / "exit-codes.html").read_text(encoding="utf-8")


def test_pictures_are_shown_in_the_colours_of_the_page() -> None:
    pictures = [asset for asset in read(SITE / "index.html").assets if asset.startswith("images/")]
    assert pictures == ["images/report-light.png#only-light", "images/report-dark.png#only-dark"]
    assert [each for page in PAGES for each in read(page).assets if each.endswith("model-explorer.png")]


def test_sources_have_their_text_highlighted() -> None:
    page = (SITE / "source" / "vhlo_tools" / "conversion" / "legalizing.py.html").read_text(encoding="utf-8")
    assert '<span class="kn">from</span>' in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as for :func:`serialize`.", "as for [`serialize`][vhlo_tools.serialize]."),
        ("as for :func:`~vhlo_tools.run`.", "as for [`run`][vhlo_tools.run]."),
        ("see :mod:`vhlo_tools.compat`.", "see `compat`."),
        ("``x`` and `y`", "``x`` and `y`"),
    ],
)
def test_roles_of_docstrings_become_links(text: str, shown: str) -> None:
    assert linked(text, frozenset({"serialize", "run"})) == shown


def test_sessions_of_docstrings_become_blocks() -> None:
    assert fenced("A b.\n\n>>> a = [\n... 1]\n>>> a\n[1]\n\nArgs:\n    b: c\n") == (
        "A b.\n\n```pycon\n>>> a = [\n... 1]\n>>> a\n[1]\n```\n\nArgs:\n    b: c\n"
    )


def test_no_role_is_left() -> None:
    left = [str(page) for page in PAGES if ":func:" in page.read_text(encoding="utf-8") and "source" not in page.parts]
    assert left == []
