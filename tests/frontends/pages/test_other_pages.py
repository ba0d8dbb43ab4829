"""The pages for stores and for two programs in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect
from support.chromium import opened, violations_of
from support.corpus_files import corpus_files

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
