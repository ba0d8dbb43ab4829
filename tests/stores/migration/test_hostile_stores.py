"""Stores with links that lead elsewhere, journals that are damaged or older, and what killed runs have left."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from support.plain_permissions import PLAIN
from support.vhlo_process import warm_python

import vhlo_tools as vt
import vhlo_tools.stores.migration
import vhlo_tools.stores.migration_files
import vhlo_tools.stores.migration_work
from vhlo_tools import system
from vhlo_tools.artifact import Manifest
from vhlo_tools.cli.main import main
from vhlo_tools.files import Kind
from vhlo_tools.stores import Journal, MigrationRecord, MigrationSettings

pytestmark = pytest.mark.usefixtures("kept")

TARGET = vt.Version("1.0.0")
PROGRAM = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of one artifact, with another one outside of it."""
    folder, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    for path in (folder / "a.mlirbc", elsewhere / "b.mlirbc"):
        vt.serialize(PROGRAM, "1.9.0").save(path)
    return folder


def versions(store: Path) -> dict[str, str]:
    return {each.name: str(vt.open_artifact(each).version) for each in sorted(store.parent.glob("*/*.mlirbc"))}


@pytest.mark.parametrize("dry", [True, False])
def test_a_link_out_of_the_store(store: Path, dry: bool, capsys: pytest.CaptureFixture[str]) -> None:
    outside = store.parent / "elsewhere/b.mlirbc"
    (store / "b.mlirbc").symlink_to(outside)
    (store / "same.mlirbc").symlink_to("a.mlirbc")
    command = ["migrate", str(store), "--target", "1.0.0", "-j", "1", *["--dry-run"] * dry]
    assert main(command) == 1
    said = capsys.readouterr().out
    assert f"b.mlirbc (a link to {outside})" in said
    assert f"a link leads to {outside}, outside of what is migrated: --follow-outside" in said
    assert versions(store)["b.mlirbc"] == "1.9.0"
    assert vt.open_artifact(outside).version == vt.Version("1.9.0")
    assert main([*command, "--format", "json"]) == 1
    found = {Path(each["path"]).name: each for each in json.loads(capsys.readouterr().out)["files"]}
    assert (found["b.mlirbc"]["status"], found["b.mlirbc"]["leads_to"]) == ("blocked", str(outside))
    assert sorted(each["status"] for each in found.values() if each["leads_to"] != str(outside)) == [
        "move" if dry else "current"
    ]
    assert main([*command, "--no-follow"]) == 0
    assert "b.mlirbc" not in capsys.readouterr().out
    assert vt.open_artifact(outside).version == vt.Version("1.9.0")
    assert main([*command, "--follow-outside"]) == 0
    assert vt.open_artifact(outside).version == vt.Version("1.9.0" if dry else "1.0.0")
    assert (store / "b.mlirbc").is_symlink()


def test_a_link_that_is_named_is_followed(store: Path) -> None:
    (store / "b.mlirbc").symlink_to(store.parent / "elsewhere/b.mlirbc")
    (record,) = vt.migrate(store / "b.mlirbc", TARGET)
    assert record.status == "moved"
    assert versions(store) == {"a.mlirbc": "1.9.0", "b.mlirbc": "1.0.0"}


@pytest.mark.parametrize("order", [1, -1])
def test_a_link_to_another_path_of_the_migration_is_followed(store: Path, order: int) -> None:
    (store / "b.mlirbc").symlink_to(store.parent / "elsewhere/b.mlirbc")
    records = list(vt.migrate([store, store.parent / "elsewhere"][::order], TARGET))
    assert [each.status for each in records] == ["moved", "moved"]


def test_a_program_beside_which_a_result_would_be_outside(store: Path) -> None:
    program = store.parent / "elsewhere/p.mlir"
    program.write_text(PROGRAM)
    (store / "p.mlir").symlink_to(program)
    records = {Path(each.path).name: each for each in vt.migrate(store, TARGET)}
    assert records["p.mlir"].status == "blocked"
    assert not program.with_suffix(".mlirbc").exists()
    # With an output folder, nothing is written outside of that.
    records = {Path(each.path).name: each for each in vt.migrate(store, TARGET, output_dir=store.parent / "out")}
    assert records["p.mlir"].status == "moved"
    assert (store.parent / "out/p.mlirbc").exists()


def test_an_output_folder_with_a_link_out_of_it(store: Path) -> None:
    out = store.parent / "out"
    out.mkdir()
    (out / "a.mlirbc").symlink_to(store.parent / "elsewhere/new.mlirbc")
    (record,) = vt.migrate(store, TARGET, output_dir=out, force=True)
    assert record.status == "blocked"
    assert "elsewhere/new.mlirbc, outside of what is migrated" in str(record.reason)
    assert not (store.parent / "elsewhere/new.mlirbc").exists()


