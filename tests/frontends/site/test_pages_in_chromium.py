"""A page of each kind in Chromium, from disk and without network: no error, nothing for axe to find, and a search."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest
from find_chromium import MissingChromiumError, install_chromium
from support.chromium import launched, opened, violations_of
from support.corpus import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = ROOT / "build" / "site"
KINDS = {
    "start": "index.html",
    "tutorial": "tutorials/framework-author.html",
    "how-to": "expansions.html",
    "commands": "reference/commands/index.html",
    "command": "reference/commands/check.html",
    "python": "reference/python/running.html",
    "family": "specification/ops/elementwise_unary.html",
    "features": "specification/features.html",
    "enums": "specification/enums.html",
    "versions": "specification/versions.html",
    "releases": "specification/releases.html",
    "source": "source/vhlo_tools/conversion/legalizing.py.html",
    "pictures": "performance.html",
}


needs_axe = pytest.mark.skipif(
    shutil.which("npm") is None, reason="npm, which fetches axe-core, is not on this machine"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        install_chromium()
    except MissingChromiumError as error:
        pytest.skip(str(error))
    with launched() as launched_browser:
        yield launched_browser


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(kind: str, scheme: Literal["light", "dark"], browser: Browser) -> None:
    with opened(browser, SITE / KINDS[kind], scheme=scheme) as watched:
        page = watched.page
        assert page.evaluate("document.body.dataset.mdColorScheme") == ("slate" if scheme == "dark" else "default")
        assert page.locator("h1").count() == 1
        assert violations_of(page) == []
        watched.check()


@needs_axe
def test_axe_would_find_something(browser: Browser) -> None:
    with opened(browser, SITE / KINDS["start"]) as watched:
        watched.page.evaluate("document.querySelector('article').append(document.createElement('img'))")
        assert [each.partition(" ")[0] for each in violations_of(watched.page)] == ["image-alt"]


def test_the_search_works_from_disk(browser: Browser) -> None:
    with opened(browser, SITE / "index.html") as watched:
        page = watched.page
        page.keyboard.press("s")
        page.keyboard.type("compatibility window")
        results = page.locator(".md-search-result__link")
        results.first.wait_for()
        assert "terms.html" in " ".join(each.get_attribute("href") or "" for each in results.all())
        watched.check()


def test_the_colours_are_changed_by_hand(browser: Browser) -> None:
    with opened(browser, SITE / "index.html", scheme="light") as watched:
        page = watched.page
        ground = "getComputedStyle(document.querySelector('.drawing .box')).fill"
        before = page.evaluate(ground)
        page.get_by_title("Switch to the dark colours").click()
        assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
        assert page.evaluate(ground) != before
        watched.check()


def test_a_life_line_shows_what_its_table_says(browser: Browser) -> None:
    with opened(browser, SITE / KINDS["family"]) as watched:
        page = watched.page
        bars, rows = page.locator(".lives rect"), page.locator("table").first.locator("tbody tr")
        assert bars.count() == rows.count() > 28
        # Nothing of it is cut off where there is room for a page.
        box, frame = page.locator(".lives svg").bounding_box(), page.locator("article").bounding_box()
        assert box is not None
        assert frame is not None
        assert box["width"] <= frame["width"]
