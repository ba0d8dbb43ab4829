"""Pages made once, and a browser that opens them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.chromium import launched

import vhlo_tools as vt

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without network."""
    with launched() as found:
        yield found


@pytest.fixture(scope="session")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a training step of 640 ops."""
    path = tmp_path_factory.mktemp("pages") / "step.html"
    vt.report(ROOT / "examples" / "transformer_step.mlir", name="transformer_step.mlir").save(path)
    return path
