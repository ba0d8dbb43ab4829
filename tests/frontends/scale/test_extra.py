"""The extra `distributed`: what it asks for is what is installed, and can be imported."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import requires, version

import pytest
from packaging.requirements import Requirement

NAMED = [Requirement(each) for each in requires("vhlo-tools") or ()]
WANTED = [each for each in NAMED if each.marker and each.marker.evaluate({"extra": "distributed"})]


def test_the_extra_asks_for_packages() -> None:
    assert {each.name for each in WANTED} >= {"dask", "distributed", "pyarrow"}


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_package_is_installed_and_works(wanted: Requirement) -> None:
    assert wanted.specifier.contains(version(wanted.name))
    import_module(wanted.name)
