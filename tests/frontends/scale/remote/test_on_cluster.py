"""Migrations of stores behind URLs on a cluster, whose workers read and write the objects themselves."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pyarrow.parquet as pq
import pytest
from support.cluster_stores import TARGET, filled, found_in
from support.dask_cluster import LocalProcesses, running_cluster
from support.store_buckets import Bucket
from support.store_servers import SERVERS

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.files import objects_under, open_object, write_object
from vhlo_tools.stores import claim as claims, connected

#: Objects of which a cluster works on ten batches.
NUMBER = 320

#: Of connections to processes that were killed, in the library.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def store(make_bucket: Callable[[str], Bucket]) -> Bucket:
    return make_bucket("s3")


@pytest.fixture
def cluster(store: Bucket, tmp_path: Path) -> Iterator[LocalProcesses]:
    """A cluster of four workers whose environment leads them to the store, as it leads this process."""
    settings = {name: os.environ[name] for name in SERVERS["s3"].settings(0)}
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster", 4, settings) as found:
        yield found


def uploaded(store: Bucket, folder: Path, number: int) -> dict[str, str]:
    """Write objects, and return the SHA-256 that each has after a migration of the same files in one process."""
    filled(folder, number)
    # One request for each object.
    client = boto3.client("s3")
    for path in sorted(folder.rglob("*.mlirbc")):
        url = store / path.name
        client.put_object(Bucket=url.bucket, Key=url.key, Body=path.read_bytes())
    client.close()
    list(vt.migrate(folder, TARGET))
    return {str(store / Path(path).name): digest for path, digest in found_in(folder).items()}


def digests_of(store: Bucket) -> dict[str, str]:
    """Return the SHA-256 of all objects, hidden ones too."""
    urls = (each.url for page in objects_under(store.url) for each in page)
    return {str(url): hashlib.sha256(bytes(open_object(url))).hexdigest() for url in urls}


def rows_of(table: Path) -> dict[str, str]:
    """Return the SHA-256 of each object, as a table has them: one row for each."""
    rows = pq.read_table(table).to_pylist()
    assert {row["status"] for row in rows} == {"moved", "blocked"}
    found = {row["path"]: row["new_digest"] or row["digest"] for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_worker_is_killed_in_the_middle(store: Bucket, cluster: LocalProcesses, tmp_path: Path) -> None:
    expected = uploaded(store, tmp_path / "files", NUMBER)
    table = tmp_path / "results.parquet"
    written: list[str] = []

    def kill_in_the_middle(method: str, path: str) -> None:
        if method == "PUT" and ".mlirbc" in path:
            written.append(path)
            if len(written) == NUMBER // 3:
                cluster.kill("worker1")

    store.faults.first = kill_in_the_middle
    command = ["migrate", str(store.url), "--target", TARGET, "--dask", cluster.address]
    assert main([*command, "--output-format", "parquet", "-o", str(table)]) == 1
    assert len(written) > NUMBER // 3
    assert digests_of(store) == expected
    assert rows_of(table) == expected


def test_another_client_resumes_without_a_journal(store: Bucket, cluster: LocalProcesses, tmp_path: Path) -> None:
    expected = uploaded(store, tmp_path / "files", NUMBER // 2)
    command = ["migrate", str(store.url), "--target", TARGET, "--dask", cluster.address, "--output-format"]
    (tmp_path / "elsewhere").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "vhlo_tools.cli.main", *command, "jsonl"],
        stdout=subprocess.PIPE,
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
    ) as killed:
        assert killed.stdout is not None
        for _ in range(NUMBER // 8):
            assert killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    assert not list((tmp_path / "elsewhere").iterdir())
    table = tmp_path / "results.parquet"
    # The claim of the first is there, and fresh.
    assert main([*command, "parquet", "-o", str(table)]) == 2
    claimed = json.loads(bytes(open_object(store.url / ".vhlo-migration")))
    aged = {**claimed, "seen": claimed["seen"] - claims._GONE}
    write_object(store.url / ".vhlo-migration", [json.dumps(aged).encode()], force=True)
    assert main([*command, "parquet", "-o", str(table)]) == 1
    assert digests_of(store) == expected
    assert rows_of(table) == expected


def test_workers_without_credentials_say_so(store: Bucket, tmp_path: Path) -> None:
    filled(tmp_path / "files", 4)
    for path in (tmp_path / "files").rglob("*.mlirbc"):
        write_object(store / path.name, [path.read_bytes()])
    before = digests_of(store)
    given = SERVERS["s3"].settings(0)
    settings = {name: None if "KEY" in name else os.environ[name] for name in given}
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster", 1, settings) as cluster, connected(cluster.address) as client:
        records = list(vt.migrate(str(store.url), TARGET, executor=client))
    assert {each.status for each in records} == {"unreadable"}
    assert all("credentials" in (each.reason or "") for each in records)
    assert digests_of(store) == before
