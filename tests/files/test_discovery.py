"""Programs in folders: what is taken for one, and in which order."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.files import Url, objects, programs_at, read_bytes
from vhlo_tools.files.connections import Listed, Stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "bytecode").write_bytes((EXAMPLES / "convnet.bc").read_bytes())
    # A jax.export file that begins with its first table, which refers to the artifact at byte 44.
    exported = struct.pack("<IiI16HI", 4, 4 - 12, 44 - 8, 32, 8, *[0] * 13, 4, 4) + b"ML\xefR"
    (tmp_path / "a" / "compact.bin").write_bytes(exported)
    (tmp_path / "a" / "exported.bin").write_bytes((EXAMPLES / "symbolic_export.jax_export").read_bytes())
    (tmp_path / "a" / "b" / "text.mlir").write_text("")
    (tmp_path / "weights.npy").write_bytes(b"\x93NUMPY" + b"\0" * 100)
    (tmp_path / "small").write_bytes(b"\x10\0\0")
    (tmp_path / "numbers").write_bytes(b"\x10\0\0\0" * 50)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "again").symlink_to(tmp_path / "a")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def names(found: object, folder: Path) -> list[str]:
    return [os.path.relpath(each, folder) for each in found]  # type: ignore[attr-defined]


def test_programs_are_known_by_content_or_suffix(folder: Path) -> None:
    expected = ["bytecode", "a/compact.bin", "a/exported.bin", "a/b/text.mlir"]
    assert names(programs_at(str(folder)), folder) == expected
    assert sorted(names(programs_at(str(folder), ordered=False), folder)) == sorted(expected)


def test_objects_are_known_by_content_or_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is gone by the time it is read is none, as a file would be."""
    held = {"bytecode": (EXAMPLES / "convnet.bc").read_bytes(), "weights": b"\x93NUMPY", "empty": b"", "text.mlir": b""}

    def opened(url: Url, *, head: int) -> bytes:
        if url.name == "gone":
            raise FileNotFoundError(url.name)
        return held[url.name]

    listed = [
        Listed(Url("s3", "b", f"a/{name}"), Stamp(len(held.get(name, b"12345")), "1")) for name in (*held, "gone")
    ]
    monkeypatch.setattr(objects, "stamp_of", lambda url: None)
    monkeypatch.setattr(objects, "objects_under", lambda url: [listed])
    monkeypatch.setattr(objects, "open_object", opened)
    assert list(programs_at("s3://b/a")) == ["s3://b/a/bytecode", "s3://b/a/text.mlir"]


def test_what_is_excluded_is_left_out(folder: Path) -> None:
    assert names(programs_at(str(folder), ("b",)), folder) == ["bytecode", "a/compact.bin", "a/exported.bin"]
    assert names(programs_at(str(folder), ("a/*.bin", "byte*")), folder) == ["a/b/text.mlir"]
    assert names(programs_at(str(folder / "**" / "*.mlir"), ()), folder) == ["a/b/text.mlir", "again/b/text.mlir"]


def test_a_file_that_is_named_is_taken_whatever_it_holds(folder: Path) -> None:
    assert names(programs_at(str(folder / "weights.npy"), ("*.npy",)), folder) == ["weights.npy"]
    assert list(programs_at(str(folder / "missing"))) == []


def test_what_is_no_regular_file_is_skipped_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "real.mlir").write_text("module {}")
    os.mkfifo(tmp_path / "fifo.mlir")
    os.mkfifo(tmp_path / "fifo\n")
    (tmp_path / "zero.mlirbc").symlink_to("/dev/zero")
    (tmp_path / "loop.mlir").symlink_to(tmp_path / "loop.mlir")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / "socket.mlir"))
        assert names(programs_at(str(tmp_path)), tmp_path) == ["real.mlir"]
    said = sorted(each.removeprefix(f"vhlo: skipped {tmp_path}/") for each in caplog.messages)
    assert said == [
        "fifo.mlir: it is a FIFO",
        "fifo\\n: it is a FIFO",
        "loop.mlir: it is a loop of links",
        "socket.mlir: it is a socket",
        "zero.mlirbc: it is a device",
    ]


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Three thousand nested folders, with a program in one of them; pytest could not remove them."""
    try:
        folder = os.open(tmp_path, os.O_RDONLY)
        for depth in range(3000):
            os.mkdir("d", dir_fd=folder)
            below = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
            if depth == 1400:
                os.close(os.open("f.mlir", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        os.close(folder)
        yield tmp_path
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


@pytest.mark.long
def test_deep_folders_are_walked(deep: Path) -> None:
    """Where a path is longer than the system opens, the folder is yielded: opening it says so."""
    found, too_long = programs_at(str(deep))
    assert found.endswith("/d/f.mlir")
    with pytest.raises(OSError, match="File name too long"):
        read_bytes(Path(too_long))


@pytest.mark.parametrize("name", ["fifo", "zero"])
def test_only_regular_files_are_read(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="expected a regular file"):
        read_bytes(tmp_path / name)
    with pytest.raises(OSError, match="expected a regular file"):
        vt.check(tmp_path / name, "1.0.0")


def test_a_pipe_that_is_open_already_is_read() -> None:
    """As `vhlo inspect <(command)` opens one."""
    reading, writing = os.pipe()
    os.write(writing, b"module {}")
    os.close(writing)
    try:
        assert bytes(read_bytes(Path(f"/dev/fd/{reading}"))) == b"module {}"
    finally:
        os.close(reading)
