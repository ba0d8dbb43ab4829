"""Which files are meant, and what becomes of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gate_programs import GOOD, write

import vhlo_tools as vt
from vhlo_tools.errors import SettingsError
from vhlo_tools.gate.evaluation import Gate
from vhlo_tools.gate.settings import Settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.mlir", "kept/b.mlir", "scratch/c.mlir"):
        write(tmp_path / name, GOOD)
    return tmp_path


def files(*paths: str, exclude: tuple[str, ...] = ("scratch",), force_exclude: bool = False) -> list[str]:
    return Gate(Settings(exclude=exclude, force_exclude=force_exclude)).files(paths)


def test_files_are_meant_once_and_in_the_order_in_which_they_are_named() -> None:
    assert files(".") == ["a.mlir", "kept/b.mlir"]
    assert files("kept", "a.mlir", ".", "kept/b.mlir") == ["kept/b.mlir", "a.mlir"]
    assert files("-", "a.mlir") == ["-", "a.mlir"]


def test_what_is_named_outright_is_meant_unless_that_is_what_every_file_is() -> None:
    assert files("scratch/c.mlir") == ["scratch/c.mlir"]
    assert files("scratch/c.mlir", force_exclude=True) == []
    assert files("scratch/*.mlir", exclude=("scratch/",)) == []


def test_paths_that_mean_nothing_are_refused() -> None:
    for path in ("missing", "*.none"):
        with pytest.raises(SettingsError, match="not a file, not a folder with programs, and not a glob"):
            files("a.mlir", path)


@pytest.mark.parametrize(
    ("exclude", "pruned"),
    [
        (("scratch", "build"), ("scratch", "build")),
        # What means more than a name is for whoever knows all of its rules.
        (("scratch/", "*.py", "a/b", "[ab]", "x?"), ()),
        (("scratch", "!scratch/c.mlir"), ()),
    ],
)
def test_folders_that_need_not_be_walked_through(exclude: tuple[str, ...], pruned: tuple[str, ...]) -> None:
    always = Settings().pruned
    assert Settings(exclude=exclude).pruned == (*always, *pruned)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.mlir"), "a.mlir: No such file or directory"),
        (OSError("the device is gone"), "a.mlir: the device is gone"),
        (vt.InvalidProgramError("a.mlir is empty"), "a.mlir is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_answer(error: Exception, message: str) -> None:
    def read(path: str) -> bytes | None:
        if path == "a.mlir":
            raise error
        return None

    bad, good = Gate(Settings(target=("1.9.0",))).answers(["a.mlir", "kept/b.mlir"], read)
    assert (bad.path, bad.error, bad.verdicts) == ("a.mlir", message, ())
    assert (good.path, good.error, len(good.verdicts)) == ("kept/b.mlir", None, 1)
