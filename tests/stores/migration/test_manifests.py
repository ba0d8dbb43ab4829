"""Migration of files with manifests: each moves with its manifest, and none that was changed is moved."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import Manifest, find_manifest, manifest_place

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two files, of which one has a manifest."""
    folder = tmp_path / "store"
    folder.mkdir()
    for name in ("with.mlirbc", "without.mlirbc"):
        vt.serialize(SAXPY, "1.0.0").save(folder / name)
    path = folder / "with.mlirbc"
    Manifest.of(path).save(manifest_place(path))
    return folder


def test_a_manifest_is_migrated_with_its_file(store: Path) -> None:
    path = store / "with.mlirbc"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    records = list(vt.migrate(store, "1.9.0", backup=".orig"))
    assert sorted(Path(each.path).name for each in records) == ["with.mlirbc", "without.mlirbc"]
    assert {each.status for each in records} == {"moved"}
    manifest = Manifest.load(manifest_place(path))
    assert manifest.version == "1.9.0"
    assert manifest.verify(path) == ()
    assert manifest.made is not None
    assert (manifest.made.command, manifest.made.target, manifest.made.source) == ("migrate", "1.9.0", before)
    assert find_manifest(store / "without.mlirbc") is None
    # Nothing else is left behind, and a second run finds programs alone.
    assert {each.status for each in vt.migrate(store, "1.9.0")} == {"current"}


def test_a_file_that_was_changed_is_not_migrated(store: Path) -> None:
    path = store / "with.mlirbc"
    changed = bytes(vt.retarget(path.read_bytes(), "1.1.0"))
    path.write_bytes(changed)
    records = {Path(each.path).name: each for each in vt.migrate(store, "1.9.0")}
    assert records["without.mlirbc"].status == "moved"
    record = records["with.mlirbc"]
    assert record.status == "unreadable"
    assert record.reason is not None
    assert "is not the file that its manifest" in record.reason
    assert path.read_bytes() == changed


def test_results_in_another_folder_have_manifests_too(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(vt.migrate(store, "1.9.0", output_dir=out))
    assert Manifest.load(manifest_place(out / "with.mlirbc")).verify(out / "with.mlirbc") == ()
    assert find_manifest(out / "without.mlirbc") is None
    assert Manifest.load(manifest_place(store / "with.mlirbc")).verify(store / "with.mlirbc") == ()


def test_an_interrupted_migration_leaves_no_wrong_manifest(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store / "with.mlirbc"
    replaced = os.replace

    def stop(part: str, destination: str, **options: Any) -> None:
        if Path(destination).name == path.name:
            assert find_manifest(path) is None
            replaced(part, destination, **options)
            raise KeyboardInterrupt
        replaced(part, destination, **options)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        list(vt.migrate(store, "1.9.0"))
    monkeypatch.undo()
    assert find_manifest(path) is None
    list(vt.migrate(store, "1.9.0"))
    assert str(vt.open_artifact(path).version) == "1.9.0"
    found = find_manifest(path)
    assert found is None or Manifest.load(found).verify(path) == ()


def test_a_store_has_its_programs_alone(store: Path) -> None:
    (store / "with.mlirbc.sig").write_text("{}")
    assert sorted(Path(each.path).name for each in vt.store_status(store)) == ["with.mlirbc", "without.mlirbc"]
