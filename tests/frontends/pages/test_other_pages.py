"""The pages for stores and for two programs in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect
from support.chromium import opened, violations_of
from support.corpus_files import corpus_files
from support.store_of_kinds import fill

import vhlo_tools as vt

EXAMPLES = Path(__file__).parents[3] / "examples"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_store_is_drawn_and_filtered(browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for number, (name, data) in enumerate(corpus_files(ordinary=False)):
        if number % 40 == 0:
            (store / name.replace("/", "_")).write_bytes(data)
    path = tmp_path / "page.html"
    vt.report(store).save(path)
    with opened(browser, path, scheme=scheme) as found:
        page = found.page
        titles = page.get_by_role("heading", level=2)
        expect(titles).to_have_text(["Who reads it", "Windows over time", "What blocks most", "What there is", "Files"])
        rows = page.locator("#files tbody tr")
        number = len(list(store.iterdir()))
        assert rows.count() == number
        page.get_by_label("Filter files").fill("0.9.0")
        assert 0 < rows.count() < number
        assert violations_of(page) == []
        found.check()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_programs_stand_side_by_side(browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    one = EXAMPLES / "transformer_step.mlir"
    other = one.read_text().replace("stablehlo.divide", "stablehlo.multiply").replace('"result[0]', '"new')
    path = tmp_path / "page.html"
    vt.report(one, other, name="<b>before</b>", other_name="after").save(path)
    with opened(browser, path, scheme=scheme) as found:
        page = found.page
        expect(page.get_by_role("heading", level=1)).to_have_text("<b>before</b> and after")
        rows = page.locator("#differences tbody tr")
        before = rows.count()
        assert before == len(vt.diff(one, other)) > 10
        assert page.locator("#differences mark").count() > 0
        page.get_by_role("group", name="Kinds").get_by_role("button").first.click()
        assert rows.count() < before
        assert violations_of(page) == []
        found.check()


#: Texts in tables of which each line has few characters, as where a column is too narrow for its words.
NARROW = """() => [...document.querySelectorAll("td, th")].flatMap((cell) => {
  const found = [];
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const range = document.createRange();
    range.selectNode(node);
    const lines = range.getClientRects().length;
    if (node.length >= 12 && node.length / lines < 5) found.push(`${node.data}: ${lines} lines`);
  }
  return found;
})"""
#: Drawings, by the pixels that are left of what is seen and right of it, and the left end of their labels.
SLID = """() => [...document.querySelectorAll(".sliding")].map((each) => [
  each.getAttribute("aria-label"),
  each.scrollLeft,
  each.scrollWidth - each.clientWidth - each.scrollLeft,
  Math.min(...[...each.querySelectorAll(".labels text")].map((text) => text.getBoundingClientRect().left)),
])"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind: of an artifact, of a store with what cannot be read and other files, and of two programs."""
    folder = tmp_path_factory.mktemp("kinds")
    fill(folder / "store", 40)
    (folder / "store" / "tan.mlir").write_text((EXAMPLES / "transformer_step.mlir").read_text())
    pages = {
        "artifact": vt.report(EXAMPLES / "keras_mlp.mlirbc"),
        "program": vt.report(EXAMPLES / "transformer_step.mlir"),
        "store": vt.report(folder / "store"),
        "difference": vt.report(EXAMPLES / "transformer_step.mlir", EXAMPLES / "saxpy.mlir"),
    }
    for name, page in pages.items():
        page.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["artifact", "program", "store", "difference"])
def test_a_phone_shows_all_of_a_page(
    browser: Browser, kinds: dict[str, Path], name: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(browser, kinds[name], scheme=scheme, size=(390, 844)) as found:
        page = found.page
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate("scrollTo(50, 0), scrollX") == 0
        links = page.locator("nav a")
        assert links.count() >= 2
        for link in links.all():
            box = link.bounding_box()
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= 390
        assert page.evaluate(NARROW) == []
        # What is wider than the page slides in a box of its own.
        ends = page.locator(".scroll").evaluate_all("all => all.map((each) => each.getBoundingClientRect().right)")
        assert max(ends) <= 390
        for what, before, after, labels in page.evaluate(SLID):
            assert labels >= 0, what
            if what == "Drawing of windows over time":
                continue
            assert after <= 1, what
            assert before > 0 or what == "Releases of torch-mlir", what
        assert violations_of(page) == []
        found.check()


def test_links_to_parts_lead_there_on_a_phone(browser: Browser, kinds: dict[str, Path]) -> None:
    with opened(browser, kinds["artifact"], size=(390, 844)) as found:
        found.page.get_by_role("link", name="Constants").click()
        expect(found.page.get_by_role("heading", name="Constants")).to_be_in_viewport()
        found.check()


def test_the_day_of_the_page_is_seen_first(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    for version in ("0.9.0", "1.9.0", "current"):
        vt.serialize(EXAMPLES / "saxpy.mlir", version).save(tmp_path / "store" / f"{version}.mlirbc")
    vt.report(tmp_path / "store").save(tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html", size=(390, 844)) as found:
        today = found.page.locator("#windows line.today")
        left = today.evaluate("each => each.getBoundingClientRect().left")
        assert 54 < left < 390
        found.check()
