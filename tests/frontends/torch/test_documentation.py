"""The examples in the documentation that need this framework."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documentation import page_name, pages_with, run_page


@pytest.mark.filterwarnings("ignore:.*treespec, LeafSpec")  # of torch, about itself
@pytest.mark.parametrize("page", pages_with("torch"), ids=page_name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, ("torch",))
