"""Stores brought to another version: what becomes of each file, and of all that stands around it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.migration_tools import CHANGING, DEADLY, DEADLY_TWICE, LYING
from support.raw import RawLibrary
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.files import JaxExport
from vhlo_tools.stores import Journal, Migration, MigrationSettings, Tools, Workers

ADD = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
CALL = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @unknown(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
JAX = EXAMPLES / "jax_store" / "gelu.jax_export"
OLD, TARGET = vt.Version("1.9.0"), vt.Version("1.13.0")


@pytest.fixture(scope="module")
def add() -> bytes:
    return bytes(vt.serialize(ADD, OLD))


@pytest.fixture
def store(tmp_path: Path, add: bytes) -> Path:
    folder = tmp_path / "store"
    (folder / "below").mkdir(parents=True)
    (folder / "a.mlirbc").write_bytes(add)
    (folder / "below" / "b").write_bytes(add)
    (folder / "exported").write_bytes(JAX.read_bytes())
    (folder / "text.mlir").write_text(ADD)
    (folder / "notes.txt").write_text("no program")
    return folder


def statuses(records: object) -> dict[str, str]:
    assert records is not None
    return {Path(each.path).name: each.status for each in records}  # type: ignore[attr-defined]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def worked(store: Path, tools: Tools, jobs: int | None = None, *, verify: bool = False) -> list[vt.MigrationRecord]:
    settings = MigrationSettings((str(store),), TARGET, verify=verify)
    with Journal(None, settings) as journal, Workers(jobs=jobs) as workers:
        migration = Migration(settings, tools, journal)
        return list(migration.run(workers))


def test_every_kind_of_program_is_brought_to_the_target(store: Path, raw: RawLibrary) -> None:
    text = (store / "text.mlir").read_text()
    found = {Path(each.path).name: each for each in vt.migrate(store, TARGET)}
    assert {name: each.status for name, each in found.items()} == dict.fromkeys(
        ["a.mlirbc", "b", "exported", "text.mlir"], "moved"
    )
    assert found["a.mlirbc"].version == OLD
    for path in (store / "a.mlirbc", store / "below" / "b", store / "text.mlirbc"):
        assert vt.open_artifact(path).version == TARGET
        assert raw.deserialize(path.read_bytes()) is not None
    # A container stays one, and text that somebody wrote stays as it is.
    export = JaxContainer.open(store / "exported")
    assert (export.version, type(export.export)) == (TARGET, JaxExport)
    assert (store / "text.mlir").read_text() == text
    assert sorted(contents(store)) == sorted(
        ["a.mlirbc", "below/b", "exported", "text.mlir", "text.mlirbc", "notes.txt"]
    )


def test_a_second_migration_has_nothing_to_do(store: Path) -> None:
    list(vt.migrate(store, TARGET))
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.rglob("*")}
    assert set(statuses(vt.migrate(store, TARGET)).values()) == {"current"}
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.rglob("*") if path in before} == {
        path: seen for path, seen in before.items() if path.is_file() or path.is_dir()
    }


def test_what_cannot_be_moved_is_left_and_told(store: Path) -> None:
    newest = vt.serialize(FEATURES / "tan.mlir", "1.4.0")
    newest.save(store / "tan.mlirbc")
    (store / "torn.mlirbc").write_bytes((store / "a.mlirbc").read_bytes()[:100])
    (store / "nothing.mlir").symlink_to("nowhere")
    before = contents(store)
    found = {Path(each.path).name: each for each in vt.migrate(store, "1.3.0")}
    assert [found[name].status for name in ("tan.mlirbc", "torn.mlirbc", "nothing.mlir", "a.mlirbc")] == [
        "blocked",
        "unreadable",
        "unreadable",
        "moved",
    ]
    assert [each.feature for each in found["tan.mlirbc"].findings] == ["tan"]
    assert (found["nothing.mlir"].reason, found["nothing.mlir"].size) == ("No such file or directory", 0)
    assert found["torn.mlirbc"].size == 100
    assert contents(store)["tan.mlirbc"] == before["tan.mlirbc"]
    assert contents(store)["torn.mlirbc"] == before["torn.mlirbc"]


def test_permissions_and_links_stay(store: Path) -> None:
    (store / "a.mlirbc").chmod(0o640)
    (store / "link.mlirbc").symlink_to("a.mlirbc")
    os.link(store / "a.mlirbc", store / "hard.mlirbc")
    found = list(vt.migrate([store, store / "link.mlirbc"], TARGET))
    # A file that is reached twice is moved once; another name of it becomes a file of its own.
    assert len([each for each in found if Path(each.path).name in ("a.mlirbc", "link.mlirbc")]) == 1
    assert (store / "link.mlirbc").is_symlink()
    assert (store / "a.mlirbc").stat().st_mode & 0o7777 == 0o640
    assert vt.open_artifact(store / "hard.mlirbc").version == TARGET


def test_old_files_are_kept_and_never_replaced(store: Path, add: bytes) -> None:
    assert set(statuses(vt.migrate(store, TARGET, backup=".orig")).values()) == {"moved"}
    assert (store / "a.mlirbc.orig").read_bytes() == add
    assert not (store / "text.mlir.orig").exists()
    # The next finds them, takes them for no part of the store, and has no place for what is old now.
    found = list(vt.migrate(store, "1.10.0", backup=".orig", exclude=["text.*"]))
    assert statuses(found) == dict.fromkeys(["a.mlirbc", "b", "exported"], "blocked")
    assert "a.mlirbc.orig exists and is another" in next(each.reason or "" for each in found if "a.ml" in each.path)
    assert (store / "a.mlirbc.orig").read_bytes() == add
    assert vt.open_artifact(store / "a.mlirbc").version == TARGET


def test_an_output_folder_leaves_the_store_alone(store: Path, tmp_path: Path) -> None:
    before, out = contents(store), tmp_path / "out"
    vt.retarget(store / "a.mlirbc", TARGET).save(store / "there.mlirbc")
    before["there.mlirbc"] = (store / "there.mlirbc").read_bytes()
    found = statuses(vt.migrate(store, TARGET, output_dir=out))
    assert set(found.values()) == {"moved"}
    assert contents(store) == before
    assert sorted(contents(out)) == ["a.mlirbc", "below/b", "exported", "text.mlirbc", "there.mlirbc"]
    assert contents(out)["there.mlirbc"] == before["there.mlirbc"]
    assert set(statuses(vt.migrate(store, TARGET, output_dir=out)).values()) == {"current"}
    (out / "a.mlirbc").write_bytes(b"mine")
    assert statuses(vt.migrate(store, TARGET, output_dir=out))["a.mlirbc"] == "blocked"
    assert (out / "a.mlirbc").read_bytes() == b"mine"
    assert statuses(vt.migrate(store, TARGET, output_dir=out, force=True))["a.mlirbc"] == "moved"


def test_results_that_would_stand_in_one_place_are_not_written(store: Path) -> None:
    (store / "same.mlir").write_text(ADD)
    (store / "same.txt.mlir").write_text(ADD)
    (store / "same.bc").write_bytes((EXAMPLES / "convnet.bc").read_bytes())
    found = statuses(vt.migrate(store, TARGET))
    assert (found["same.mlir"], found["same.bc"], found["same.txt.mlir"]) == ("blocked", "blocked", "moved")
    assert not (store / "same.mlirbc").exists()


@pytest.mark.parametrize(
    "make",
    [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(1, get_context("spawn"))],
    ids=["threads", "own"],
)
def test_any_executor_does(store: Path, make: Callable[[], Executor]) -> None:
    with make() as executor:
        assert set(statuses(vt.migrate(store, TARGET, executor=executor)).values()) == {"moved"}
        # It is still the caller's.
        assert executor.submit(len, "abc").result() == 3


def test_a_file_that_kills_its_process_costs_no_other(store: Path, add: bytes) -> None:
    for name in ("deadly.mlirbc", "c.mlirbc", "d.mlirbc", "e.mlirbc"):
        (store / name).write_bytes(add)
    found = worked(store, DEADLY, jobs=2)
    failed = [each for each in found if each.status != "moved"]
    assert [(Path(each.path).name, each.status) for each in failed] == [("deadly.mlirbc", "failed")], failed
    assert "the process that migrated it crashed" in (failed[0].reason or "")
    assert len(found) == 8
    assert (store / "deadly.mlirbc").read_bytes() == add


def test_what_was_written_when_a_process_crashed_is_written_again(store: Path, add: bytes) -> None:
    # Of twelve files, three go to the only process at once: whichever the deadly one goes with may be written already.
    for number in range(7):
        (store / f"{number}.mlirbc").write_bytes(add)
    (store / "z-deadly.mlirbc").write_bytes(add)
    found = worked(store, DEADLY, jobs=1)
    assert len(found) == 12
    assert [Path(each.path).name for each in found if each.status != "moved"] == ["z-deadly.mlirbc"]
    assert not list(store.rglob("*.part"))


def test_a_process_that_dies_by_accident_costs_no_file(store: Path, add: bytes) -> None:
    # Three of twelve files go to the only process at once. It dies with several of them, and then with one alone.
    for number in range(7):
        (store / f"{number}.mlirbc").write_bytes(add)
    (store / "deadly.mlirbc").write_bytes(add)
    assert {each.status for each in worked(store, DEADLY_TWICE, jobs=1)} == {"moved"}
    assert (store.with_name("deaths")).read_text() == "xx"


def test_a_broken_executor_of_the_caller_is_told(store: Path, add: bytes) -> None:
    (store / "deadly.mlirbc").write_bytes(add)
    settings = MigrationSettings((str(store),), TARGET)
    with (
        Journal(None, settings) as journal,
        ProcessPoolExecutor(1, get_context("spawn")) as executor,
        Workers(executor) as workers,
    ):
        migration = Migration(settings, DEADLY, journal)
        with pytest.raises(vt.WorkerError, match="only the owner of the executor can restart it"):
            list(migration.run(workers))


def test_what_somebody_else_changes_is_left_to_them(store: Path) -> None:
    found = worked(store, CHANGING)
    assert {each.status for each in found} == {"changed"}
    assert (store / "a.mlirbc").read_bytes() == b"written by somebody else"
    assert not list(store.rglob("*.part"))


def test_what_was_proven_is_moved(store: Path) -> None:
    found = list(vt.migrate(store, TARGET, verify=True))
    assert {(each.status, each.verified) for each in found} == {("moved", "same program")}


def test_another_program_is_found_out_by_running_both(store: Path, add: bytes) -> None:
    (store / "exported").unlink()
    (store / "call.mlirbc").write_bytes(bytes(vt.serialize(CALL, OLD)))
    found = {Path(each.path).name: each for each in worked(store, LYING, verify=True)}
    assert found["a.mlirbc"].status == "mismatch"
    assert "output 0" in (found["a.mlirbc"].reason or "")
    # What cannot be run is not moved if it is not the same program.
    assert found["call.mlirbc"].status == "unverified"
    assert "unknown" in (found["call.mlirbc"].reason or "")
    assert (store / "a.mlirbc").read_bytes() == add


def test_a_program_that_cannot_be_run_is_moved_if_it_stays_the_same(store: Path) -> None:
    (store / "call.mlirbc").write_bytes(bytes(vt.serialize(CALL, OLD)))
    assert statuses(vt.migrate(store / "call.mlirbc", TARGET, verify=True)) == {"call.mlirbc": "moved"}


def test_paths_that_mean_nothing_are_refused(store: Path) -> None:
    (store / "empty").mkdir()
    for path in (store / "missing", store / "empty", store / "*.none"):
        with pytest.raises(vt.MigrationError, match="not a file, not a folder with programs, and not a glob"):
            list(vt.migrate(path, TARGET))
    assert not list(store.rglob(".vhlo*"))
    with pytest.raises(vt.UnknownTargetError):
        vt.migrate(store, "jaxlib==0.1")


def test_names_that_are_no_text(store: Path, add: bytes) -> None:
    name = os.fsdecode(b"\xff.mlirbc")
    (store / name).write_bytes(add)
    assert statuses(vt.migrate(store, TARGET))[name] == "moved"
    assert vt.open_artifact(store / name).version == TARGET


FULL = """
import resource, sys
import vhlo_tools as vt
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
for each in vt.migrate(sys.argv[1], "1.13.0", journal=sys.argv[3]):
    print(each.status, each.reason)
