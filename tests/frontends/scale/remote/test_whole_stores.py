"""Checks and comparisons of whole buckets, by this process and by the workers of a cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.dask_cluster import running_cluster
from support.store_buckets import Bucket
from support.store_of_kinds import fill as fill_with_all

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.files import counted, write_object
from vhlo_tools.gate import Gate, Settings
from vhlo_tools.stores import connected

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def fill(bucket: Bucket) -> None:
    for number in range(12):
        vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(str(bucket / f"old/{number % 4}/{number:02}.mlirbc"))
    write_object(bucket / "old/a b/tan.mlir", [(FEATURES / "tan.mlir").read_bytes()])
    write_object(bucket / "old/damaged.mlirbc", [b"ML\xefR damaged"])


def test_a_bucket_by_this_process(bucket: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fill(bucket)
    old, new = str(bucket / "old/"), str(bucket / "new")
    assert main(["migrate", old, "--target", "1.4.0", "--output-dir", new, "--exclude", "damaged*"]) == 0
    capfd.readouterr()
    assert main(["verify", old, new, "-j", "2", "--exclude", "damaged*", "--exclude", "00.*"]) == 0
    assert capfd.readouterr().out.startswith("12 the same (12 by program; ")
    # Of what a glob selects, and of what one store alone has.
    assert main(["verify", f"{old}?/*.mlirbc", f"{new}/", "--output-format", "json"]) == 1
    assert json.loads(capfd.readouterr().out)["summary"]["files"] == {"same": 12, "added": 1}
    assert main(["verify", old, f"{new}er/"]) == 2
    assert "no folder with programs, and no glob or prefix that has any" in capfd.readouterr().err


def test_a_bucket_by_a_cluster(s3: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fill(s3)
    old, new = str(s3 / "old/"), str(s3 / "new/")
    check = ["check", old, "--target", "1.3.0", "--output-format", "json"]
    verify = ["verify", old, new, "--output-format", "jsonl"]
    assert main(["migrate", old, "--target", "1.4.0", "--output-dir", new]) == 2
    # Workers are led to the store by their environment, as this process is.
    with running_cluster(tmp_path, 2) as cluster:
        for command, expected in ((check, 2), (verify, 1)):
            capfd.readouterr()
            codes, said = [], []
            for where in (["-j", "1"], ["--dask", cluster.address]):
                codes.append(main([*command, *where]))
                said.append(re.sub(r'"seconds": [0-9.e-]+', "", capfd.readouterr().out))
            assert codes == [expected, expected]
            assert said[0] == said[1]
        assert said[1].count('"verified": "same program"') == 13
        assert said[1].count('"status": "missing"') == 1
        gate = Gate(Settings(target=("1.3.0",)))
        with connected(cluster.address) as client, counted() as traffic:
            answers = list(gate.answers(gate.listing([old]), lambda path: None, executor=client))
        assert len(answers) == 14
        # This process has read nothing but the listing.
        assert traffic.bytes_read == 0


def test_what_only_this_process_has_is_sent_to_workers(make_bucket: Callable[[str], Bucket], tmp_path: Path) -> None:
    memory = make_bucket("memory")
    write_object(memory / "tan.mlir", [(FEATURES / "tan.mlir").read_bytes()])
    gate = Gate(Settings(target=("1.3.0",)))
    with running_cluster(tmp_path, 1) as cluster, connected(cluster.address) as client:
        (answer,) = gate.answers(gate.listing([str(memory.url)]), lambda path: None, executor=client)
    (here,) = gate.answers(gate.files([str(memory.url)]), lambda path: None)
    assert answer == here
    assert answer.state == "blocked"


def test_a_bucket_is_what_a_folder_is(bucket: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of files of all kinds, under all names, the same reports come to the byte."""
    folder = tmp_path / "store"
    counts = fill_with_all(folder, 40)
    for path in folder.rglob("*"):
        if path.is_file():
            write_object(bucket / f"all/{path.relative_to(folder).as_posix()}", [path.read_bytes()])
    there = str(bucket / "all/")
    for command in (
        ["check", "STORE", "--target", "1.9.0", "--output-format", "json", "-j", "1"],
        ["check", "STORE", "--target", "1.9.0", "--output-format", "junit", "-j", "1"],
        ["store", "status", "STORE", "--as-of", "2026-08-01", "--output-format", "json"],
    ):
        said = []
        for store in (f"{folder}/", there):
            capfd.readouterr()
            code = main([each if each != "STORE" else store for each in command])
            # Files of a folder come before those of its folders, and objects in the order of their keys.
            text = capfd.readouterr().out.replace(store, "")
            said.append((code, sorted(line.rstrip(",") for line in text.splitlines())))
        assert said[0] == said[1]
        assert said[0][0] == 2
    plans = []
    for store in (f"{folder}/", there):
        capfd.readouterr()
        main(["migrate", store, "--target", "1.9.0", "--dry-run", "--output-format", "json", "-j", "1"])
        plan = json.loads(capfd.readouterr().out.replace(store, ""))
        # Of a plan, only a sample is tried.
        files = sorted((each["path"], each["status"], each["kind"], each["reason"] or "") for each in plan["files"])
        plans.append((files, plan["summary"]["files"], plan["summary"]["unrecognised"]))
    assert plans[0] == plans[1]
    assert plans[0][2] == counts.others
    if bucket.kind == "s3":
        with running_cluster(tmp_path, 2) as cluster:
            reports = []
            for where in (["-j", "1"], ["--dask", cluster.address]):
                capfd.readouterr()
                main(["check", there, "--target", "1.9.0", "--output-format", "json", *where])
                reports.append(capfd.readouterr().out)
            assert reports[0] == reports[1]
            assert json.loads(reports[0])["summary"]["unrecognised"] == counts.others
