"""Work on a real Dask cluster: a scheduler and four workers in processes of their own, which are killed and added."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from distributed import Client
from support.cluster_stores import FROM, TARGET, filled, found_in, hold_memory
from support.corpus import EXAMPLES
from support.dask_cluster import LocalProcesses, running_cluster
from support.migration_tools import DEADLY

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.stores import Journal, Migration, MigrationSettings, Workers, connected

#: Of connections to processes that were killed, in the library.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_a_store_ends_as_in_one_process(client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 800)
    shutil.copytree(tmp_path / "store", tmp_path / "other")
    records = list(vt.migrate(tmp_path / "store", TARGET, executor=client))
    assert found_in(tmp_path / "store") == expected
    assert {each.status for each in records} == {"moved", "blocked"}
    assert {each.path: each.new_digest or each.digest for each in records} == expected
    alone = {each.path.replace("/other/", "/store/"): each.status for each in vt.migrate(tmp_path / "other", TARGET)}
    assert {each.path: each.status for each in records} == alone


def test_workers_that_die_and_come_in_the_middle(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 3_000)
    cluster.add("mortal")
    cluster.await_workers(5)
    records = []
    for record in vt.migrate(tmp_path / "store", TARGET, executor=client):
        records.append(record)
        if len(records) == 300:
            cluster.kill("mortal")
        if len(records) == 600:
            cluster.add("late")
    assert found_in(tmp_path / "store") == expected
    assert len(records) == len({each.path for each in records}) == 3_000
    cluster.await_workers(5)
    cluster.kill("late")


def test_a_worker_that_runs_out_of_memory(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 2_000)
    cluster.add("small", "--memory-limit", "400MB")
    cluster.await_workers(5)
    for number, _ in enumerate(vt.migrate(tmp_path / "store", TARGET, executor=client)):
        if number == 200:
            # Beside what it migrates: its nanny kills it, and starts another.
            greedy = client.submit(hold_memory, workers=["small"], pure=False)
    assert found_in(tmp_path / "store") == expected
    deadline = time.monotonic() + 60
    while "exceeded 95% memory budget" not in cluster.log("small"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    greedy.cancel()
    cluster.kill("small")


def test_a_file_that_kills_its_worker_is_found(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 40)
    deadly = tmp_path / "store" / "deadly.mlirbc"
    vt.serialize(EXAMPLES / "saxpy.mlir", FROM).save(deadly)
    settings = MigrationSettings((str(tmp_path / "store"),), vt.Version(TARGET))
    with Journal(None, settings) as journal, Workers(client) as workers:
        records = {each.path: each for each in Migration(settings, DEADLY, journal).run(workers)}
    assert records.pop(str(deadly)).status == "failed"
    assert {each.path: each.new_digest or each.digest for each in records.values()} == expected
    deadly.unlink()
    assert found_in(tmp_path / "store") == expected


def test_no_file_is_blamed_for_the_worker_that_another_one_killed(tmp_path: Path) -> None:
    """A scheduler that gives nothing a second time blames all that a dead worker had."""
    expected = filled(tmp_path / "store", 40)
    deadly = tmp_path / "store" / "deadly.mlirbc"
    vt.serialize(EXAMPLES / "saxpy.mlir", FROM).save(deadly)
    settings = MigrationSettings((str(tmp_path / "store"),), vt.Version(TARGET))
    (tmp_path / "cluster").mkdir()
    strict = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with (
        running_cluster(tmp_path / "cluster", 1, strict) as cluster,
        connected(cluster.address) as client,
        Journal(None, settings) as journal,
        Workers(client) as workers,
    ):
        records = {each.path: each for each in Migration(settings, DEADLY, journal).run(workers)}
    assert records.pop(str(deadly)).status == "failed"
    assert {each.path: each.new_digest or each.digest for each in records.values()} == expected


def test_a_client_that_is_killed_resumes(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 3_000)
    command = [sys.executable, "-m", "vhlo_tools.cli.main", "migrate", str(tmp_path / "store"), "--target", TARGET]
    command += ["--dask", cluster.address, "--output-format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        for _ in range(500):
            assert killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    assert (tmp_path / "store" / ".vhlo-migration").exists()
    # What workers still had in hand when their client was gone.
    time.sleep(2)
    table = tmp_path / "results.parquet"
    again = subprocess.run([*command[:-1], "parquet", "-o", str(table)], capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert found_in(tmp_path / "store") == expected
    rows = pq.read_table(table).to_pylist()
    assert {row["path"]: row["new_digest"] or row["digest"] for row in rows} == expected


def test_a_scheduler_that_is_gone(tmp_path: Path) -> None:
    expected = filled(tmp_path / "store", 1_000)
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster", 1) as cluster, connected(cluster.address) as client:
        records = vt.migrate(tmp_path / "store", TARGET, executor=client)
        for _ in range(100):
            next(records)
        cluster.kill("scheduler")
        with pytest.raises(vt.WorkerError, match="dropped the work.*repeat the call"):
            list(records)
    assert len(list(vt.migrate(tmp_path / "store", TARGET))) == 1_000
    assert found_in(tmp_path / "store") == expected


def test_a_scheduler_that_goes_before_it_is_asked(tmp_path: Path) -> None:
    with running_cluster(tmp_path, 1) as cluster, connected(cluster.address) as client, Workers(client) as workers:
        cluster.kill("scheduler")
        # Dask has not noticed it yet.
        with pytest.raises(vt.WorkerError, match="dropped the work.*repeat the call"):
            workers.submit(time.sleep, workers.count)


def test_a_client_that_was_closed(cluster: LocalProcesses, tmp_path: Path) -> None:
    filled(tmp_path / "store", 1)
    with connected(cluster.address) as client:
        pass
    with pytest.raises(vt.WorkerError, match="dropped the work.*closed"):
        list(vt.migrate(tmp_path / "store", TARGET, executor=client))
    assert len(list(vt.migrate(tmp_path / "store", TARGET))) == 1


def test_the_status_of_a_store(cluster: LocalProcesses, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "store", 200)
    command = ["store", "status", str(tmp_path / "store"), "--as-of", "2026-08-01"]
    codes = [main(command), main([*command, "--dask", cluster.address])]
    said = capfd.readouterr().out.splitlines()
    assert codes == [0, 0]
    assert len(said) > 200
    assert said[: len(said) // 2] == said[len(said) // 2 :]


def test_no_scheduler_at_the_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Instead of ten seconds: none will answer.
    monkeypatch.setattr("vhlo_tools.stores.workers._ANSWERED", 1.0)
    filled(tmp_path / "store", 1)
    assert main(["migrate", str(tmp_path / "store"), "--target", TARGET, "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capfd.readouterr().err
    assert not (tmp_path / "store" / ".vhlo-migration").exists()
    assert main(["migrate", str(tmp_path / "store"), "--target", TARGET, "--dask", "elsewhere"]) == 2
    assert "no Dask scheduler answers at elsewhere" in capfd.readouterr().err


def test_nothing_of_the_work_stays_at_the_scheduler(cluster: LocalProcesses, client: Any, tmp_path: Path) -> None:
    filled(tmp_path / "store", 400)
    list(vt.migrate(tmp_path / "store", TARGET, executor=client))
    with Client(cluster.address, set_as_default=False) as other:
        deadline = time.monotonic() + 10
        while other.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_the_scheduler_makes_no_objects_of_what_is_passed_on(client: Any, tmp_path: Path) -> None:
    """It keeps the last thousand messages to each worker, and would keep the objects with them."""
    filled(tmp_path / "store", 400)

    def held() -> int:
        import gc

        return sum(str(type(each).__module__).startswith("vhlo_tools.stores") for each in gc.get_objects())

    list(vt.migrate(tmp_path / "store", TARGET, executor=client))
    assert client.run_on_scheduler(held) == 0
