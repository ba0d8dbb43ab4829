"""Makes the pictures of pages in ``docs/images/``: pages of examples, opened in Chromium in light and in dark.

Run with the Python of ``.venv-pages``, which ``scripts/frontends.py pages`` makes: it has playwright.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

ROOT = Path(__file__).resolve().parents[1]
# In a checkout, where what opens pages belongs to the tests.
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

from playwright.sync_api import Browser, Page  # noqa: E402
from support.chromium import launched, opened  # noqa: E402
from support.corpus_files import corpus_files  # noqa: E402

import vhlo_tools as vt  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
STEP: Final = ROOT / "examples" / "transformer_step.mlir"
#: The day of the pages, so that a picture changes only if the page does.
TODAY: Final = date(2026, 11, 1)
SIZE: Final = (1360, 900)

Scheme = Literal["light", "dark"]


def to_graph(page: Page) -> None:
    """Show the part of the graph that computes attention, with one op chosen."""
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.get_by_label("Search ops, attributes, types, lines").fill("make_transformer_step.py:54")
    page.get_by_role("region", name="Details of the selected op").get_by_role("button").nth(9).click()
    page.wait_for_selector(".picture .chosen", state="attached")
    page.get_by_label("Search ops, attributes, types, lines").fill("")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("document.getElementById('graph').scrollIntoView({ behavior: 'instant' })")


def to_top(page: Page) -> None:
    """Show the head and the time line."""
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate("scrollTo(0, 0)")


def take(browser: Browser, page: Path, name: str, show: Callable[[Page], None], scheme: Scheme) -> None:
    """Take a picture of a page."""
    with opened(browser, page, scheme=scheme, size=SIZE) as watched:
        show(watched.page)
        watched.page.wait_for_timeout(400)
        watched.page.screenshot(path=IMAGES / f"{name}-{scheme}.png")
        watched.check()


def main() -> int:
    """Make all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, launched() as browser:
        step, store = Path(folder, "step.html"), Path(folder, "store")
        vt.report(STEP, target="jaxlib==0.4.26", name="examples/transformer_step.mlir", as_of=TODAY).save(step)
        store.mkdir()
        for number, (name, data) in enumerate(corpus_files(ordinary=False)):
            if number % 4 == 0:
                (store / name.replace("/", "_")).write_bytes(data)
        of_store = Path(folder, "store.html")
        vt.report(store, name="exports/", as_of=TODAY).save(of_store)
        pictures: tuple[tuple[Path, str, Callable[[Page], None]], ...] = (
            (step, "report", to_top),
            (step, "report-graph", to_graph),
            (of_store, "report-store", to_top),
        )
        for page, name, show in pictures:
            for scheme in ("light", "dark"):
                take(browser, page, name, show, scheme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
