"""The engine `iree` where IREE is not installed: the error says what to install, and nothing else chooses it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import iree_version
from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_releases

MESSAGE = r"the engine iree needs .*, which (is|are) not installed: pip install '\.\[iree\]' in a clone of vhlo_tools"

pytestmark = pytest.mark.skipif(find_spec("iree") is not None, reason="IREE is installed here")


def test_running(saxpy: str) -> None:
    with pytest.raises(vt.MissingExtraError, match=MESSAGE):
        vt.run(saxpy, [2, [1, 2, 3, 4], [1, 1, 1, 1]], engine="iree")


def test_comparing(saxpy: str) -> None:
    with pytest.raises(vt.MissingExtraError, match=MESSAGE):
        vt.verify(saxpy, saxpy, engines=["reference", "xla", "iree"])


def test_several_devices(saxpy: str) -> None:
    with pytest.raises(vt.EngineError, match="the engine iree runs programs on one device"):
        vt.load_parallel_executable(saxpy, replicas=2, engine="iree")


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "examples/saxpy.mlir", "-i", "2", "--engine", "iree"]) == 2
    said = capsys.readouterr().err
    assert "pip install '.[iree]' in a clone of vhlo_tools" in said
    assert "Traceback" not in said


def test_the_newest_known_release_is_assumed() -> None:
    releases = [each for each in known_releases() if each.package == "iree-base-compiler"]
    assert iree_version() == releases[-1].stablehlo
