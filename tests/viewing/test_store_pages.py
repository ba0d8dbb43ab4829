"""What the pages for stores and for two programs say, beside what other functions say of them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.corpus_files import corpus_files
from support.page_data import contents_of
from support.store_of_kinds import fill

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_releases
from vhlo_tools.viewing import assembled, results_contents

TODAY = date(2026, 11, 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty artifacts of old releases, and a damaged one."""
    folder = tmp_path_factory.mktemp("store")
    for number, (name, data) in enumerate(corpus_files(ordinary=False)):
        if number % 40 == 0:
            (folder / name.replace("/", "_")).write_bytes(data)
    whole = next(folder.iterdir()).read_bytes()
    (folder / "damaged.mlirbc").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(scope="module")
def held(store: Path) -> dict[str, Any]:
    return contents_of(vt.report(store, as_of=TODAY).html)


def test_every_file_is_listed_and_counted(store: Path, held: dict[str, Any]) -> None:
    files = {str(each.path): each for each in vt.store_status(store, as_of=TODAY)}
    assert {each["path"] for each in held["files"]} == set(files)
    assert held["number"] == sum(1 for each in files.values() if each.version is not None) == len(files) - 1
    (damaged,) = [each for each in held["files"] if each["error"]]
    assert damaged["path"].endswith("damaged.mlirbc")
    versions = Counter(str(each.version.minor_release) for each in files.values() if each.version)
    (tally,) = [rows for title, rows in held["tallies"] if title == "By version"]
    assert {row["what"]: row["files"] for row in tally} == versions
    assert sum(row["bytes"] for row in tally) == sum(each.size for each in files.values() if each.version)


def test_a_release_reads_the_files_that_it_reads(store: Path, held: dict[str, Any]) -> None:
    artifacts = [vt.open_artifact(path) for path in store.iterdir() if path.name != "damaged.mlirbc"]
    known = {(each.package, each.release): each for each in known_releases()}
    # None of jax, which reads the files of jax.export only.
    assert len(held["readers"]) == sum(1 for each in known.values() if each.date <= TODAY)
    for row in held["readers"]:
        release = known[row["package"], row["release"]]
        reading = sum(
            not any(each.level == "error" for each in artifact.requirements().reader_findings(release.stablehlo))
            for artifact in artifacts
        )
        # Patch releases of one version read more; ranges of releases count by versions.
        assert abs(row["reads"] - reading) <= 1, row


def test_windows_end_when_they_end(store: Path, held: dict[str, Any]) -> None:
    files = [each for each in vt.store_status(store, as_of=TODAY) if each.windows]
    ends = Counter(str(min(day for _, day in each.windows)) for each in files)
    assert held["ends"] == [[day, count] for day, count in sorted(ends.items())]


def test_what_blocks_most_comes_first(store: Path, held: dict[str, Any]) -> None:
    counts: Counter[str] = Counter()
    for path in store.iterdir():
        if path.name != "damaged.mlirbc":
            counts.update(
                {each.feature for each in vt.check(path, "0.9.0") if each.level == "error" and each.introduced}
            )
    shown = {each["id"]: each["files"] for each in held["blockers"]}
    assert shown == counts
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    newer = contents_of(vt.report(store, target="1.8.0", as_of=TODAY).html)["blockers"]
    assert {each["id"] for each in newer} < set(shown)


def test_a_store_without_programs_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(vt.MigrationError):
        vt.report(tmp_path)


def test_results_are_shown_by_status_reason_and_feature() -> None:
    summary = {
        "table": "migration",
        "metadata": {"target": "1.0.0"},
        "files": {"migrated": 7, "refused": 2},
        "sizes": {"migrated": 7000, "refused": 2000},
        "versions": {"1.9.0": 9},
        "features": {"tan": {"files": 2, "count": 5}},
        "reasons": {"counts": {"cannot be written\x1b for 1.0.0": 2}, "others": 0},
    }
    page = assembled("store", results_contents(summary, name="results.parquet", today=TODAY))
    held = contents_of(page.html)
    assert dict(held["lines"])["Files"] == "9: 7 migrated, 2 refused"
    assert [(each["id"], each["files"]) for each in held["blockers"]] == [("tan", 2)]
    tallies = {title: [(row["what"], row["files"], row["bytes"]) for row in rows] for title, rows in held["tallies"]}
    assert tallies["By status"] == [("migrated", 7, 7000), ("refused", 2, 2000)]
    assert tallies["By reason"] == [("cannot be written\\x1b for 1.0.0", 2, 0)]


def test_differences_are_those_of_diff() -> None:
    one = EXAMPLES / "saxpy.mlir"
    other = one.read_text().replace("stablehlo.add", "stablehlo.subtract", 1)
    page = vt.report(one, other, name="before", other_name="after", as_of=TODAY)
    held = contents_of(page.html)
    found = vt.diff(one, other)
    assert found
    assert [(each["kind"], each["path"], each["before"], each["after"]) for each in held["rows"]] == [
        (each.kind, each.path, each.before, each.after) for each in found
    ]
    assert held["names"] == ["before", "after"]
    assert page.has_picture
    assert 'id="layout" data-notice=""></script>' in page.html
    same = contents_of(vt.report(one, one).html)
    assert same["rows"] == []
    assert all(first == second for _, first, second in same["lines"])


def test_a_page_says_what_check_and_store_status_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = fill(tmp_path, 60)
    (tmp_path / "tan.mlir").write_text((FEATURES / "tan.mlir").read_text())
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(tmp_path / "tan.bin")
    main(["check", str(tmp_path), "--target", "1.3.0", "--no-cache", "-j", "1", "--output-format", "json"])
    checked = json.loads(capsys.readouterr().out)
    page = contents_of(vt.report(tmp_path, target="1.3.0", as_of=TODAY).html)
    assert page["files_number"] == checked["summary"]["programs"] == counts.programs + 2
    assert sum(1 for each in page["files"] if each["error"]) == checked["summary"]["unreadable"] == counts.broken
    assert page["others"] == checked["summary"]["unrecognised"] == counts.others
    said = dict(page["lines"])
    assert said["Files"].endswith(f"; {counts.others} other files are no programs")
    assert said["Unreadable"] == str(counts.broken)
    refused = Counter[str]()
    for file in checked["files"]:
        refused.update({each["feature"] for each in file["findings"] if each["level"] == "error"})
    assert {each["id"]: each["files"] for each in page["blockers"]} == refused == {"tan": 2}
    # Each release of the readers that `store status` names.
    reads = {(each["package"], each["release"]): each["reads"] for each in page["readers"]}
    newest = {each["package"]: (each["package"], each["release"]) for each in page["readers"]}
    for package, last in newest.items():
        files = vt.store_status(tmp_path, as_of=TODAY)
        assert reads[last] == sum(
            any(each.package == package and each.newest == last[1] for each in file.readers) for file in files
        )
    assert reads[newest["jax"]] == 6
