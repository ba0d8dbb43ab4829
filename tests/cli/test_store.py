"""``vhlo store status``: who leaves which window when, and who reads what today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.corpus import EXAMPLES, FEATURES

import vhlo_tools as vt
from vhlo_tools.cli.main import main

DAY = {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"}
REPORT = {
    "type": "object",
    "required": ["horizon", "files", "summary"],
    "properties": {
        "horizon": DAY,
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "status", "leaves", "window", "version", "written", "windows", "readers"],
                "properties": {
                    "status": {"enum": ["left", "leaves", "within", "none", "unreadable"]},
                    "windows": {"type": "object", "additionalProperties": DAY},
                    "readers": {"type": "array", "items": {"required": ["package", "oldest", "newest"]}},
                },
            },
        },
        "summary": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(folder / "new.mlirbc")
    vt.serialize(EXAMPLES / "saxpy.mlir", "0.9.0").save(folder / "old.mlirbc")
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(folder / "tan.mlirbc")
    (folder / "gelu.jax_export").write_bytes((EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes())
    (folder / "text.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    (folder / "old.mlirbc.orig").write_bytes((folder / "old.mlirbc").read_bytes())
    return folder


def status(store: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["store", "status", str(store), *arguments, "--output-format", "json"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, REPORT)
    return code, report


def test_each_window_ends_so_long_after_the_version_came(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = status(store, capsys, "--as-of", "2026-04-01")
    assert code == 1
    found = {Path(each["path"]).name: each for each in report["files"]}
    # Old files that a migration has kept are no part of the store.
    assert set(found) == {"old.mlirbc", "new.mlirbc", "tan.mlirbc", "gelu.jax_export", "text.mlir"}
    assert found["new.mlirbc"]["windows"] == {"backward": "2030-01-28"}
    # Of 0.9.0, for which half a year was promised.
    assert found["old.mlirbc"]["windows"] == {"backward": "2023-09-02"}
    assert found["gelu.jax_export"]["windows"] == {
        "backward": "2031-03-27",
        # jax 0.10.0, the first that writes such files, is of 2026-04-16.
        "jax-export": "2026-10-16",
    }
    assert {name: each["status"] for name, each in found.items()} == {
        "old.mlirbc": "left",
        "gelu.jax_export": "within",
        "new.mlirbc": "within",
        "tan.mlirbc": "within",
        "text.mlir": "none",
    }
    # The most urgent first.
    assert [Path(each["path"]).name for each in report["files"]] == [
        *("old.mlirbc", "gelu.jax_export", "new.mlirbc", "tan.mlirbc", "text.mlir"),
    ]


def test_the_forward_window_counts_on_request(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = status(store, capsys, "--as-of", "2026-04-01", "--window", "forward")
    found = {Path(each["path"]).name: each for each in report["files"]}
    assert found["new.mlirbc"]["windows"] == {"forward": "2027-01-28"}
    assert found["old.mlirbc"]["windows"] == {"forward": "2023-04-02"}
    assert found["gelu.jax_export"]["windows"] == {"forward": "2028-03-27"}
    _, both = status(store, capsys, "--as-of", "2026-04-01", "--window", "forward", "--window", "backward")
    assert both["files"][0]["windows"] == {"backward": "2023-09-02", "forward": "2023-04-02"}
    # Nobody who only keeps files is told about it.
    new = str(store / "new.mlirbc")
    assert main(["store", "status", new, "--as-of", "2027-01-27"]) == 0
    assert "forward" not in capsys.readouterr().out
    assert main(["store", "status", new, "--as-of", "2027-01-27", "--window", "forward"]) == 1


def test_the_horizon_decides(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--window", "jax-export", "--as-of", "2026-07-18"]
    assert status(store, capsys, *arguments)[0] == 1
    assert status(store, capsys, *arguments, "--horizon", "89d")[0] == 0
    code, report = status(store, capsys, *arguments, "--horizon", "3m")
    assert (code, report["horizon"]) == (1, "2026-10-18")
    assert report["files"][0]["status"] == "leaves"
    assert status(store, capsys, "--window", "backward", "--as-of", "2023-09-02", "--horizon", "0d")[0] == 1
    assert status(store, capsys, "--window", "backward", "--as-of", "2023-09-01", "--horizon", "0d")[0] == 0


def test_readers_are_the_releases_of_that_day(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = status(store, capsys, "--as-of", "2025-12-01")
    found = {Path(each["path"]).name: each["readers"] for each in report["files"]}
    (old,) = [each for each in found["old.mlirbc"] if each["package"] == "jaxlib"]
    (tan,) = [each for each in found["tan.mlirbc"] if each["package"] == "jaxlib"]
    assert (old["oldest"], tan["oldest"]) == ("0.4.13", "0.4.31")
    assert old["newest"] == tan["newest"] == "0.8.1"


def test_text(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "status", str(store / "old.mlirbc"), "--as-of", "2026-04-01"]) == 1
    first, second, third, last = capsys.readouterr().out.splitlines()
    assert first.split()[:4] == ["left", "0.9.0", "2023-09-02", "backward"]
    assert second == "  written 2023-03-02; backward until 2023-09-02"
    assert third.startswith("  read by jaxlib 0.4.13 to ")
    assert last == "1 left"


def test_what_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "torn.mlirbc").write_bytes(bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0"))[:60])
    code, report = status(tmp_path, capsys, "-j", "2")
    assert code == 2
    assert report["files"][0]["status"] == "unreadable"
    assert report["files"][0]["error"]
    assert main(["store", "status", str(tmp_path / "missing"), "--output-format", "json"]) == 2
    assert capsys.readouterr().out == ""
    assert main(["store", "status", str(tmp_path), "--horizon", "soon"]) == 2
    assert main(["store", "status", str(tmp_path), "--horizon", "9999999999d"]) == 2


def test_in_python(store: Path) -> None:
    from datetime import date

    found = list(vt.store_status(store, windows=["backward"], as_of=date(2026, 4, 1)))
    assert [each.version and str(each.version) for each in found][:3] == ["0.9.0", "1.9.0", "1.9.0"]
    assert found[0].leaves(["backward"]) == ("backward", date(2023, 9, 2))
    with pytest.raises(ValueError, match="'sideways' is not a window"):
        vt.store_status(store, windows=["sideways"])  # type: ignore[list-item]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_report_in_a_file(
    output_format: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["store", "status", str(store), "--as-of", "2026-04-01", "--output-format", output_format]
    assert main(command) == 1
    expected = capsys.readouterr().out
    (tmp_path / "report").write_text("an older one, which is replaced")
    assert main([*command, "-o", str(tmp_path / "report")]) == 1
    captured = capsys.readouterr()
    assert (captured.out, (tmp_path / "report").read_text()) == ("", expected)
    said = "1 left, 3 stay longer, 1 without a window"
    assert captured.err == f"vhlo: {said}; the result is in {tmp_path / 'report'}\n"
    assert main([*command, "-o", str(tmp_path)]) == 2
    assert "is a folder: expected a file to write" in capsys.readouterr().err


def test_a_table_needs_a_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in it is tested in tests/frontends/scale, with pyarrow."""
    assert main(["store", "status", str(store), "--output-format", "parquet"]) == 2
    assert "a Parquet file is not for a terminal: give -o FILE" in capsys.readouterr().err
