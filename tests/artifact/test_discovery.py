"""Programs in folders: what is taken for one, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus import EXAMPLES

from vhlo_tools.artifact import programs_at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "bytecode").write_bytes((EXAMPLES / "convnet.bc").read_bytes())
    (tmp_path / "a" / "exported.bin").write_bytes((EXAMPLES / "symbolic_export.jax_export").read_bytes())
    (tmp_path / "a" / "b" / "text.mlir").write_text("")
    (tmp_path / "weights.npy").write_bytes(b"\x93NUMPY" + b"\0" * 100)
    (tmp_path / "small").write_bytes(b"\x10\0\0")
    (tmp_path / "numbers").write_bytes(b"\x10\0\0\0" * 50)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "again").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def names(found: object, folder: Path) -> list[str]:
    return [os.path.relpath(each, folder) for each in found]  # type: ignore[attr-defined]


def test_programs_are_known_by_content_or_suffix(folder: Path) -> None:
    expected = ["bytecode", "a/exported.bin", "a/b/text.mlir"]
    assert names(programs_at(str(folder)), folder) == expected
    assert sorted(names(programs_at(str(folder), ordered=False), folder)) == sorted(expected)


def test_what_is_excluded_is_left_out(folder: Path) -> None:
    assert names(programs_at(str(folder), ("b",)), folder) == ["bytecode", "a/exported.bin"]
    assert names(programs_at(str(folder), ("a/*.bin", "byte*")), folder) == ["a/b/text.mlir"]
    assert names(programs_at(str(folder / "**" / "*.mlir"), ()), folder) == ["a/b/text.mlir", "again/b/text.mlir"]


def test_a_file_that_is_named_is_taken_whatever_it_holds(folder: Path) -> None:
    assert names(programs_at(str(folder / "weights.npy"), ("*.npy",)), folder) == ["weights.npy"]
    assert list(programs_at(str(folder / "missing"))) == []
