"""Digests of programs: of bytes, of files, and of the folders of SavedModels."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from vhlo_tools.files.mapping import digest_of, map_file
from vhlo_tools.gate.contents import digest_at


def test_a_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(3 << 20))
    expected = hashlib.sha256(path.read_bytes()).digest()
    assert digest_of(path.read_bytes()) == digest_of(map_file(path)) == digest_at(path) == expected


def test_a_folder_has_the_digest_of_its_names_and_contents(tmp_path: Path) -> None:
    def made(name: str, files: dict[str, bytes]) -> bytes:
        for inner, data in files.items():
            path = tmp_path / name / inner
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return digest_at(tmp_path / name)

    files = {"saved_model.pb": b"graph", "variables/variables.index": b"index", "variables/data": b"weights"}
    first = made("first", files)
    assert made("second", dict(reversed(files.items()))) == first
    assert made("renamed", {("variables/other" if "data" in name else name): files[name] for name in files}) != first
    assert made("changed", files | {"variables/data": b"weights."}) != first
    assert made("more", files | {"assets/words": b""}) != first
    assert made("moved border", {"saved_model.pb": b"graph", "variables/variables.index": b"indexweights"}) != first
    os.utime(tmp_path / "first" / "saved_model.pb", (1, 1))
    assert digest_at(tmp_path / "first") == first
    (tmp_path / "first" / "variables" / "link").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        digest_at(tmp_path / "first")