"""


def test_a_full_disk_leaves_old_files_whole(store: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk; the journal stays below it."""
    for each in ("below/b", "exported", "text.mlir"):
        (store / each).unlink()
    (store / "a.mlirbc").write_bytes(bytes(vt.serialize(large(), OLD)))
    before = contents(store)
    journal = str(tmp_path / "journal")
    result = warm_python().run(FULL, str(store), str(200 << 10), journal)
    assert result.stdout == "failed the result cannot be written: File too large\n", result.stderr
    assert contents(store) == before
    assert set(statuses(vt.migrate(store, TARGET, journal=journal)).values()) == {"moved"}


def large() -> str:
    numbers = ", ".join(f"{each}.5" for each in range(100_000))
    tensor = "tensor<100000xf32>"
    constant = f"%0 = stablehlo.constant dense<[{numbers}]> : {tensor}"
    return f"func.func @main() -> {tensor} {{ {constant} return %0 : {tensor} }}"


def test_the_bytes_are_those_of_retarget(store: Path) -> None:
    expected = bytes(vt.retarget(store / "a.mlirbc", TARGET))
    (record,) = vt.migrate(store / "a.mlirbc", TARGET, jobs=1)
    assert (store / "a.mlirbc").read_bytes() == expected
    assert record.new_size == len(expected)


