"""Snapshots of the parsed specification: equal to what is parsed now, or not used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.specs_folder import OURS

from vhlo_tools.documents import read_toml
from vhlo_tools.spec import data as snapshot

PARSED = {path.relative_to(OURS).as_posix(): read_toml(path.read_bytes()) for path in OURS.rglob("*.toml")}

ENTRY = '[[feature]]\nid = "a"\n'
TABLES = {"features.toml": {"feature": [{"id": "a"}]}}


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file, whose snapshot is kept beside it."""
    monkeypatch.setattr(snapshot, "kept_place", lambda: tmp_path / "kept" / "specs.kept")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "features.toml").write_text(ENTRY)
    return folder


def kept(folder: Path) -> list[Path]:
    return sorted(folder.parent.glob("kept/*"))


def no_parsing(text: bytes) -> Any:
    raise AssertionError("TOML was parsed")


def test_a_snapshot_says_what_the_files_say() -> None:
    files = snapshot.files_below(OURS)
    assert set(files) == set(PARSED)
    scope: dict[str, Any] = {}
    exec(snapshot.snapshot_source(files), scope)
    assert scope["TABLES"] == PARSED
    assert scope["DIGEST"] == snapshot.digest_of(files)


def test_a_second_process_parses_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, json; from vhlo_tools.spec import known_specification; s = known_specification();"
        "print(json.dumps([repr((s.ops, s.types, s.enums, s.features, s.versions)), 'tomllib' in sys.modules]))"
    )
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", code]
    first, second = (
        json.loads(subprocess.run(command, env=usual, capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    )
    assert (first[1], second[1]) == (True, False)
    assert first[0] == second[0]


def test_what_is_kept_is_used(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snapshot.read_tables(specs) == TABLES
    assert len(kept(specs)) == 1
    monkeypatch.setattr("vhlo_tools.documents.read_toml", no_parsing)
    assert snapshot.read_tables(specs) == TABLES


def rewrite(specs: Path) -> None:
    before = (specs / "features.toml").stat()
    (specs / "features.toml").write_text(ENTRY.replace('"a"', '"b"'))
    # Neither the date nor the size tells.
    os.utime(specs / "features.toml", ns=(before.st_atime_ns, before.st_mtime_ns))


def rename(specs: Path) -> None:
    (specs / "features.toml").rename(specs / "others.toml")


def add(specs: Path) -> None:
    (specs / "ops").mkdir()
    (specs / "ops" / "b.toml").write_text("")


@pytest.mark.parametrize("change", [rewrite, rename, add])
def test_files_that_are_others_are_parsed(change: Callable[[Path], None], specs: Path) -> None:
    before = snapshot.read_tables(specs)
    change(specs)
    after = snapshot.read_tables(specs)
    assert after != before
    assert after == {path: read_toml(data) for path, data in snapshot.files_below(specs).items()}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:12],
        lambda data: data[:-100],
        lambda data: b"\0" + data[1:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    ],
    ids=["empty", "head", "cut short", "another Python", "a flipped bit"],
)
def test_a_damaged_one_is_made_again(damage: Callable[[bytes], bytes], specs: Path) -> None:
    snapshot.read_tables(specs)
    (place,) = kept(specs)
    good = place.read_bytes()
    place.write_bytes(damage(good))
    assert snapshot.read_tables(specs) == TABLES
    assert place.read_bytes() == good


def test_where_python_keeps_nothing_nothing_is_kept(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert snapshot.read_tables(specs) == {}
    assert kept(specs) == []


def test_a_folder_that_cannot_be_written_costs_time_only(specs: Path) -> None:
    (specs.parent / "kept").write_text("a file")
    for _ in range(2):
        assert snapshot.read_tables(specs) == TABLES


def test_a_file_that_is_not_toml_is_left_to_whoever_reads_it(specs: Path) -> None:
    (specs / "broken.toml").write_text("= 1")
    assert snapshot.read_tables(specs) == {}
    assert kept(specs) == []


def test_that_of_a_wheel_is_used_while_it_is_true(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = specs.parent / f"{snapshot.SHIPPED}.py"
    made.write_text(snapshot.snapshot_source(snapshot.files_below(specs)))
    package = sys.modules["vhlo_tools.spec"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(specs.parent)])
    monkeypatch.setattr("vhlo_tools.documents.read_toml", no_parsing)
    try:
        assert snapshot.read_tables(specs) == TABLES
        assert kept(specs) == []
        monkeypatch.undo()
        monkeypatch.setattr(snapshot, "kept_place", lambda: None)
        rewrite(specs)
        # What was imported is that of the files as they were.
        assert snapshot.read_tables(specs) == {}
    finally:
        del sys.modules[f"vhlo_tools.spec.{snapshot.SHIPPED}"]
