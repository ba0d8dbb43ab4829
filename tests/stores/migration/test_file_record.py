"""Records of files, as JSON and back."""

from __future__ import annotations

import json

import vhlo_tools as vt
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.stores.migration_records import STATUSES, MigrationRecord

TARGET = vt.Version("1.13.0")
FINDING = Finding(
    "tan",
    "error",
    "op",
    "it needs StableHLO 1.4.0",
    "stablehlo.tan",
    SourceLocation("model.py", 1, 2),
    vt.Version("1.4.0"),
    TARGET,
)
NO_FINDING = Finding("other", "note", "op", "nothing in particular")


def test_a_record_comes_back_from_json() -> None:
    whole = MigrationRecord(
        "a.mlirbc",
        "moved",
        TARGET,
        kind="portable-artifact",
        version=vt.Version("1.9.0"),
        size=12,
        digest="0",
        findings=(FINDING, NO_FINDING),
        seconds=0.5,
    )
    for record in (whole, MigrationRecord("b", "unreadable", TARGET)):
        assert MigrationRecord.from_json(json.loads(json.dumps(record.as_json()))) == record


def test_what_is_not_known_is_null_and_no_bytes_were_seen() -> None:
    values = MigrationRecord("b", "unreadable", TARGET).as_json()
    assert {name: value for name, value in values.items() if value is not None} == {
        "path": "b",
        "status": "unreadable",
        "target": "1.13.0",
        "size": 0,
        "findings": [],
    }


def test_files_at_the_target_or_on_the_way_are_fine() -> None:
    fine = {status for status in STATUSES if MigrationRecord("a", status, TARGET).ok}
    assert fine == {"move", "moved", "current"}
