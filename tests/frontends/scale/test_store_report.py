"""`vhlo report` of Parquet files: beside the records they were written from, and of files that are none."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus import EXAMPLES, FEATURES
from support.json_records import schema_problems
from support.page_data import contents_of

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.findings import Finding
from vhlo_tools.stores import MIGRATION_TABLE, MigrationRecord, parquet_chunks, summarize_results

TARGET = vt.Version("1.1.0")


def record(index: int) -> MigrationRecord:
    """Return one of many records: every third is blocked by two ops of one feature, every seventh fails."""
    path, version, seconds = f"store/{index}.mlirbc", vt.Version(f"1.{index % 4 + 1}.0"), 0.001 * (index % 50 + 1)
    known = MigrationRecord(path, "moved", TARGET, version=version, size=index, new_size=2 * index, seconds=seconds)
    if index % 3 == 0:
        tan = Finding("tan", "error", "op", "stablehlo.tan needs 1.4.0", count=2)
        reason = f"{path} cannot be written\nmore"
        return replace(known, status="blocked", findings=(tan, tan), reason=reason, new_size=None)
    if index % 7 == 0:
        backup = f"{path}.orig"
        reason = f"the backup cannot be written: {backup} exists"
        return replace(known, status="failed", reason=reason, backup=backup, new_size=None)
    return known


def written(path: Path, numbers: range) -> list[MigrationRecord]:
    records = [record(index) for index in numbers]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(parquet_chunks(MIGRATION_TABLE, records, {"target": str(TARGET)})))
    return records


def test_a_page_shows_the_same(tmp_path: Path) -> None:
    records = written(tmp_path / "results" / "a.parquet", range(1, 600))
    records += written(tmp_path / "results" / "deep" / "b.parquet", range(600, 900))
    held = contents_of(vt.report(tmp_path / "results").html)
    tallies = {title: {row["what"]: row["files"] for row in rows} for title, rows in held["tallies"]}
    assert tallies["By status"] == Counter(each.status for each in records)
    assert tallies["By version"] == Counter(str(each.version) for each in records)
    assert [(each["id"], each["files"]) for each in held["blockers"]] == [("tan", tallies["By status"]["blocked"])]
    assert held["files_number"] == len(records)
    assert ["Asked for", "target 1.1.0"] in held["lines"]


def test_counts_are_those_of_the_records(tmp_path: Path) -> None:
    records = written(tmp_path / "results" / "a.parquet", range(1, 6_000))
    records += written(tmp_path / "results" / "deep" / "b.parquet", range(6_000, 9_000))
    (tmp_path / "results" / "_metadata.parquet").write_bytes(b"not ours")
    summary = summarize_results(str(tmp_path / "results"))
    assert (summary.table, summary.said) == ("migration", {"target": "1.1.0"})
    assert summary.files.counts == Counter(each.status for each in records)
    for status, size in summary.sizes.counts.items():
        assert size == sum(each.size for each in records if each.status == status)
    assert summary.versions.counts == Counter(str(each.version) for each in records)
    assert summary.new_size == sum(each.new_size or 0 for each in records)
    blocked = summary.files.counts["blocked"]
    assert summary.features["tan"].files == blocked
    assert summary.features["tan"].count == 4 * blocked
    failed = summary.files.counts["failed"]
    assert summary.reasons.counts == {
        "FILE cannot be written": blocked,
        "the backup cannot be written: BACKUP exists": failed,
    }
    seconds = [each.seconds for each in records if each.seconds]
    assert summary.seconds.total == pytest.approx(sum(seconds))
    assert summary.seconds.median == pytest.approx(statistics.median(seconds), rel=0.02)
    assert [each for each, _ in summary.seconds.slowest] == sorted(seconds)[:-6:-1]


def test_reports_of_both_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    store.mkdir()
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(store / "new.mlirbc")
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(store / "tan.mlirbc")
    (store / "torn.mlirbc").write_bytes((store / "new.mlirbc").read_bytes()[:60])
    told = ["--output-format", "parquet", "-o"]
    assert main(["store", "status", str(store), "--as-of", "2026-08-01", *told, str(tmp_path / "status.parquet")]) == 2
    assert main(["migrate", str(store), "--target", "1.3.0", "-j", "1", *told, str(tmp_path / "moved.parquet")]) == 2
    capsys.readouterr()
    assert main(["report", str(tmp_path / "status.parquet"), "--format", "text"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("3 files, ")
    assert said[0].endswith("(store-status, day 2026-08-01, horizon 2026-10-30)")
    assert [line.split()[:2] for line in said[1:3]] == [["within", "2"], ["unreadable", "1"]]
    assert not any(line.startswith("seconds") for line in said)
    assert main(["report", str(tmp_path / "moved.parquet"), "-o", "-", "--format", "text"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in said[1:4]} == {"moved", "blocked", "unreadable"}
    assert "             1 tan (1 times)" in said
    assert any("FILE cannot be written for 1.3.0" in line for line in said)
    assert any(line.endswith("store/new.mlirbc") for line in said)
    assert main(["report", str(tmp_path / "moved.parquet"), "--output-format", "json"]) == 0
    printed = capsys.readouterr().out
    assert main(["report", str(tmp_path / "moved.parquet"), "-o", str(tmp_path / "moved.json")]) == 0
    assert (tmp_path / "moved.json").read_text() == printed
    report = json.loads(printed)
    assert schema_problems("report", report) == []
    assert report["files"] == {"moved": 1, "blocked": 1, "unreadable": 1}
    assert report["features"] == {"tan": {"files": 1, "count": 1}}
    assert report["seconds"]["files"] == 1


def test_more_different_reasons_than_are_kept(tmp_path: Path) -> None:
    def records() -> Iterator[MigrationRecord]:
        for index in range(9_000):
            reason = "often" if index % 3 == 0 else f"once {index} " + "x" * 1_000
            yield MigrationRecord(f"file{index}", "failed", TARGET, reason=reason)

    path = tmp_path / "results.parquet"
    path.write_bytes(b"".join(parquet_chunks(MIGRATION_TABLE, records())))
    reasons = summarize_results(str(path)).reasons
    assert reasons.ranked()[0] == ("often", 3_000)
    assert len(reasons.counts) <= 2_000
    assert reasons.counts.total() + reasons.others == 9_000
    assert max(len(each or "") for each in reasons.counts) == 400


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(path), "--format", "text"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_what_is_no_table_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"path": ["a"]}), path)
    assert "its metadata vhlo_tools.table names no table: expected migration or store-status" in refused(path, capsys)
    pq.write_table(pa.table({"path": ["a"]}).replace_schema_metadata({"vhlo_tools.table": "plans"}), path)
    assert "names the table 'plans'" in refused(path, capsys)
    pq.write_table(pa.table({"path": ["a"]}).replace_schema_metadata({"vhlo_tools.table": "migration"}), path)
    assert "the column ok of the table migration is missing: expected bool" in refused(path, capsys)
    pq.write_table(pa.table({"path": [1]}).replace_schema_metadata({"vhlo_tools.table": "migration"}), path)
    assert "the column path of the table migration has the type int64: expected string" in refused(path, capsys)
    path.write_text("path,status\n")
    assert "is not a Parquet file, or is damaged" in refused(path, capsys)
    path.unlink()
    assert "No such file" in refused(path, capsys)
    assert "has no *.parquet file" in refused(tmp_path, capsys)


def test_a_folder_of_two_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a.parquet", range(10))
    rows = pq.read_table(tmp_path / "a.parquet")
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(tmp_path / "new.mlirbc")
    main(["store", "status", str(tmp_path), "--output-format", "parquet", "-o", str(tmp_path / "b.parquet")])
    capsys.readouterr()
    assert "b.parquet is of the table store-status, and" in refused(tmp_path, capsys)
    assert rows.num_rows == 10


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Bytes are flipped, and files cut: a report, or an error that names the file; in one process, that survives."""
    written(tmp_path / "whole.parquet", range(300))
    whole = (tmp_path / "whole.parquet").read_bytes()
    drawing = random.Random(0)
    refused = 0
    for turn in range(400):
        damaged = bytearray(whole)
        if turn % 4 == 0:
            del damaged[drawing.randrange(len(damaged)) :]
        # The footer, which says where everything is, is the last part.
        least = len(damaged) * 3 // 4 if turn % 4 == 1 else 0
        for _ in range(drawing.randrange(1, 4) if damaged else 0):
            damaged[drawing.randrange(least, len(damaged))] ^= 1 << drawing.randrange(8)
        path = tmp_path / "damaged.parquet"
        path.write_bytes(damaged)
        try:
            summarize_results(str(path)).as_json()
        except vt.ResultsError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 200


MEASURED = """
import resource, sys
from vhlo_tools.stores import summarize_results
print(summarize_results(sys.argv[1]).files.counts.total(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    def megabytes(rows: int) -> int:
        path = tmp_path / f"{rows}.parquet"
        path.write_bytes(b"".join(parquet_chunks(MIGRATION_TABLE, (record(index) for index in range(rows)))))
        paths = [str(Path(each).resolve()) for each in sys.path if each]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-c", MEASURED, str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        number, peak = map(int, result.stdout.split())
        assert number == rows
        return peak

    assert megabytes(300_000) < megabytes(50_000) + 40


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; from vhlo_tools.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "report", str(tmp_path), "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install '.[distributed]' in a clone of vhlo_tools" in result.stderr
    assert "Traceback" not in result.stderr
