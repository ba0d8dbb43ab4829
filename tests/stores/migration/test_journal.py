"""The journal of a migration as a file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.stores import Journal, MigrationSettings
from vhlo_tools.stores.journal import NAME, journal_path
from vhlo_tools.stores.members import Stamp
from vhlo_tools.stores.migration_files import FoundFile

SETTINGS = MigrationSettings(("store",), vt.Version("1.13.0"))


def found(*names: str) -> list[FoundFile]:
    return [FoundFile(name, name, name, Stamp(1, 2, number)) for number, name in enumerate(names)]


def test_runs_are_counted_from_one_and_share_a_key(tmp_path: Path) -> None:
    path, keys = str(tmp_path / "journal"), set()
    for run in (1, 2, 3):
        with Journal(path, SETTINGS) as journal:
            assert journal.run == run
            keys.add(journal.key)
    assert len(keys) == 1
    with Journal(path, SETTINGS, restart=True) as journal:
        assert journal.run == 1
        assert journal.key not in keys


def test_files_that_have_not_changed_are_known(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    with Journal(path, SETTINGS) as journal:
        assert journal.is_empty
        journal.add(found("a", "b"))
        first, _ = tasks = list(journal.tasks(beside=False))
        record = vt.MigrationRecord("a", "moved", SETTINGS.target)
        journal.finish([(first, None, record)])
        assert [each.found.path for each in tasks] == ["a", "b"]
    with Journal(path, SETTINGS) as journal:
        assert not journal.is_empty
        journal.add(found("a", "b"))
        assert [each.found.path for each in journal.tasks(beside=False)] == ["b"]
        assert list(journal.records()) == [record]
        journal.add([FoundFile("a", "a", "a", Stamp(1, 3, 0))])
        assert [each.found.path for each in journal.tasks(beside=False)] == ["a", "b"]


def test_a_file_outside_that_is_found_inside_too_is_inside(tmp_path: Path) -> None:
    """A link may lead to it from one folder, and another folder may hold it."""
    with Journal(str(tmp_path / "journal"), SETTINGS) as journal:
        for path, outside in (("a/link", True), ("b/file", False), ("c/link", True)):
            journal.add([FoundFile(path, "b/file", "b/file", Stamp(1, 2, 3), is_outside=outside)])
        (task,) = journal.tasks(beside=False)
        assert (task.found.path, task.found.is_outside) == ("b/file", False)


@pytest.mark.parametrize("folder", ["s3://bucket/out", "s3://bucket/out/"])
def test_a_store_behind_a_url_is_claimed_in_its_folder(folder: str) -> None:
    settings = MigrationSettings(("s3://bucket/in",), SETTINGS.target, output_dir=folder)
    assert journal_path(settings) == f"s3://bucket/out/{NAME}"


def test_more_files_than_are_read_at_once(tmp_path: Path) -> None:
    names = [f"{number:04}" for number in range(600)]
    with Journal(None, SETTINGS) as journal:
        journal.add(found(*names))
        assert [each.found.path for each in journal.tasks(beside=False)] == names
        assert list(journal.tasks(beside=True)) == []


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE precious (value TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(
        vt.MigrationError, match="is not a journal of a migration .file is a database of another application."
    ):
        Journal(str(path), SETTINGS)
    assert path.read_bytes() == before


def test_a_journal_that_somebody_has_removed_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(str(path), SETTINGS) as journal:
        path.unlink()
        journal.remove()
    with Journal(str(path), SETTINGS) as journal:
        journal.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_journal_stands_with_the_results(tmp_path: Path) -> None:
    out = tmp_path / "not" / "yet" / "there"
    assert journal_path(MigrationSettings(("store",), SETTINGS.target, output_dir=str(out))) == str(
        out / ".vhlo-migration"
    )
    assert out.is_dir()
    (tmp_path / "store").mkdir()
    assert journal_path(MigrationSettings((str(tmp_path / "store"),), SETTINGS.target)) == str(
        tmp_path / "store" / ".vhlo-migration"
    )
    assert journal_path(MigrationSettings((str(tmp_path / "s*" / "x*"),), SETTINGS.target)) == str(
        tmp_path / ".vhlo-migration"
    )
