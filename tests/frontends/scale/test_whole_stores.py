"""Checks and comparisons of whole stores on a real Dask cluster: what one process says, whatever becomes of workers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.cluster_stores import TARGET, filled
from support.dask_cluster import LocalProcesses
from support.gate_programs import DeadlyExaminer, blocked, fill_with_kinds, write

import vhlo_tools as vt
from vhlo_tools.api import resolve_target
from vhlo_tools.cli.main import main
from vhlo_tools.gate import FORMATS, Gate, Question, Settings
from vhlo_tools.gate.examination import Content, Task
from vhlo_tools.gate.examinations import DistributedExaminations

#: Of connections to processes that were killed, in the library.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ASKED = ("--target", "1.3.0", "--target", TARGET)
#: Programs of one meaning that the library does not read as one, and a third of another.
TWICE, SUM, SQUARE = (
    f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}  return %0 : tensor<4xf32>\n}}\n"
    for body in (
        "  %c = stablehlo.constant dense<2.0> : tensor<4xf32>\n  %0 = stablehlo.multiply %a, %c : tensor<4xf32>\n",
        "  %0 = stablehlo.add %a, %a : tensor<4xf32>\n",
        "  %0 = stablehlo.multiply %a, %a : tensor<4xf32>\n",
    )
)


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    return main(list(arguments)), capfd.readouterr().out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a store of many kinds of programs; workers have another."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    fill_with_kinds(tmp_path / "store")
    return tmp_path


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_report_is_that_of_one_process(
    output_format: str, folder: Path, cluster: LocalProcesses, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["check", "store", *ASKED, "--output-format", output_format]
    here = said(capfd, *command, "-j", "1")
    assert said(capfd, *command, "--dask", cluster.address) == here
    assert here[0] == 2
    assert "store/text0.mlir" in here[1]


def test_all_else_is_as_in_one_process(
    folder: Path, cluster: LocalProcesses, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["check", "store", "--exclude", "bad*", "--exclude", "cut*", *ASKED, "--dask", cluster.address]
    assert said(capfd, *command)[0] == 1
    assert said(capfd, *command, "--allow", "*", "-o", "report.txt") == (0, "")
    assert "no errors" in (folder / "report.txt").read_text()
    assert said(capfd, *command, "--baseline", "known.json", "--update-baseline")[0] == 0
    assert said(capfd, *command, "--baseline", "known.json", "--fail-on-stale")[0] == 0
    write(folder / "store" / "text3.mlir", blocked(4, 5))
    code, out = said(capfd, *command, "--baseline", "known.json", "--output-format", "json")
    assert code == 1
    assert [each["path"] for each in json.loads(out)["files"] if not each["ok"]] == ["store/text3.mlir"]
    with io.TextIOWrapper(io.BytesIO(blocked(1).encode())) as standard:
        monkeypatch.setattr(sys, "stdin", standard)
        assert said(capfd, "check", "-", *ASKED, "--dask", cluster.address)[0] == 1
    assert said(capfd, *command)[0] == 1
    assert not (folder / ".vhlo-cache").exists()
    without = said(capfd, *command)
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE")
    for _ in range(2):
        assert said(capfd, *command, "--cache-dir", "cache") == without
    assert [*(folder / "cache").glob("*.findings")]


def test_workers_that_die_and_come_in_the_middle_of_a_check(
    cluster: LocalProcesses, client: Any, tmp_path: Path
) -> None:
    expected = filled(tmp_path / "store", 3_000)
    cluster.add("mortal")
    cluster.await_workers(5)
    gate = Gate(Settings(target=(TARGET,)))
    found = []
    for answer in gate.answers(gate.listing([str(tmp_path / "store")]), lambda path: None, executor=client):
        found.append((answer.path, answer.state))
        if len(found) == 300:
            cluster.kill("mortal")
        if len(found) == 600:
            cluster.add("late")
    assert [path for path, _ in found] == sorted(expected)
    alone = [(each.path, each.state) for each in gate.answers(gate.files([str(tmp_path / "store")]), lambda path: None)]
    assert found == alone
    cluster.await_workers(5)
    cluster.kill("late")


def test_a_program_that_kills_its_workers_is_unreadable_alone(client: Any, folder: Path) -> None:
    write(folder / "store" / "deadly.mlir", blocked(1))
    questions = (Question(resolve_target(TARGET)),)
    paths = [f"store/{name}.mlir" for name in ("text0", "deadly", "text1", "text2")]
    requests = (Task(Content(each), questions, each) for each in paths)
    found = dict(zip(paths, DistributedExaminations(DeadlyExaminer(), client).of(requests), strict=True))
    assert str(found.pop("store/deadly.mlir").error).startswith(
        "store/deadly.mlir: the process that checked it crashed"
    )
    assert all(each.error is None and each.findings[0] for each in found.values())


def test_stores_are_compared_as_in_one_process(
    folder: Path, cluster: LocalProcesses, capfd: pytest.CaptureFixture[str]
) -> None:
    filled(folder / "old", 60)
    write(folder / "old" / "text" / "twice.mlir", TWICE)
    write(folder / "old" / "text" / "square.mlir", TWICE)
    assert main(["migrate", "old", "--target", TARGET, "--output-dir", "new"]) == 1
    (folder / "new/text/square.mlirbc").write_bytes(bytes(vt.serialize(SQUARE, TARGET)))
    # Both are run, in child processes of the workers, which are child processes themselves.
    (folder / "new/text/twice.mlirbc").write_bytes(bytes(vt.serialize(SUM, TARGET)))
    command = ["verify", "old", "new", "--rounds", "2", "--output-format", "jsonl"]
    reports = [said(capfd, *command), said(capfd, *command, "--dask", cluster.address)]
    assert [code for code, _ in reports] == [1, 1]
    here, there = ([{**json.loads(line), "seconds": None} for line in out.splitlines()[:-1]] for _, out in reports)
    assert here == there
    by_path = {each["path"]: (each["status"], each["verified"]) for each in there}
    assert by_path["text/twice.mlirbc"] == ("same", "same results")
    assert by_path["text/square.mlirbc"] == ("mismatch", None)
    assert sum(each == ("missing", None) for each in by_path.values()) == 9
    assert main([*command[:-1], "parquet", "-o", "results.parquet", "--dask", cluster.address]) == 1
    rows = pq.read_table("results.parquet").to_pylist()
    assert {row["path"]: (row["status"], row["verified"]) for row in rows} == by_path
    code, out = said(capfd, "report", "results.parquet", "--format", "text")
    assert code == 0
    assert out.startswith("62 files, ")
    assert "(store-verification, after new, before old)" in out
    assert "AFTER does not compute the same as BEFORE, within 4 ulp" in out


def test_workers_that_die_in_the_middle_of_a_comparison(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "old", 400)
    moved = list(vt.migrate(tmp_path / "old", TARGET, output_dir=tmp_path / "new", executor=client))
    cluster.add("mortal")
    cluster.await_workers(5)
    found = []
    for record in vt.verify_stores(tmp_path / "old", tmp_path / "new", executor=client):
        found.append(record)
        if len(found) == 100:
            cluster.kill("mortal")
    assert len(found) == len({each.path for each in found}) == len(expected)
    missing = {str(each.before) for each in found if each.status == "missing"}
    assert missing == {each.path for each in moved if each.status == "blocked"}
    assert {each.verified for each in found if each.status == "same"} == {"same program"}
    assert {str(each.before): each.new_digest for each in found if each.status == "same"} == {
        path: digest for path, digest in expected.items() if path not in missing
    }


def test_workers_with_several_threads_run_programs(folder: Path, client: Any, cluster: LocalProcesses) -> None:
    """Threads of a worker share what runs programs in child processes."""
    for number in range(12):
        for store, text in (("old", TWICE), ("new", SUM if number % 3 else SQUARE)):
            write(folder / store / f"{number:02}.mlir", text)
    cluster.add("threaded", "--nthreads", "3")
    cluster.await_workers(5)
    try:
        found = list(vt.verify_stores("old", "new", rounds=2, executor=client))
    finally:
        cluster.kill("threaded")
    assert [(each.path, each.status) for each in found] == [
        (f"{number:02}.mlir", "same" if number % 3 else "mismatch") for number in range(12)
    ]


@pytest.mark.parametrize("command", [["check", *ASKED], ["verify", "store"]], ids=["check", "verify"])
def test_no_scheduler_at_the_address(
    command: list[str], folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Instead of ten seconds: none will answer.
    monkeypatch.setattr("vhlo_tools.stores.workers._ANSWERED", 1.0)
    assert main([*command, "store", "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capfd.readouterr().err
