"""Migrations that were interrupted: the next run finishes them, and nothing is done twice."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import check_migrate_kills
import pytest
from support.forked_python import COMMAND
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.api.stores import MIGRATION_TOOLS
from vhlo_tools.stores import Journal, Migration, MigrationSettings, Workers
from vhlo_tools.stores.journal import Task
from vhlo_tools.stores.members import hash_at
from vhlo_tools.stores.migration_files import found_at, part_path

TARGET = vt.Version("1.13.0")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    check_migrate_kills.fill(folder, 12)
    return folder


def test_killed_at_any_moment_a_second_run_comes_to_the_same_end() -> None:
    found = list(check_migrate_kills.check(2, 60, seed=7))
    assert [each.problems for each in found] == [()] * 2


def test_the_next_run_goes_on_where_one_was_left(store: Path) -> None:
    first = list(islice(vt.migrate(store, TARGET), 5))
    assert (store / ".vhlo-migration").exists()
    seen = {path: path.stat().st_ino for path in map(Path, (each.path for each in first))}
    second = list(vt.migrate(store, TARGET))
    # What was done is told again, and not done again.
    assert [each for each in second if each.path in {one.path for one in first}] == sorted(first, key=by_path)
    assert len(second) == 12
    assert {path: path.stat().st_ino for path in seen} == seen
    assert not list(store.rglob(".vhlo*"))


def by_path(record: vt.MigrationRecord) -> str:
    return record.path


def test_other_settings_are_refused_until_it_is_begun_anew(store: Path) -> None:
    list(islice(vt.migrate(store, TARGET), 5))
    with pytest.raises(
        vt.MigrationError, match=r"unfinished migration with target '1\.13\.0' instead of '1\.12\.0'.*--restart"
    ):
        list(vt.migrate(store, "1.12.0"))
    unfinished = next(each for each in store.rglob("*.mlirbc") if vt.open_artifact(each).version != TARGET)
    left_behind = _part_of(store, unfinished)
    left_behind.write_bytes(b"half")
    assert len(list(vt.migrate(store, "1.12.0", restart=True))) == 12
    assert not left_behind.exists()
    assert {vt.open_artifact(each).version for each in store.rglob("*.mlirbc")} <= {vt.Version("1.12.0"), TARGET}


def test_what_came_meanwhile_is_moved_too(store: Path) -> None:
    first = list(islice((each for each in vt.migrate(store, TARGET) if each.status == "moved"), 2))
    path = Path(first[0].path)
    new = store / "new.mlirbc"
    old = vt.retarget(path, "1.9.0")
    old.save(new)
    # And so is one that was moved, and then replaced by an older one.
    old.save(path, force=True)
    again = {each.path for each in vt.migrate(store, TARGET)}
    assert {str(new), str(path)} <= again
    assert vt.open_artifact(path).version == vt.open_artifact(new).version == TARGET


def test_a_program_that_changes_after_it_was_read_is_not_done(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, changed = os.link, []

    def written(part: str, result: str, *, dst_dir_fd: int, **options: Any) -> None:
        link(part, result, dst_dir_fd=dst_dir_fd, **options)
        folder = Path(f"/proc/self/fd/{dst_dir_fd}").readlink()
        changed.append(store / folder.relative_to(tmp_path / "out") / result)
        os.utime(changed[-1], (1, 1))

    monkeypatch.setattr(os, "link", written)
    (first,) = islice(vt.migrate(store, TARGET, output_dir=tmp_path / "out"), 1)
    assert (first.status, Path(first.path)) == ("moved", changed[0])
    monkeypatch.undo()
    again = {each.path: each.status for each in vt.migrate(store, TARGET, output_dir=tmp_path / "out")}
    # It is looked at again, and its result is there.
    assert again[first.path] == "current"


def test_two_migrations_do_not_share_a_journal(store: Path) -> None:
    under_way = vt.migrate(store, TARGET)
    next(under_way)
    code = f"import vhlo_tools as vt; list(vt.migrate({str(store)!r}, '1.13.0'))"
    result = warm_python().run(code)
    assert "another migration" in result.stderr
    assert len(list(under_way)) == 11


def test_what_was_written_beside_is_not_met_again(store: Path) -> None:
    for each in store.rglob("*.mlirbc"):
        each.unlink()
    (store / "0" / "a.mlir").write_text("func.func @main() { return }")
    (store / "0" / "b.mlir").write_text("func.func @main() { return }")
    next(vt.migrate(store, TARGET))
    assert len(list(store.rglob("*.mlirbc"))) == 1
    assert [each.status for each in vt.migrate(store, TARGET)] == ["moved", "moved"]


def test_a_journal_that_is_named_stays_as_a_record(store: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert len(list(vt.migrate(store, TARGET, journal=journal))) == 12
    assert journal.exists()
    # It has come to its end: the next migration writes over it, whatever its settings are.
    assert len(list(vt.migrate(store, "1.12.0", journal=journal))) == 12


def test_other_files_are_no_journals_and_are_left_alone(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "precious.txt"
    other.write_text("precious " * 1000)
    with pytest.raises(vt.MigrationError, match="is not a journal of a migration"):
        list(vt.migrate(store, TARGET, journal=other))
    assert other.read_text() == "precious " * 1000
    with pytest.raises(vt.MigrationError, match="cannot be written"):
        list(vt.migrate(store, TARGET, journal=tmp_path / "missing" / "journal"))


@pytest.mark.parametrize("when", ["before", "after", "instead"])
def test_a_kill_between_the_journal_and_the_file(store: Path, tmp_path: Path, when: str) -> None:
    """The journal says what was about to be done; the file says whether it was."""
    settings = MigrationSettings((str(store),), TARGET)
    path = str(tmp_path / "journal")
    with Journal(path, settings) as journal:
        journal.add(list(found_at(settings)))
        task = next(each for each in journal.tasks(beside=False) if each.found.version == vt.Version("0.9.0"))
        record = _intended(task)
        journal.intend([(task, record)])
        part = Path(part_path(task.found.destination, journal.key, journal.run, task.number))
        vt.retarget(task.found.source, TARGET).save(part)
    if when == "after":
        part.replace(task.found.source)
    elif when == "instead":
        Path(task.found.source).write_bytes(b"somebody else's")
    with Journal(path, settings) as journal, Workers() as workers:
        migration = Migration(settings, MIGRATION_TOOLS, journal)
        worked = {each.path: each.status for each in migration.run(workers)}
        known = {each.path: each.status for each in migration.records()}
    assert len(known) == 12
    assert worked == known
    assert known[task.found.path] == {"before": "moved", "after": "moved", "instead": "unreadable"}[when]
    assert when == "instead" or hash_at(task.found.source) == record.new_digest
    assert not part.exists()


def _part_of(store: Path, path: Path) -> Path:
    """Return where the first run of a migration that was interrupted would have written a result."""
    with Journal(str(store / ".vhlo-migration"), MigrationSettings((str(store),), TARGET)) as journal:
        task = next(each for each in journal.tasks(beside=False) if each.found.path == str(path))
        return Path(part_path(task.found.destination, journal.key, 1, task.number))


def _intended(task: Task) -> vt.MigrationRecord:
    new = vt.retarget(task.found.source, TARGET)
    old = hash_at(task.found.source)
    scratch = Path(task.found.source).with_suffix(".scratch")
    new.save(scratch)
    digest = hash_at(str(scratch))
    scratch.unlink()
    return vt.MigrationRecord(task.found.path, "moved", TARGET, digest=old, new_digest=digest)


def test_two_calls_in_one_process(store: Path) -> None:
    """The second is refused without touching the journal, whose lock would otherwise end with it."""
    running = vt.migrate(store, TARGET)
    next(running)
    for restart in (False, True):
        with pytest.raises(vt.MigrationError, match="is in use by another migration"):
            next(vt.migrate(store, TARGET, restart=restart))
    other = warm_python().run(COMMAND, "migrate", str(store), "--target", str(TARGET), "-j", "1")
    assert (other.returncode, "is in use by another migration" in other.stderr) == (2, True)
    assert len(list(running)) == 11
