"""Bytes from files and from whatever holds bytes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.files.atomic_writes import write_atomically
from vhlo_tools.files.mapping import FileRange, slices, view
from vhlo_tools.files.recognition import as_bytes, read_bytes


@pytest.mark.parametrize("size", [0, 1, (1 << 24) - 1, 1 << 24, (1 << 24) + 1])
def test_files_of_any_size(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    found = read_bytes(path)
    assert bytes(found) == b"x" * size
    assert isinstance(found, FileRange) == (size >= 1 << 24)


LARGE = 65 << 20


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(bytes(range(256)))
        file.truncate(LARGE)
    return path


def cut_short(path: Path, size: int) -> None:
    """Cut a file short in another process."""
    subprocess.run([sys.executable, "-c", f"import os; os.truncate({str(path)!r}, {size})"], check=True)


def test_a_large_file_is_a_range(large: Path) -> None:
    whole = read_bytes(large)
    assert isinstance(whole, FileRange)
    assert len(whole) == LARGE
    assert (whole[0], whole[255], whole[-1]) == (0, 255, 0)
    assert bytes(whole[10:20]) == bytes(range(10, 20))
    tail = whole[200:]
    assert isinstance(tail, FileRange)
    assert bytes(tail[:56]) == bytes(range(200, 256))
    assert tail[:-1] == whole[200:-1]
    assert tail != whole[200:-1]
    assert whole[1:] != whole[:-1]
    assert bytes(whole[5:3]) == b""
    with pytest.raises(IndexError):
        whole[LARGE]
    with pytest.raises(ValueError, match="steps"):
        whole[::2]
    assert hashlib.sha256(bytes(whole)).digest() == hashlib.sha256(large.read_bytes()).digest()


def test_a_file_that_is_cut_short_while_it_is_open(large: Path, tmp_path: Path) -> None:
    whole = read_bytes(large)
    cut_short(large, 1 << 20)
    message = rf"large was cut short while it was read: it had {LARGE} bytes and now has {1 << 20}"
    for read in (
        bytes,
        lambda data: data[-1],
        lambda data: bytes(data[2 << 20 : 40 << 20]),
        lambda data: list(slices(data)),
    ):
        with pytest.raises(vt.MalformedArtifactError, match=message):
            read(view(whole))
    with pytest.raises(vt.MalformedArtifactError, match=message):
        write_atomically(tmp_path / "copy", [view(whole)])
    assert not (tmp_path / "copy").exists()


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_bytes_stay_what_they_are() -> None:
    for data in (b"abcd", bytearray(b"abcd"), memoryview(b"abcd")):
        assert as_bytes(data) is data


@pytest.mark.parametrize(
    "view",
    [
        np.array([1, 2], np.int16).data,
        np.array([[1, 2], [3, 4]], np.uint8).data,
        np.array([1, 2, 3, 4], np.int8).data,
        memoryview(b"a.b.c.")[::2],
        np.arange(12, dtype=np.int32).reshape(3, 4).data[::2],
    ],
    ids=["numbers", "two dimensions", "with a sign", "gaps", "both"],
)
def test_other_views_become_single_bytes(view: memoryview) -> None:
    found = as_bytes(view)
    assert len(found) == view.nbytes
    assert [found[at] for at in range(len(found))] == list(view.tobytes())
