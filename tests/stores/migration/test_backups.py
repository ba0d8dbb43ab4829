"""Backups are no programs: of any suffix, for every command, after runs that ended and runs that were killed."""

from __future__ import annotations

import errno
import json
import os
from itertools import islice
from pathlib import Path
from typing import IO

import pytest

import vhlo_tools as vt
from vhlo_tools.api.stores import MIGRATION_TOOLS
from vhlo_tools.cli.main import main
from vhlo_tools.stores import Journal, Migration, MigrationSettings, Workers

pytestmark = pytest.mark.usefixtures("kept")

PROGRAM = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
NAMES = ("a.mlirbc", "b", "below/c.mlirbc")
OLD = vt.Version("1.3.0")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    (folder / "below").mkdir(parents=True)
    artifact = vt.serialize(PROGRAM, OLD)
    for name in NAMES:
        artifact.save(folder / name)
    return folder


def programs(store: Path, capsys: pytest.CaptureFixture[str], command: str, *arguments: str) -> set[str]:
    capsys.readouterr()
    main([*command.split(), str(store), *arguments, "--output-format", "json"])
    return {os.path.relpath(each["path"], store) for each in json.loads(capsys.readouterr().out)["files"]}


def versions(store: Path, suffix: str = "") -> set[str]:
    return {str(vt.open_artifact(store / f"{name}{suffix}").version) for name in NAMES}


@pytest.mark.parametrize("suffix", [".orig", ".bak", "~", "-1", ".100%\n", os.fsdecode(b".\xff")])
def test_backups_are_no_programs_for_any_command(store: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(store), "--target", "1.5.0", "-j", "1", "--backup-suffix", suffix]) == 0
    assert (versions(store), versions(store, suffix)) == ({"1.5.0"}, {"1.3.0"})
    assert programs(store, capsys, "check", "--target", "1.0.0") == set(NAMES)
    assert programs(store / "**", capsys, "check", "--target", "1.0.0") == {f"../{each}" for each in NAMES}
    assert programs(store, capsys, "store status") == set(NAMES)
    # Another migration leaves them alone: without backups, and with others.
    assert programs(store, capsys, "migrate", "--target", "1.7.0", "-j", "1") == set(NAMES)
    assert programs(store, capsys, "migrate", "--target", "1.9.0", "-j", "1", "--backup-suffix", ".new") == set(NAMES)
    assert programs(store, capsys, "migrate", "--target", "1.9.0", "-j", "1", "--dry-run") == set(NAMES)
    assert versions(store) == {"1.9.0"}
    assert (versions(store, suffix), versions(store, ".new")) == ({"1.3.0"}, {"1.7.0"})
    # One that is named counts, as any file does.
    assert programs(store / f"b{suffix}", capsys, "store status") == {"."}


def test_a_plan_lists_nothing(store: Path) -> None:
    assert {each.status for each in vt.plan_migration(store, "1.5.0", backup=".bak")} == {"move"}
    assert not list(store.rglob(".vhlo*"))


def test_what_is_left_out_by_its_name_is_not_listed(store: Path) -> None:
    assert {each.status for each in vt.migrate(store, "1.5.0", backup=".orig")} == {"moved"}
    assert not list(store.rglob(".vhlo*"))


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_resumed_run_leaves_backups_alone(store: Path, left: int) -> None:
    list(islice(vt.migrate(store, "1.5.0", backup=".bak"), left))
    records = list(vt.migrate(store, "1.5.0", backup=".bak"))
    assert {os.path.relpath(each.path, store) for each in records} == set(NAMES)
    assert (versions(store), versions(store, ".bak")) == ({"1.5.0"}, {"1.3.0"})
    assert {Path(each.path).name for each in vt.store_status(store)} == {Path(each).name for each in NAMES}


@pytest.mark.parametrize("killed_after", ["the list", "the backup", "the replacement"])
def test_killed_between_a_backup_and_its_replacement(
    store: Path, killed_after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment of the kill, each backup that is there is listed already."""

    class KilledError(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise KilledError

    settings = MigrationSettings((str(store),), vt.Version("1.5.0"), backup=".bak")
    journal = str(store / ".vhlo-migration")
    with monkeypatch.context() as patched:
        module = "vhlo_tools.stores.migration"
        patched.setattr(
            *{
                "the list": (f"{module}._keep", kill),
                "the backup": (f"{module}.os.replace", kill),
                "the replacement": (f"{module}._sync", kill),
            }[killed_after]
        )
        with Journal(journal, settings) as used, Workers() as workers:
            migration = Migration(settings, MIGRATION_TOOLS, used)
            with pytest.raises(KilledError):
                list(migration.run(workers))
    backups = {each.name for each in store.rglob("*.bak")}
    assert bool(backups) == (killed_after != "the list")
    assert {os.path.relpath(each.path, store) for each in vt.store_status(store)} == set(NAMES)
    assert {each.status for each in vt.migrate(store, "1.5.0", backup=".bak")} == {"moved"}
    assert (versions(store), versions(store, ".bak")) == ({"1.5.0"}, {"1.3.0"})
    assert {os.path.relpath(each.path, store) for each in vt.store_status(store)} == set(NAMES)


def test_a_copy_that_was_not_finished_is_no_program(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no hard links, and a run is killed within a copy."""

    class KilledError(BaseException):
        pass

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no hard links")

    def copy_and_die(source: IO[bytes], part: IO[bytes]) -> None:
        part.write(source.read())
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr("vhlo_tools.stores.migration.os.link", refuse)
        patched.setattr("vhlo_tools.stores.migration.shutil.copyfileobj", copy_and_die)
        with pytest.raises(KilledError):
            list(vt.migrate(store, "1.5.0", backup=".orig"))
    (left,) = (each for each in store.rglob("*.part") if vt.open_artifact(each).version == OLD)
    assert {os.path.relpath(each.path, store) for each in vt.store_status(store)} == set(NAMES)
    # A day later, any migration removes it.
    os.utime(left, (0, 0))
    assert {each.status for each in vt.migrate(store, "1.5.0", backup=".orig")} == {"moved"}
    assert not left.exists()
    assert (versions(store), versions(store, ".orig")) == ({"1.5.0"}, {"1.3.0"})


def test_without_a_list_nothing_is_replaced(store: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (store / ".vhlo-backups").symlink_to(elsewhere)
    found = {os.path.relpath(each.path, store): each for each in vt.migrate(store, "1.5.0", backup=".bak")}
    assert {name: each.status for name, each in found.items()} == {
        "a.mlirbc": "failed",
        "b": "failed",
        "below/c.mlirbc": "moved",
    }
    assert "the list of backups, .vhlo-backups, cannot be written" in (found["b"].reason or "")
    assert elsewhere.read_text() == "mine\n"
    assert sorted(each.name for each in store.iterdir()) == [".vhlo-backups", "a.mlirbc", "b", "below"]
    assert vt.open_artifact(store / "b").version == OLD


def test_results_elsewhere_keep_their_list_there(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert {each.status for each in vt.migrate(store, "1.5.0", output_dir=out)} == {"moved"}
    assert {each.status for each in vt.migrate(store, "1.7.0", output_dir=out, backup=".bak", force=True)} == {"moved"}
    assert {os.path.relpath(each.path, out) for each in vt.store_status(out)} == set(NAMES)
    assert not list(store.rglob(".vhlo*"))


def test_a_suffix_is_no_pattern(store: Path) -> None:
    found = vt.migrate(store, "1.5.0", backup="[a-z]")
    assert {os.path.relpath(each.path, store) for each in found} == set(NAMES)