def test_a_plan_writes_nothing_and_says_what_would_be(store: Path) -> None:
    vt.serialize(FEATURES / "tan.mlir", "1.4.0").save(store / "tan.mlirbc")
    before = contents(store)
    summary = vt.MigrationSummary()
    found = {}
    for each in vt.plan_migration(store, "1.3.0"):
        summary.add(each)
        found[Path(each.path).name] = each
    assert contents(store) == before
    assert {name: each.status for name, each in found.items()} == {
        "a.mlirbc": "move",
        "b": "move",
        "exported": "move",
        "text.mlir": "move",
        "tan.mlirbc": "blocked",
    }
    assert found["text.mlir"].output == str(store / "text.mlirbc")
    # Whoever tries it knows how long it takes; it was not minutes.
    assert all(each.seconds is not None and 0 < each.seconds < 60 for each in found.values() if each.status == "move")
    assert (summary.files["move"], summary.problems, summary.ok) == (4, 1, False)
    one, two = summary.seconds(), summary.seconds(2)
    assert one is not None
    assert two == pytest.approx(one / 2)
    assert {each.status for each in vt.migrate(store, "1.3.0")} == {"moved", "blocked"}


def test_a_plan_knows_which_of_many_results_stand_there_already(tmp_path: Path) -> None:
    """Only the first files are tried, and those in whose place something stands."""
    for number in range(20):
        (tmp_path / f"{number:02}.mlir").write_text(ADD)
    assert set(statuses(vt.migrate(tmp_path, TARGET)).values()) == {"moved"}
    assert set(statuses(vt.plan_migration(tmp_path, TARGET, exclude=["*.mlirbc"])).values()) == {"current"}


