"""Migrations of stores behind URLs, in real servers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.store_buckets import Bucket
from support.store_servers import SERVERS

import vhlo_tools as vt
from vhlo_tools.api.stores import MIGRATION_TOOLS
from vhlo_tools.cli.main import main
from vhlo_tools.files import Url, metadata_of, objects_under, open_object, stamp_of, write_object
from vhlo_tools.stores import Journal, MigrationSettings
from vhlo_tools.stores.migration_files import found_at
from vhlo_tools.stores.migration_work import Work

FROM, TARGET = "1.9.0", "1.1.0"
#: Stores whose servers honour the conditions of writes.
CONDITIONAL = (*(kind for kind, server in SERVERS.items() if server.keeps_conditions), "memory")


@pytest.fixture(params=CONDITIONAL)
def store(request: pytest.FixtureRequest, make_bucket: Callable[[str], Bucket]) -> Bucket:
    return make_bucket(request.param)


def filled(store: Bucket, number: int = 6) -> dict[str, str]:
    """Write artifacts, one of which cannot be at the target; return the SHA-256 of each object after its migration."""
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", FROM)
    expected = {}
    for index in range(number):
        url = store / f"folder {index % 2}/{index}.mlirbc"
        artifact.save(str(url))
        expected[str(url)] = sha(bytes(vt.retarget(artifact, TARGET)))
    tan = vt.serialize(FEATURES / "tan.mlir", FROM)
    tan.save(str(store / "tan.mlirbc"))
    return expected | {str(store / "tan.mlirbc"): sha(bytes(tan))}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def found_in(store: Bucket) -> dict[str, str]:
    """Return the SHA-256 of all objects, hidden ones too."""
    urls = [each.url for page in objects_under(store.url) for each in page]
    return {str(url): sha(bytes(open_object(url))) for url in urls}


def statuses(records: Any) -> dict[str, str]:
    return {each.path: each.status for each in records}


def test_objects_are_replaced_and_say_what_they_were(store: Bucket) -> None:
    expected = filled(store)
    before = found_in(store)
    records = {each.path: each for each in vt.migrate(str(store.url), TARGET)}
    assert found_in(store) == expected
    assert {each.status for path, each in records.items() if "tan" not in path} == {"moved"}
    assert records[str(store / "tan.mlirbc")].status == "blocked"
    for path, record in records.items():
        assert (record.digest, record.new_digest or record.digest) == (before[path], expected[path])
    moved = store / "folder 0/0.mlirbc"
    # Google's store says nothing of it with the bytes.
    there = stamp_of(moved)
    assert there is not None
    assert metadata_of(there)["vhlobefore"] == before[str(moved)]
    assert set(statuses(vt.migrate(str(store.url), TARGET)).values()) == {"current", "blocked"}


def test_other_programs_and_other_places(store: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_object(store / "in/text.mlir", [(EXAMPLES / "saxpy.mlir").read_bytes()])
    write_object(store / "in/gelu.jax_export", [(EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes()])
    write_object(store / "in/torn.mlirbc", [bytes(vt.serialize(EXAMPLES / "saxpy.mlir", FROM))[:60]])
    found = statuses(vt.migrate(str(store / "in/"), "1.7.0", output_dir=str(store / "out")))
    assert {path.rpartition("/")[2]: status for path, status in found.items()} == {
        "text.mlir": "moved",
        "gelu.jax_export": "moved",
        "torn.mlirbc": "unreadable",
    }
    assert vt.open_artifact(str(store / "out/text.mlirbc")).version == vt.Version("1.7.0")
    # From a store to this machine, and back; a glob, and a single object.
    assert main(["migrate", f"{store.url}out/*", "--target", "1.8.0", "--output-dir", str(tmp_path / "here")]) == 0
    assert {each.name for each in (tmp_path / "here").iterdir()} == {"text.mlirbc", "gelu.jax_export"}
    assert main(["migrate", str(tmp_path / "here"), "--target", "1.9.0", "--output-dir", str(store / "back")]) == 0
    assert vt.open_artifact(str(store / "back/text.mlirbc")).version == vt.Version("1.9.0")
    report = store / "report.json"
    command = ["migrate", str(store / "back/text.mlirbc"), "--target", "1.7.0", "--output-format", "json"]
    assert main([*command, "-o", str(report)]) == 0
    assert [each["status"] for each in json.loads(bytes(open_object(report)))["files"]] == ["moved"]
    # Text beside which another object stands.
    write_object(store / "in/text.mlirbc", [b"MLIR of somebody else"])
    again = statuses(vt.migrate(str(store / "in/text.mlir"), "1.7.0"))
    assert again == {str(store / "in/text.mlir"): "blocked"}
    assert statuses(vt.plan_migration(str(store / "in/text.mlir"), "1.7.0")) == again
    assert open_object(store / "in/text.mlirbc") == b"MLIR of somebody else"
    assert set(statuses(vt.migrate(str(store / "in/text.mlir"), "1.7.0", force=True)).values()) == {"moved"}
    for done in (vt.migrate, vt.plan_migration):
        assert set(statuses(done(str(store / "in/text.mlir"), "1.7.0")).values()) == {"current"}


def test_a_dry_run_writes_nothing(store: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    filled(store)
    before = found_in(store)
    assert main(["migrate", str(store.url), "--target", TARGET, "--dry-run"]) == 1
    assert found_in(store) == before


@pytest.mark.parametrize("left", [1, 3, 6])
def test_another_client_resumes(store: Bucket, left: int) -> None:
    """What became of an object before, the object says."""
    expected = filled(store)
    before = found_in(store)
    list(islice(vt.migrate(str(store.url), TARGET), left))
    claim = store.url / ".vhlo-migration"
    assert stamp_of(claim) is not None
    with pytest.raises(vt.MigrationError, match="unfinished migration with other settings"):
        list(vt.migrate(str(store.url), "1.2.0"))
    records = {each.path: each for each in vt.migrate(str(store.url), TARGET)}
    assert found_in(store) == expected
    assert {path: each.digest for path, each in records.items()} == before
    assert {each.status for each in records.values()} == {"moved", "blocked"}


def test_two_clients_at_once(store: Bucket) -> None:
    filled(store)
    claim = store.url / ".vhlo-migration"
    running = vt.migrate(str(store.url), TARGET)
    next(running)
    claimed = json.loads(bytes(open_object(claim)))
    # As another machine sees it.
    write_object(claim, [json.dumps({**claimed, "client": "elsewhere:1"}).encode()], force=True)
    with pytest.raises(vt.MigrationError, match="in use by another migration, of the client elsewhere:1"):
        list(vt.migrate(str(store.url), TARGET))
    with pytest.raises(vt.MigrationError, match="in use by another migration"):
        list(vt.migrate(str(store.url), TARGET, restart=True))
    del running  # which ends it
    # It is not ours to remove.
    assert json.loads(bytes(open_object(claim)))["client"] == "elsewhere:1"
    write_object(claim, [json.dumps({**claimed, "client": "elsewhere:1", "seen": 0.0}).encode()], force=True)
    assert set(statuses(vt.migrate(str(store.url), TARGET)).values()) == {"moved", "blocked"}
    assert stamp_of(claim) is None


def test_a_claim_that_is_none(store: Bucket) -> None:
    expected = filled(store)
    write_object(store.url / ".vhlo-migration", [b"[]"])
    with pytest.raises(vt.MigrationError, match=r"is not the claim of a migration .*--restart"):
        list(vt.migrate(str(store.url), TARGET))
    list(vt.migrate(str(store.url), TARGET, restart=True))
    assert found_in(store) == expected


def test_an_object_that_somebody_replaces_is_left_to_them(store: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, 1)
    url = store / "folder 0/0.mlirbc"

    def slow(*args: Any, **options: Any) -> Any:
        found = vt.retarget(*args, **options)
        write_object(url, [b"of somebody else"], force=True)
        return found

    monkeypatch.setattr("vhlo_tools.api.stores.retarget", slow)
    found = statuses(vt.migrate(str(url), TARGET))
    assert found == {str(url): "changed"}
    assert open_object(url) == b"of somebody else"


@pytest.mark.parametrize("moment", ["before it is read again", "before it is written again"])
@pytest.mark.parametrize("name", ["0.mlirbc", "text.mlir"])
def test_work_that_was_done_without_an_answer(store: Bucket, name: str, moment: str) -> None:
    """A worker is lost after it has written a result, or goes on beside the one that does its work again."""
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", FROM)
    data = (EXAMPLES / "saxpy.mlir").read_bytes() if name == "text.mlir" else bytes(artifact)
    write_object(store / name, [data])
    settings = MigrationSettings((str(store.url),), vt.Version(TARGET), backup=".bak")
    with Journal(None, settings) as journal:
        (task,) = journal.add(list(found_at(settings)))
        done = Work(settings, MIGRATION_TOOLS, "0123abcd", 1, dry=False)
        if moment == "before it is read again":
            (first,) = done([task])
        else:
            answers: list[Any] = []
            patch = pytest.MonkeyPatch()

            def other(*arguments: Any, **options: Any) -> Any:
                patch.undo()
                answers.append(done([task])[0])
                return real(*arguments, **options)

            tool = "serialize" if name == "text.mlir" else "retarget"
            real = getattr(vt, tool)
            patch.setattr(f"vhlo_tools.api.stores.{tool}", other)
        (again,) = done([task])
    if moment == "before it is written again":
        (first,) = answers
    assert first.record.status == again.record.status == "moved"
    assert (first.record.digest, first.record.new_digest) == (again.record.digest, again.record.new_digest)
    assert (first.record.new_size, first.record.backup) == (again.record.new_size, again.record.backup)


def test_backups(store: Bucket) -> None:
    expected = filled(store, 2)
    before = found_in(store)
    records = [each for each in vt.migrate(str(store.url), TARGET, backup=".bak") if each.status == "moved"]
    assert {each.backup for each in records} == {f"{each.path}.bak" for each in records}
    kept = {f"{path}.bak": digest for path, digest in before.items() if "tan" not in path}
    assert found_in(store) == expected | kept


def test_a_local_journal(store: Bucket, tmp_path: Path) -> None:
    expected = filled(store)
    journal = tmp_path / "journal"
    list(islice(vt.migrate(str(store.url), TARGET, journal=journal), 2))
    assert stamp_of(store.url / ".vhlo-migration") is None
    records = statuses(vt.migrate(str(store.url), TARGET, journal=journal))
    assert set(records.values()) == {"moved", "blocked"}
    assert found_in(store) == expected


def test_verified(store: Bucket) -> None:
    filled(store, 1)
    records = [each for each in vt.migrate(str(store.url), TARGET, verify=True) if each.status == "moved"]
    assert [each.verified for each in records] == ["same program"]


@pytest.mark.usefixtures("pauses")
def test_one_request_in_ten_fails(store: Bucket) -> None:
    expected = filled(store, 20)
    store.faults.every = 10
    records = statuses(vt.migrate(str(store.url), TARGET))
    store.faults.every = 0
    assert set(records.values()) == {"moved", "blocked"}
    assert found_in(store) == expected


def test_a_store_without_conditions_is_not_changed(make_bucket: Callable[[str], Bucket]) -> None:
    store = make_bucket("gcs")
    if store.keeps_conditions:
        pytest.skip("Google's testbench honours conditions: see `store_servers`")
    filled(store, 1)
    before = found_in(store)
    (record,) = vt.migrate(str(store / "folder 0/0.mlirbc"), TARGET)
    assert record.status == "failed"
    assert "ignores the conditions of writes" in (record.reason or "")
    assert found_in(store) == before


def test_a_prefix_without_programs(store: Bucket) -> None:
    with pytest.raises(vt.MigrationError, match="no prefix or glob of objects that are programs"):
        list(vt.migrate(str(store / "nothing/"), TARGET))
    assert not found_in(store)


def test_the_status_of_a_store(store: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    filled(store, 2)
    assert main(["store", "status", str(store.url), "--as-of", "2026-08-01"]) == 0
    assert {each.path for each in vt.store_status(str(store.url))} == set(found_in(store))


def test_old_versions_are_named(make_bucket: Callable[[str], Bucket]) -> None:
    store = make_bucket("s3")
    import boto3

    client = boto3.client("s3")
    client.put_bucket_versioning(Bucket=store.url.bucket, VersioningConfiguration={"Status": "Enabled"})
    filled(store, 1)
    url = store / "folder 0/0.mlirbc"
    before = bytes(open_object(url))
    (record,) = vt.migrate(str(url), TARGET)
    assert record.old_version
    kept = client.get_object(Bucket=url.bucket, Key=url.key, VersionId=record.old_version)
    assert kept["Body"].read() == before
    assert isinstance(url, Url)
