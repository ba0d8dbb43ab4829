"""Which program of a store is compared with which of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.stores import PairRecord, Pairs, PairSummary

ARTIFACT = bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0"))
TEXT = (EXAMPLES / "saxpy.mlir").read_bytes()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fill(store: str, **files: bytes) -> None:
    for name, data in files.items():
        path = Path(store, name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def pairs(before: str, after: str, *exclude: str) -> list[tuple[str, str | None, str | None]]:
    return [(each.path, each.before, each.after) for each in Pairs(before, after, exclude)]


def test_pairs_have_one_path_and_what_is_alone_is_a_pair_too() -> None:
    fill("old", a_mlirbc=ARTIFACT, x__b_mlirbc=ARTIFACT, gone_mlirbc=ARTIFACT, notes_txt=b"no program")
    fill("new", a_mlirbc=ARTIFACT, x__b_mlirbc=ARTIFACT, x__come_mlirbc=ARTIFACT, a_mlirbc_orig=ARTIFACT)
    found = Pairs("old", "new")
    assert [(each.path, each.before, each.after) for each in found] == [
        ("a.mlirbc", "old/a.mlirbc", "new/a.mlirbc"),
        ("x/b.mlirbc", "old/x/b.mlirbc", "new/x/b.mlirbc"),
        ("x/come.mlirbc", None, "new/x/come.mlirbc"),
        ("gone.mlirbc", "old/gone.mlirbc", None),
    ]
    assert (found.number, found.size, found.is_complete) == (4, 6 * len(ARTIFACT), True)
    assert pairs("old", "new", "x", "gone*") == [("a.mlirbc", "old/a.mlirbc", "new/a.mlirbc")]


def test_results_of_migrations_are_paired_with_what_they_were_made_of() -> None:
    # As in a folder of results, beside its source in a store, and where an artifact has the name of no result.
    fill("old", a_mlir=TEXT, b_mlir=TEXT, c_bin=ARTIFACT, d_mlir=TEXT, d_mlirbc=ARTIFACT)
    fill("new", a_mlirbc=ARTIFACT, b_mlir=TEXT, b_mlirbc=ARTIFACT, c_mlirbc=ARTIFACT, d_mlirbc=ARTIFACT)
    assert pairs("old", "new") == [
        ("a.mlirbc", "old/a.mlir", "new/a.mlirbc"),
        ("b.mlir", "old/b.mlir", "new/b.mlir"),
        ("b.mlirbc", "old/b.mlir", "new/b.mlirbc"),
        ("c.mlirbc", None, "new/c.mlirbc"),
        ("d.mlirbc", "old/d.mlirbc", "new/d.mlirbc"),
        ("c.bin", "old/c.bin", None),
        ("d.mlir", "old/d.mlir", None),
    ]


def test_a_store_in_the_other_is_not_part_of_it() -> None:
    fill("store", a_mlirbc=ARTIFACT, moved__a_mlirbc=ARTIFACT)
    assert pairs("store", "store/moved") == [("a.mlirbc", "store/a.mlirbc", "store/moved/a.mlirbc")]
    assert pairs("store/moved", "store") == [("a.mlirbc", "store/moved/a.mlirbc", "store/a.mlirbc")]


def test_globs_are_relative_to_their_folder() -> None:
    fill("old", x__a_mlirbc=ARTIFACT, x__b_mlir=TEXT, y__a_mlirbc=ARTIFACT)
    fill("new", x__a_mlirbc=ARTIFACT, y__a_mlirbc=ARTIFACT)
    assert [path for path, *_ in pairs("old/*/*.mlirbc", "new")] == ["x/a.mlirbc", "y/a.mlirbc"]
    absolute = str(Path("old").absolute())
    assert pairs(absolute, f"file://{absolute}")[0][0] == "x/a.mlirbc"


def test_paths_that_are_no_stores() -> None:
    fill("old", a_mlirbc=ARTIFACT)
    Path("empty").mkdir()
    with pytest.raises(vt.MigrationError, match="old/a.mlirbc is not a store as old is: expected two folders"):
        Pairs("old", "old/a.mlirbc")
    with pytest.raises(vt.MigrationError, match="missing is not a store as old is"):
        Pairs("missing", "old")
    for before, after in (("old", "empty"), ("empty", "old"), ("old", "old/*.mlir")):
        with pytest.raises(vt.MigrationError, match="no folder with programs"):
            list(Pairs(before, after))


def test_counts_of_pairs() -> None:
    summary = PairSummary()
    for record in (
        PairRecord("a", "same", size=5, new_size=7, verified="same bytes"),
        PairRecord("b", "same", size=2, verified="same bytes"),
        PairRecord("c", "added", new_size=3),
    ):
        assert summary.ok
        summary.add(record)
    assert not summary.ok
    assert summary.as_json() == {
        "files": {"same": 2, "added": 1},
        "sizes": {"same": 7, "added": 3},
        "verified": {"same bytes": 2},
        "unrecognised": 0,
    }
