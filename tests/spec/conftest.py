"""The library, as tests of the specification use it."""

from __future__ import annotations

import pytest
from support.vhlo_library import Vhlo

from vhlo_tools.bindings import Provider


@pytest.fixture(scope="module")
def vhlo(provider: Provider) -> Vhlo:
    return Vhlo(provider)
