"""Pages opened in a headless Chromium that has no network, watched, and asked by axe-core for what shuts readers out.

Needs the dependency group ``browser-test``, Chromium (``scripts/find_chromium.py`` finds or installs it) and, for
``violations_of``, npm, which fetches axe-core into the cache once.
"""

from __future__ import annotations

import atexit
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from find_chromium import install_chromium
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from support.npm_packages import npm_file

AXE: Final = "axe-core@4.14.1"
#: Addresses that stay on this machine.
LOCAL: Final = ("file:", "data:", "blob:", "about:")
#: No sandbox, for root has none; what is opened are our own pages. No host has an address, whatever a page asks for.
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu")


@dataclass(slots=True)
class WatchedPage:
    """A page, and what went wrong in it."""

    page: Page  # the page, as playwright has it
    #: errors in the console, exceptions that no one caught, and files that were not there
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # addresses outside this machine that the page asked for

    def check(self) -> None:
        """Fail if anything went wrong so far, or anything was asked of the network."""
        assert self.errors == [], self.errors
        assert self.foreign == [], self.foreign


@contextmanager
def launched(*hosts: str) -> Iterator[Browser]:
    """Launch Chromium: give the browser, and close it at the end.

    Args:
        hosts: The hosts that pages can reach: servers on this machine; by default none.
    """
    program = install_chromium()
    rules = ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in hosts)])
    arguments = [*ARGUMENTS, f"--host-resolver-rules={rules}"]
    browser = _playwright().chromium.launch(executable_path=str(program), args=arguments)
    try:
        yield browser
    finally:
        browser.close()


@cache
def _playwright() -> Playwright:
    """Return the one driver of this process: while a browser of one is open, there can be no other."""
    playwright = sync_playwright().start()
    atexit.register(playwright.stop)
    return playwright


@contextmanager
def opened(
    browser: Browser,
    address: str | Path,
    *,
    scheme: Literal["light", "dark"] = "light",
    size: tuple[int, int] = (1280, 900),
) -> Iterator[WatchedPage]:
    """Open a page in a context of its own: without network, in a colour scheme, watched from the first request.

    Args:
        browser: What ``launched`` gives.
        address: The file, or its address, which may have an anchor; or that of a page of a server on this machine, of
            which the page may then ask.
        scheme: What the reader prefers.
        size: The window, in CSS pixels: width and height.
    """
    text = address.resolve().as_uri() if isinstance(address, Path) else address
    server = re.match(r"http://[^/]+/", text)
    own = (*LOCAL, server[0]) if server else LOCAL
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": size[0], "height": size[1]}, accept_downloads=True, offline=not server
    )
    try:
        page = context.new_page()
        watched = WatchedPage(page)
        page.on("console", lambda said: watched.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("requestfailed", lambda asked: watched.errors.append(f"{asked.url}: {asked.failure}"))
        page.on("request", lambda asked: None if asked.url.startswith(own) else watched.foreign.append(asked.url))
        page.goto(text)
        yield watched
    finally:
        context.close()


@cache
def axe_source() -> str:
    """Return the source of axe-core, fetched with npm into the cache of environments once."""
    return npm_file(AXE, "axe.min.js").read_text(encoding="utf-8")


def violations_of(page: Page, options: Mapping[str, Any] | None = None) -> list[str]:
    """Return what axe-core finds on a page: a line for each violation and element, with the rule that it breaks.

    Args:
        page: The page.
        options: What ``axe.run`` takes, such as ``{"rules": {...}}``; by default all rules that axe has on.
    """
    page.evaluate(axe_source())
    # It would ask for the stylesheets again, which pages from disk may not.
    found = page.evaluate(f"axe.run(document, {json.dumps({'preload': False, **(options or {})})})")
    return [
        f"{violation['id']} ({violation['impact']}): {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
