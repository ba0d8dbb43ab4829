"""What became of all files together."""

from __future__ import annotations

from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.stores.migration_records import MigrationRecord, MigrationSummary, Status

TARGET, OLD = vt.Version("1.13.0"), vt.Version("1.9.0")


def summary_of(*records: MigrationRecord) -> MigrationSummary:
    summary = MigrationSummary()
    for record in records:
        summary.add(record)
    return summary


def record(status: Status, **more: Any) -> MigrationRecord:
    return MigrationRecord("a file", status, TARGET, **more)


def test_counts_of_files_bytes_and_versions() -> None:
    summary = summary_of(
        record("moved", version=OLD, size=100, new_size=90),
        record("moved", version=OLD, size=50, new_size=45),
        record("current", version=TARGET, size=7),
        record("unreadable", size=3),
    )
    assert summary.as_json() == {
        "files": {"moved": 2, "current": 1, "unreadable": 1},
        "sizes": {"moved": 150, "current": 7, "unreadable": 3},
        "versions": {"1.9.0": 2, "1.13.0": 1, "none": 1},
        "new_size": 135,
        "unrecognised": 0,
    }
    assert (summary.problems, summary.ok) == (1, False)


@pytest.mark.parametrize("status", ["move", "moved", "current"])
def test_files_at_the_target_or_on_the_way_are_no_problem(status: Status) -> None:
    summary = summary_of(record(status))
    assert (summary.problems, summary.ok) == (0, True)


@pytest.mark.parametrize("status", ["blocked", "mismatch", "unverified", "changed", "failed", "unreadable"])
def test_all_others_are(status: Status) -> None:
    assert summary_of(record(status), record("moved")).problems == 1


def test_the_estimate_grows_with_bytes_and_files_and_shrinks_with_jobs() -> None:
    # 4096 bytes count for every file beside its own.
    tried = record("move", size=4096, seconds=2.0)
    assert summary_of(tried).seconds() == pytest.approx(2.0)
    assert summary_of(tried, record("move", size=4096)).seconds() == pytest.approx(4.0)
    assert summary_of(tried, record("move", size=3 * 4096)).seconds() == pytest.approx(6.0)
    assert summary_of(tried, record("move", size=4096)).seconds(jobs=4) == pytest.approx(1.0)
    assert summary_of(record("move", size=4096), record("current", seconds=1.0)).seconds() is None
