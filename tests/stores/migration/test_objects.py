"""Migrations of objects, without a store; those with one are tested in tests/frontends/scale."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.api.stores import MIGRATION_TOOLS
from vhlo_tools.errors import ObjectChangedError
from vhlo_tools.files import Kind, Stamp as ObjectStamp, Url
from vhlo_tools.files.connections import Listed
from vhlo_tools.stores import MigrationSettings, claim, migration_files, migration_work
from vhlo_tools.stores.claim import StoreLease
from vhlo_tools.stores.journal import NAME, Task
from vhlo_tools.stores.members import Stamp
from vhlo_tools.stores.migration_files import FoundFile, found_at
from vhlo_tools.stores.migration_records import ObjectResult
from vhlo_tools.stores.migration_work import Work

FOLDER, WRITTEN = Url("s3", "bucket", "in/"), ObjectStamp(5, "1")
SOURCE, OLD = f"{FOLDER}a.mlirbc", bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0"))
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


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    there = ObjectStamp(len(OLD), "1")
    monkeypatch.setattr(migration_work, "_read", lambda *_: (Kind.PORTABLE_ARTIFACT, OLD, there))
    return Task(1, FoundFile(SOURCE, SOURCE, SOURCE, Stamp.of_object(there)))


def worked(task: Task, backup: str | None = None) -> vt.MigrationRecord:
    settings = MigrationSettings((str(FOLDER),), SETTINGS.target, backup=backup)
    (prepared,) = Work(settings, MIGRATION_TOOLS, "key", 1, dry=False)([task])
    return prepared.record


def test_old_objects_are_kept_on_request(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setattr(migration_work, "keep_object", lambda backup, data: kept.append((backup, bytes(data))))
    monkeypatch.setattr(ObjectResult, "write", lambda *_, **__: None)
    for backup, expected in ((None, None), (".orig", f"{SOURCE}.orig")):
        record = worked(task, backup)
        assert (record.status, record.backup) == ("moved", expected)
    assert kept == [(f"{SOURCE}.orig", OLD)]


@pytest.mark.parametrize(("read", "status"), [(OLD, "moved"), (b"another", "changed")])
def test_an_object_that_is_the_result_already_was_written_by_a_worker(
    read: bytes, status: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose answer was lost; it says what it has read."""

    def changed(*_: Any, **__: Any) -> None:
        raise ObjectChangedError(SOURCE)

    monkeypatch.setattr(ObjectResult, "write", changed)
    monkeypatch.setattr(migration_work, "digest_of_source", lambda *_: sha256(read).hexdigest())
    new = sha256(bytes(vt.retarget(OLD, SETTINGS.target))).hexdigest()
    monkeypatch.setattr(migration_work, "hash_at", lambda _: new)
    assert worked(task).status == status
