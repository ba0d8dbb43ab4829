"""The examples in the documentation that need this framework."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documentation import page_name, pages_with, run_page

#: What Keras itself does to read tensors of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


@pytest.mark.parametrize("page", pages_with("keras"), ids=page_name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, ("keras",))
