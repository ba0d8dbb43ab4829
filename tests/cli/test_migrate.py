"""``vhlo migrate`` as a command: plans, reports in every format, exit codes, and what goes where."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.corpus import EXAMPLES, FEATURES
from support.corpus_files import corpus_files
from support.json_records import body
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.cli.display import shown_progress
from vhlo_tools.cli.main import main

pytestmark = pytest.mark.usefixtures("kept")

VHLO = [sys.executable, "-m", "vhlo_tools.cli.main"]
COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
TEXT = {"type": ["string", "null"]}
FILE = {
    "type": "object",
    "required": ["path", "ok", "status", "kind", "version", "target", "size", "findings", "reason", "output", "backup"],
    "properties": {
        "path": {"type": "string"},
        "ok": {"type": "boolean"},
        "status": {"enum": ["move", "moved", "current", "blocked", "unreadable"]},
        "kind": {"enum": ["portable-artifact", "jax-export", "mlir-text", None]},
        "version": TEXT,
        "target": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "size": {"type": "integer", "minimum": 0},
        "new_size": {"type": ["integer", "null"]},
        "digest": TEXT,
        "new_digest": TEXT,
        "leads_to": TEXT,
        "output": TEXT,
        "backup": TEXT,
        "old_version": TEXT,
        "verified": TEXT,
        "reason": TEXT,
        "seconds": {"type": ["number", "null"]},
        "findings": {"type": "array", "items": {"type": "object", "required": ["feature", "level", "kind", "message"]}},
    },
    "additionalProperties": False,
}
REPORT = {
    "type": "object",
    "required": ["ok", "files", "summary"],
    "properties": {
        "ok": {"type": "boolean"},
        "files": {"type": "array", "items": FILE},
        "summary": {
            "type": "object",
            "required": ["files", "sizes", "versions", "new_size"],
            "properties": {
                "files": COUNTS,
                "sizes": COUNTS,
                "versions": COUNTS,
                "new_size": {"type": "integer"},
                "estimated_seconds": {"type": ["number", "null"]},
                "unrecognised": {"type": "integer"},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(folder / "saxpy.mlirbc")
    vt.serialize(FEATURES / "tan.mlir", "1.4.0").save(folder / "tan.mlirbc")
    (folder / "gelu.jax_export").write_bytes((EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes())
    return folder


def migrated(store: Path, *arguments: str, target: str = "1.3.0") -> int:
    return main(["migrate", str(store), "--target", target, "-j", "1", *arguments])


def test_a_plan_is_a_table(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    (store / "saxpy.text.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    before = {each.name: each.read_bytes() for each in store.iterdir()}
    assert migrated(Path("store"), "--dry-run") == 1
    lines = capsys.readouterr().out.splitlines()
    # The tan.mlirbc is blocked, with the reason below; the end says what all of it would take.
    assert [line.split()[:2] for line in lines[:3]] == [["move", "1.15.0"], ["move", "1.9.0"], ["move", "-"]]
    assert lines[2].endswith("store/saxpy.text.mlir -> " + os.path.realpath(store / "saxpy.text.mlirbc"))
    assert lines[3].split()[:2] == ["blocked", "1.4.0"]
    assert "stablehlo.tan needs StableHLO 1.4.0" in lines[5]
    assert lines[-1].startswith("3 to move (")
    assert lines[-1].endswith("s with one process")
    assert {each.name: each.read_bytes() for each in store.iterdir()} == before


@pytest.mark.parametrize("arguments", [["--dry-run"], ["--backup", "--verify"]], ids=["plan", "verified"])
def test_json_is_what_it_shall_be(store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert migrated(store, *arguments, "--output-format", "json") == 1
    report = body(capsys.readouterr().out)
    jsonschema.validate(report, REPORT)
    paths = [each["path"] for each in report["files"]]
    assert paths == sorted(paths)
    (tan,) = [each for each in report["files"] if not each["ok"]]
    assert (tan["status"], tan["findings"][0]["feature"], tan["findings"][0]["target"]) == ("blocked", "tan", "1.3.0")
    assert report["summary"]["files"] == {("move" if "--dry-run" in arguments else "moved"): 2, "blocked": 1}
    assert ("estimated_seconds" in report["summary"]) == ("--dry-run" in arguments)
    if "--verify" in arguments:
        assert {each["verified"] for each in report["files"] if each["ok"]} == {"same program"}
        assert (store / "saxpy.mlirbc.orig").exists()


def test_lines_of_json(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrated(store, "--format", "jsonl") == 1
    *live, end = map(body, capsys.readouterr().out.splitlines())
    assert end == {"ok": False, "summary": end["summary"]}
    report = tmp_path / "report.jsonl"
    assert migrated(store, "--format", "jsonl", "-o", str(report)) == 1
    out, err = capsys.readouterr()
    *written, _ = map(body, report.read_text().splitlines())
    for each in (*live, *written):
        jsonschema.validate(each, FILE)
    assert sorted(each["status"] for each in live) == ["blocked", "moved", "moved"]
    assert [each["status"] for each in written] == ["current", "current", "blocked"]
    assert out == ""
    assert err.splitlines()[-1].startswith("vhlo: 2 up to date (")


def test_text_names_what_was_not_moved(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrated(store) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("blocked ")
    assert lines[0].endswith("tan.mlirbc")
    assert lines[-1].startswith("2 moved (")


def test_exit_codes(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store / "torn.mlirbc").write_bytes(b"ML\xefRtorn")
    assert migrated(store, target="1.4.0") == 2
    assert "torn.mlirbc" in capsys.readouterr().out
    assert migrated(store, target="jaxlib==0.0.0") == 2
    assert migrated(store / "missing", target="1.4.0") == 2
    assert migrated(store, "--backup-suffix", "", target="1.4.0") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupted_one_says_how_to_go_on(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for number, (_, data) in zip(range(150), corpus_files(ordinary=False), strict=False):
        (store / f"{number}.mlirbc").write_bytes(data)
    command = [*VHLO, "migrate", str(store), "--target", "1.13.0", "-j", "1"]
    process = subprocess.Popen(
        [*command, "--format", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    *progress, last = said.strip().splitlines()
    assert last == "vhlo: interrupted; every file is intact, and the same command resumes the migration"
    # On a machine that is busy, it has lasted long enough to say how far it is.
    assert all(re.match(r"vhlo: \d+ (of \d+ )?files\b", line) for line in progress), said
    again = vhlo("migrate", str(store), "--target", "1.13.0", "-j", "1")
    assert again.returncode in (0, 1)
    assert sum(int(part.split()[0]) for part in again.stdout.decode().splitlines()[-1].split(", ")) == 150
    assert not list(store.rglob(".vhlo*"))


def test_a_log_has_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with shown_progress() as progress:
        progress.expect(100, 1000)
        for number in range(100):
            now += 0.5
            progress.advance(10, ok=number != 3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "vhlo: 10 of 100 files (10%), 1 with problems, about 45 s left"
    assert len(lines) == 9


def test_nothing_of_a_report_is_lost_when_it_cannot_be_written(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrated(store, "-o", str(store / "missing" / "report"), target="1.4.0") == 2
    # The work was done, and the journal still knows of it.
    assert (store / ".vhlo-migration").exists()
    capsys.readouterr()
    assert migrated(store, "--format", "json", target="1.4.0") == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["summary"]["files"] == {"moved": 2, "current": 1}
    assert not (store / ".vhlo-migration").exists()