def test_a_plan_says_what_is_blocked_whether_it_tries_it_or_not(tmp_path: Path, add: bytes) -> None:
    blocked = bytes(vt.serialize(FEATURES / "tan.mlir", "1.4.0"))
    for number in range(40):
        (tmp_path / f"{number:02}.mlirbc").write_bytes(blocked if number % 2 else add)
    found = {Path(each.path).stem: each for each in vt.plan_migration(tmp_path, "1.3.0")}
    assert {name: each.status for name, each in found.items()} == {
        f"{number:02}": "blocked" if number % 2 else "move" for number in range(40)
    }
    assert all([each.feature for each in found[f"{number:02}"].findings] == ["tan"] for number in range(1, 40, 2))
    # A sample is enough to tell how long it takes.
    assert 0 < sum(each.seconds is not None for each in found.values()) < 20


UNGUARDED = """
import sys
import vhlo_tools as vt
print([each.status for each in vt.migrate(sys.argv[1], "1.13.0", jobs=2)])
"""


def test_a_script_that_cannot_start_processes_is_told_why(store: Path, tmp_path: Path) -> None:
    """Each process imports the script, which must not migrate again."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    ran = subprocess.run([sys.executable, str(script), str(store)], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(
        "vhlo_tools.errors.WorkerError: no worker process can be started: a script that requests worker processes"
    )