def journal_of(store: Path) -> Path:
    """Return the journal of an interrupted migration of the store."""
    path = store / ".vhlo-migration"
    with Journal(str(path), MigrationSettings((str(store),), TARGET)):
        pass
    return path


def edit(path: Path, command: str) -> None:
    database = sqlite3.connect(path)
    with database:
        database.executescript(command)
    database.close()


def add_row(journal: Path, source: Path, destination: Path, state: int = 0) -> None:
    """Let a journal say that a file is to be migrated to a destination."""
    stamp = source.stat()
    record = json.dumps(MigrationRecord(str(source), "moved", TARGET, Kind.PORTABLE_ARTIFACT, TARGET, 9).as_json())
    row = {
        "id": 7,
        "kind": "portable-artifact",
        "version": "1.9.0",
        "state": state,
        "record": record,
        "path": os.fsencode(source),
        "source": os.fsencode(source),
        "destination": os.fsencode(destination),
        "size": stamp.st_size,
        "modified": stamp.st_mtime_ns,
        "inode": stamp.st_ino,
        "is_link": 0,
        "is_outside": 0,
    }
    database = sqlite3.connect(journal)
    with database:
        places = ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT OR REPLACE INTO files ({', '.join(row)}) VALUES ({places})", row)
    database.close()


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("elsewhere/b.mlirbc", "elsewhere/b.mlirbc"),
        ("elsewhere/b.mlirbc", "store/new.mlirbc"),
        ("store/a.mlirbc", "elsewhere/b.mlirbc"),
        ("store/a.mlirbc", "elsewhere/new.mlirbc"),
    ],
)
@pytest.mark.parametrize("state", [0, 1])
def test_a_journal_that_leads_out_of_the_store(source: str, destination: str, state: int, store: Path) -> None:
    folder = store.parent
    add_row(journal_of(store), folder / source, folder / destination, state)
    # Of a result that an interrupted run left there.
    with Journal(str(store / ".vhlo-migration"), MigrationSettings((str(store),), TARGET)) as journal:
        part = (folder / destination).parent / f".vhlo-{journal.key}-1-7.part"
    part.write_bytes(b"half")
    records = list(vt.migrate(store, TARGET, jobs=1))
    assert "outside of what is migrated" in str(next(each.reason for each in records if each.status == "blocked"))
    assert versions(store) == {"a.mlirbc": "1.0.0", "b.mlirbc": "1.9.0"}
    assert part.exists() == (part.parent != store)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE files RENAME COLUMN record TO other",
        "ALTER TABLE files RENAME COLUMN version TO other",
        "UPDATE files SET kind = CAST(x'ff' AS TEXT)",
        "CREATE TRIGGER t BEFORE UPDATE ON files BEGIN SELECT RAISE(ABORT, 'x'); END",
    ],
)
def test_tables_that_are_none_of_ours(change: str, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = journal_of(store)
    add_row(path, store / "a.mlirbc", store / "a.mlirbc", 1)
    edit(path, change)
    assert main(["migrate", str(store), "--target", "1.0.0", "-j", "1"]) in (1, 2)
    said = capsys.readouterr().err
    assert "journal" in said
    assert versions(store)["b.mlirbc"] == "1.9.0"


@pytest.mark.parametrize(
    ("name", "value"), [("key", "x/../../elsewhere/y"), ("key", "0123ABCD"), ("run", "1000000000000"), ("run", "-1")]
)
def test_a_journal_whose_header_is_none_of_ours(name: str, value: str, store: Path) -> None:
    path = journal_of(store)
    edit(path, f"UPDATE header SET value = '{value}' WHERE name = '{name}'")
    with pytest.raises(vt.MigrationError, match="is damaged .*--restart"):
        list(vt.migrate(store, TARGET, jobs=1))
    (record,) = vt.migrate(store, TARGET, jobs=1, restart=True)
    assert record.status == "moved"


DAMAGES = {
    "another version": ("PRAGMA user_version = 7", "is a journal of version 7, of a newer vhlo_tools; this one reads"),
    "the first version": ("PRAGMA user_version = 0", "is a journal of version 1, of an older vhlo_tools; this one"),
    "settings": ("UPDATE header SET value = '{' WHERE name = 'settings'", "is damaged .JSONDecodeError: "),
    "deep": (f"UPDATE header SET value = '{'[' * 100_000}' WHERE name = 'settings'", "is damaged .*nests too deeply"),
    "run": ("UPDATE header SET value = 'x' WHERE name = 'run'", "is damaged .ValueError: "),
    "column": ("ALTER TABLE files DROP COLUMN record", "journal"),
    "state": (
        "INSERT INTO files (path, source, destination, kind, state, record) "
        "VALUES (x'61', x'61', x'61', 'nothing', 1, '[]')",
        "is damaged",
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_journal_that_cannot_be_resumed(what: str, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, message = DAMAGES[what]
    path = journal_of(store)
    edit(path, command)
    with pytest.raises(vt.MigrationError, match=message) as raised:
        list(vt.migrate(store, TARGET))
    assert str(path) in str(raised.value)
    assert main(["migrate", str(store), "--target", "1.0.0", "-j", "1"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert versions(store)["a.mlirbc"] == "1.9.0"
    assert main(["migrate", str(store), "--target", "1.0.0", "-j", "1", "--restart"]) == 0
    assert versions(store)["a.mlirbc"] == "1.0.0"


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        # SQLite says what is wrong in the words of the file: the name of a column, and what a trigger raises.
        ("", b"WHERE is_outside", b"WHERE is_\xffutside"),
        (
            "CREATE TRIGGER t BEFORE INSERT ON files BEGIN SELECT RAISE(ABORT, 'raised'); END",
            b"'raised'",
            b"'r\xffised'",
        ),
    ],
)
def test_names_of_a_journal_that_are_no_text(
    change: str, old: bytes, new: bytes, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = journal_of(store)
    edit(path, change)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    migrate = ["migrate", str(store), "--target", "1.0.0", "-j", "1"]
    assert main(migrate) == 2
    assert f"the journal {path}" in (said := capsys.readouterr().err)
    assert "names in it are no text" in said
    assert versions(store)["a.mlirbc"] == "1.9.0"
    assert main([*migrate, "--restart"]) == 0
    assert versions(store)["a.mlirbc"] == "1.0.0"


@pytest.mark.parametrize("content", [b"nonsense", b"SQLite format 3\0" + bytes(200), b"\0" * 5000])
def test_a_file_that_is_no_database(content: bytes, store: Path) -> None:
    path = store / ".vhlo-migration"
    path.write_bytes(content)
    with pytest.raises(vt.MigrationError, match="is damaged .*--restart"):
        list(vt.migrate(store, TARGET))
    (record,) = vt.migrate(store, TARGET, restart=True)
    assert record.status == "moved"
    # A file of another name may be anybody's.
    other = store.parent / "thesis"
    other.write_bytes(content)
    with pytest.raises(vt.MigrationError, match="is not a journal of a migration"):
        list(vt.migrate(store, TARGET, journal=other, restart=True))
    assert other.read_bytes() == content


def test_a_database_of_another_program_is_never_discarded(store: Path) -> None:
    path = store.parent / "other.sqlite"
    edit(path, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    before = path.read_bytes()
    with pytest.raises(vt.MigrationError, match="is not a journal of a migration"):
        list(vt.migrate(store, TARGET, journal=path, restart=True))
    assert path.read_bytes() == before


def test_a_journal_in_use_is_not_discarded(store: Path) -> None:
    path = store / ".vhlo-migration"
    with Journal(str(path), MigrationSettings((str(store),), TARGET)):
        with pytest.raises(vt.MigrationError, match="is in use by another migration"):
            list(vt.migrate(store, TARGET, restart=True))
        assert path.exists()


def test_what_killed_runs_have_left(store: Path) -> None:
    journal_of(store)
    with Journal(str(store / ".vhlo-migration"), MigrationSettings((str(store),), TARGET)) as journal:
        key = journal.key
    names = {
        "own": f".vhlo-{key}-1-77.part",
        "old": ".vhlo-0123abcd-1-3.part",
        "young": ".vhlo-0123abcd-1-4.part",
        "other": ".vhlo-notes.part",
        "folder": ".vhlo-0123abcd-2-2.part",
    }
    for name in names.values():
        (store / name).mkdir() if name == names["folder"] else (store / name).write_bytes(b"half")
    long_ago = time.time() - 100_000
    for name in (names["old"], names["folder"], names["other"]):
        os.utime(store / name, (long_ago, long_ago))
    list(vt.plan_migration(store, TARGET))
    assert all((store / name).exists() for name in names.values())
    list(vt.migrate(store, TARGET))
    left = {what for what, name in names.items() if (store / name).exists()}
    assert left == {"young", "other", "folder"}


READ_ONLY = f"""{PLAIN}
import sys
import vhlo_tools as vt
for record in vt.plan_migration(sys.argv[1], "1.0.0"):
    print(record.status, record.reason)
"""


def test_a_dry_run_knows_a_folder_that_is_read_only(store: Path) -> None:
    store.chmod(0o555)
    result = warm_python().run(READ_ONLY, str(store))
    assert result.stdout == f"failed the result cannot be written: {store} is read-only\n", result.stderr


class Swapping:
    """A store, and a folder for results, in which a folder becomes a link to one outside at a certain moment."""

    def __init__(self, root: Path, *, in_place: bool) -> None:
        self.root, self.store, self.out, self.outside = root, root / "store", root / "out", root / "outside"
        self.at = (self.store if in_place else self.out) / "sub"
        for folder in (self.store / "sub", self.out / "sub", self.outside):
            folder.mkdir(parents=True)
        artifact = vt.serialize(PROGRAM, "1.9.0")
        for number in range(20):
            artifact.save(self.store / f"sub/{number}.mlirbc")
            Manifest.of(artifact).save(self.store / f"sub/{number}.mlirbc.manifest.json")
            if in_place:
                artifact.save(self.outside / f"{number}.mlirbc")
        self.options = {"backup": ".bak"} if in_place else {"output_dir": self.out, "force": True}
        self.before = self.seen()

    def seen(self) -> dict[str, tuple[int, bytes]]:
        return {each.name: (each.stat().st_ino, each.read_bytes()) for each in self.outside.iterdir()}

    def swap(self) -> None:
        if not self.at.is_symlink():
            self.at.rename(self.root / "kept")
            self.at.symlink_to(self.outside)

    def swap_back(self) -> None:
        if self.at.is_symlink():
            self.at.unlink()
            (self.root / "kept").rename(self.at)


#: What is about to be done when the folder becomes a link.
MOMENTS = (
    "migration_work.part_path",
    "migration_work._write",
    "migration.list_backups",
    "migration.opened_folder",
    "migration.remove_manifest",
    "migration.place_new",
    "migration.write_in",
    "migration.remove_in",
    "migration._sync",
    "migration_files.remove_in",
)


@pytest.mark.skipif(not system.FOLDER, reason="the system names no files in a folder that is open")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "results elsewhere"])
def test_a_folder_becomes_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool, moment: str) -> None:
    there = Swapping(tmp_path, in_place=in_place)
    original = attrgetter(moment)(vhlo_tools.stores)

    def swapped(*arguments: Any, **options: Any) -> Any:
        there.swap()
        return original(*arguments, **options)

    monkeypatch.setattr(f"vhlo_tools.stores.{moment}", swapped)
    assert all(each.ok or each.reason for each in vt.migrate(there.store, TARGET, **there.options))
    assert there.seen() == there.before


@pytest.mark.skipif(not system.FOLDER, reason="the system names no files in a folder that is open")
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "results elsewhere"])
def test_a_folder_is_now_a_link_and_now_none(tmp_path: Path, in_place: bool) -> None:
    ended = Event()

    def swap(there: Swapping) -> None:
        while not ended.wait(0.001):
            with suppress(OSError):
                there.swap()
            ended.wait(0.001)
            with suppress(OSError):
                there.swap_back()

    for number in range(5):
        there = Swapping(tmp_path / str(number), in_place=in_place)
        ended.clear()
        thread = Thread(target=swap, args=(there,))
        thread.start()
        try:
            with suppress(vt.MigrationError, OSError):
                list(vt.migrate(there.store, TARGET, **there.options))
        finally:
            ended.set()
            thread.join()
        assert there.seen() == there.before


@pytest.mark.parametrize("leads_to", ["nothing", "a file"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_journal_that_is_a_link(store: Path, leads_to: str, restart: bool) -> None:
    other = store.parent / "elsewhere/other"
    if leads_to == "a file":
        other.write_bytes(b"")
    (store / ".vhlo-migration").symlink_to(other)
    with pytest.raises(vt.MigrationError, match="is a link, which no migration makes"):
        list(vt.migrate(store, TARGET, restart=restart))
    assert other.exists() == (leads_to == "a file")
    assert not other.exists() or other.read_bytes() == b""


FULL = """
import resource, sys
import vhlo_tools as vt
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    list(vt.migrate(sys.argv[1], "1.0.0"))
except vt.MigrationError as error:
    print(error)
"""


@pytest.mark.parametrize("size", [1000, 5000, 20_000])
def test_a_full_disk_leaves_no_journal_to_which_nothing_was_written(store: Path, size: int) -> None:
    """A limit on the size of files stands for the end of the disk."""
    result = warm_python().run(FULL, str(store), str(size))
    assert "cannot be written" in result.stdout, result.stderr
    assert [each.name for each in store.iterdir()] == ["a.mlirbc"]
    assert versions(store)["a.mlirbc"] == "1.9.0"
