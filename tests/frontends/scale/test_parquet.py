"""Parquet files of results, read back by pyarrow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.corpus import EXAMPLES, FEATURES

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.stores import MIGRATION_TABLE, STATUS_TABLE, Column, MigrationRecord, Table, parquet_chunks

DAY = "2026-08-01"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(folder / "new.mlirbc")
    vt.serialize(EXAMPLES / "saxpy.mlir", "0.9.0").save(folder / "old.mlirbc")
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(folder / "tan.mlirbc")
    (folder / "gelu.jax_export").write_bytes((EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes())
    (folder / "text.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    (folder / "torn.mlirbc").write_bytes((folder / "new.mlirbc").read_bytes()[:60])
    (folder / os.fsdecode(b"odd \xff.mlirbc")).write_bytes((folder / "new.mlirbc").read_bytes())
    return folder


def status(store: Path, output: Path, *arguments: str) -> int:
    command = ["store", "status", str(store), "--as-of", DAY, "--output-format", "parquet", "-o", str(output)]
    return main([*command, *arguments])


def test_rows_are_those_of_the_other_formats(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "status.parquet"
    assert status(store, output) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    said = "1 leave a window by 2026-10-30, 1 left a window before, 3 stay longer, 1 without a window, 1 unreadable"
    assert captured.err == f"vhlo: {said}; the result is in {output}\n"
    rows = pq.read_table(output).to_pylist()
    assert main(["store", "status", str(store), "--as-of", DAY, "--output-format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert len(rows) == len(report["files"]) == 7
    for row, said in zip(rows, report["files"], strict=True):
        same = (
            "status",
            "window",
            "kind",
            "size",
            "version",
            "jax_version",
            "calling_convention",
            "readable_since",
        )
        assert {name: row[name] for name in same} == {name: said[name] for name in same}
        assert row["error"] == said["reason"]
        assert row["path"] == said["path"].encode("utf-8", "backslashreplace").decode()
        for name in ("leaves", "written"):
            assert (row[name] and str(row[name])) == said[name]
        windows = {
            name: str(row[name.replace("-", "_")])
            for name in ("backward", "forward", "jax-export")
            if row[name.replace("-", "_")]
        }
        assert windows == said["windows"]
        assert row["readers"] == said["readers"]


def test_columns_have_their_types_and_descriptions(store: Path, tmp_path: Path) -> None:
    output = tmp_path / "status.parquet"
    status(store, output, "--window", "forward", "--horizon", "2y")
    file = pq.ParquetFile(output)
    assert [each.name for each in file.schema_arrow] == [each.name for each in STATUS_TABLE.columns]
    types = {each.name: str(each.type) for each in file.schema_arrow}
    assert types["path"] == types["version"] == "string"
    assert types["size"] == "int64"
    assert types["leaves"] == types["forward"] == "date32[day]"
    assert types["readers"] == "list<element: struct<package: string, oldest: string, newest: string>>"
    for field, column in zip(file.schema_arrow, STATUS_TABLE.columns, strict=True):
        assert field.metadata[b"description"].decode() == column.description
    said = {key: value for key, value in file.schema_arrow.metadata.items() if key.startswith(b"vhlo_tools.")}
    assert said == {
        b"vhlo_tools.table": b"store-status",
        b"vhlo_tools.day": DAY.encode(),
        b"vhlo_tools.horizon": b"2028-08-01",
    }
    ends = {Path(row["path"]).name: (row["forward"], row["backward"]) for row in file.read().to_pylist()}
    assert ends["new.mlirbc"] == (date(2027, 1, 28), None)


def test_a_store_without_programs_of_a_window_is_a_table_too(tmp_path: Path) -> None:
    (tmp_path / "text.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    assert status(tmp_path / "text.mlir", tmp_path / "status.parquet") == 0
    (row,) = pq.read_table(tmp_path / "status.parquet").to_pylist()
    assert (row["status"], row["version"], row["readers"]) == ("none", None, [])


def test_a_file_is_replaced_whole_or_not_at_all(store: Path, tmp_path: Path) -> None:
    output = tmp_path / "status.parquet"
    output.write_text("mine")
    assert status(store / "missing", output) == 2
    assert output.read_text() == "mine"
    assert status(store, output) == 2
    assert pq.read_table(output).num_rows == 7
    assert list(tmp_path.iterdir()) == [output]


def test_it_is_not_written_to_a_terminal_but_to_a_pipe(store: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "vhlo_tools.cli.main",
        "store",
        "status",
        str(store / "new.mlirbc"),
        "--as-of",
        DAY,
    ]
    command += ["--output-format", "parquet"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "give -o FILE" in refused.stderr
    primary, secondary = os.openpty()
    refused = subprocess.run([*command, "-o", "-"], stdout=secondary, stderr=subprocess.PIPE, text=True, check=False)
    assert refused.returncode == 2
    assert "bytes are not written to a terminal" in refused.stderr
    os.close(primary)
    os.close(secondary)
    piped = subprocess.run([*command, "-o", "-"], capture_output=True, check=False)
    assert (piped.returncode, piped.stderr) == (0, b"")
    (tmp_path / "piped.parquet").write_bytes(piped.stdout)
    assert pq.read_table(tmp_path / "piped.parquet").num_rows == 1


def test_migrations_with_their_findings(store: Path, tmp_path: Path) -> None:
    records = list(vt.plan_migration(store, "1.3.0"))
    output = tmp_path / "migration.parquet"
    output.write_bytes(b"".join(parquet_chunks(MIGRATION_TABLE, records)))
    table = pq.read_table(output)
    rows = {Path(each["path"]).name: each for each in table.to_pylist()}
    assert rows.keys() == {
        os.fsencode(Path(each.path).name).decode("utf-8", "backslashreplace").replace("\\xff", "\\udcff")
        for each in records
    }
    tan = rows["tan.mlirbc"]
    assert (tan["ok"], tan["status"], tan["version"], tan["target"]) == (False, "blocked", "1.9.0", "1.3.0")
    (finding,) = tan["findings"]
    assert (finding["feature"], finding["introduced"], finding["count"]) == ("tan", "1.4.0", 1)
    assert rows["new.mlirbc"]["status"] == "move"
    assert len(rows["new.mlirbc"]["digest"]) == 64
    assert str(table.schema.field("seconds").type) == "double"
    assert str(table.schema.field("ok").type) == "bool"


def test_every_field_of_a_record_has_a_column() -> None:
    columns = {each.name for each in MIGRATION_TABLE.columns}
    assert columns == {"ok", *MigrationRecord.__slots__}


TABLE: Table[int] = Table(
    "numbers",
    (
        Column("number", "integer", "number", lambda row: row),
        Column("text", "text", "a text of its own", lambda row: f"{row:0100d}"),
    ),
)


def test_rows_are_written_in_groups_as_they_come(tmp_path: Path) -> None:
    taken = 0

    def rows() -> Iterator[int]:
        nonlocal taken
        for number in range(300_000):
            taken = number
            yield number

    chunks = parquet_chunks(TABLE, rows())
    first = next(chunks)
    # The first group was given away when it was full.
    assert taken < 200_000
    output = tmp_path / "numbers.parquet"
    output.write_bytes(first + b"".join(chunks))
    file = pq.ParquetFile(output)
    assert file.num_row_groups == 5
    assert [row for batch in file.iter_batches(columns=["number"]) for row in batch.column(0).to_pylist()] == list(
        range(300_000)
    )


MEASURED = """
import resource, sys
sys.path.insert(0, {folder!r})
from test_parquet import TABLE, parquet_chunks
size = sum(len(each) for each in parquet_chunks(TABLE, range(int(sys.argv[1]))))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, size)
"""


def test_memory_does_not_grow_with_rows() -> None:
    def megabytes(rows: int) -> int:
        code = MEASURED.format(folder=str(Path(__file__).parent))
        paths = [str(Path(each).resolve()) for each in sys.path if each]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-c", code, str(rows)]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return int(result.stdout.split()[0])

    few, many = megabytes(200_000), megabytes(1_000_000)
    assert many < few + 60


def test_without_pyarrow_it_says_what_to_install(store: Path, tmp_path: Path) -> None:
    """In a process of its own, that has no pyarrow."""
    code = (
        "import sys; sys.modules['pyarrow'] = None; from vhlo_tools.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    output = tmp_path / "status.parquet"
    command = ["store", "status", str(store), "--output-format", "parquet", "-o", str(output)]
    result = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install '.[distributed]' in a clone of vhlo_tools" in result.stderr
    assert "Traceback" not in result.stderr
    assert not output.exists()
