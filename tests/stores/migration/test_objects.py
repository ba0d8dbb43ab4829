"""Migrations of objects, without a store; those with one are tested in tests/frontends/scale."""

from __future__ import annotations

from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.files import Kind, Stamp, Url
from vhlo_tools.files.connections import Listed
from vhlo_tools.stores import MigrationSettings, claim, migration_files
from vhlo_tools.stores.claim import StoreLease
from vhlo_tools.stores.journal import NAME
from vhlo_tools.stores.migration_files import found_at

FOLDER, WRITTEN = Url("s3", "bucket", "in/"), Stamp(5, "1")
SETTINGS = MigrationSettings((str(FOLDER),), vt.Version("1.13.0"), output_dir=f"{FOLDER}out")


def test_results_are_not_met_among_the_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [Listed(FOLDER.with_key(f"in/{name}.mlirbc"), WRITTEN) for name in ("a", "out/a", "z")]
    monkeypatch.setattr(migration_files, "objects_at", lambda *_: listed)
    monkeypatch.setattr(migration_files, "look_at", lambda _: (Kind.PORTABLE_ARTIFACT, vt.Version("1.9.0")))
    found = [(each.source, each.destination) for each in found_at(SETTINGS)]
    assert found == [(f"{FOLDER}{name}.mlirbc", f"{FOLDER}out/{name}.mlirbc") for name in ("a", "z")]


def test_the_claim_of_a_complete_migration_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = []

    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(claim, "read_object", missing)
    monkeypatch.setattr(claim, "write_object", lambda *_, **__: WRITTEN)
    monkeypatch.setattr(claim, "delete_object", lambda url, replaces: deleted.append((url, replaces)))
    lease = StoreLease(FOLDER, SETTINGS)
    for _ in range(2):
        lease.release()
    assert deleted == [(FOLDER / NAME, WRITTEN)]
