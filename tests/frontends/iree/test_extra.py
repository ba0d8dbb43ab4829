"""The extra `iree`: what it asks for is what is installed, and can be imported."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import iree_version, require_iree
from vhlo_tools.spec import known_releases

PACKAGES = {"iree-base-compiler": "iree.compiler", "iree-base-runtime": "iree.runtime"}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_installed_and_works(package: str) -> None:
    assert tuple(map(int, version(package).split(".")[:2])) >= (3, 13)
    import_module(PACKAGES[package])
    require_iree()


def test_compiler_and_runtime_are_of_one_release() -> None:
    assert len({version(package) for package in PACKAGES}) == 1


def test_the_version_of_stablehlo_is_that_of_the_release() -> None:
    known = {each.release: each.stablehlo for each in known_releases() if each.package == "iree-base-compiler"}
    assert iree_version() == known.get(version("iree-base-compiler"), max(known.values()))


def test_auto_never_chooses_it(saxpy: str) -> None:
    execution = vt.load_executable(saxpy).execute([2, [1, 2, 3, 4], [1, 1, 1, 1]])
    assert execution.report.engine == "reference"
