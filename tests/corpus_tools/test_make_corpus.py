from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from corpus_contents import contents
from corpus_packing import pack
from corpus_programs import (
    corpus_files as written_programs,
    feature_programs,
    model_programs,
    spellings,
    without_properties,
)
from make_corpus import PRODUCERS, build, portable_targets
from support.corpus_files import corpus_files, corpus_index, read_corpus_file

pytestmark = pytest.mark.long


def test_programs_are_spelled_for_old_releases() -> None:
    text = (
        'x {a = array<i64: 1, 2>, b = array<i64>, c = array<i32: 1>} loc("model.py":1:2 to 3:4) loc("f.py":1:2 to :4)'
    )
    assert spellings(text) == [
        text,
        'x {a = array<i64: 1, 2>, b = array<i64>, c = array<i32: 1>} loc("model.py":1:2) loc("f.py":1:2)',
        "x {a = dense<[1, 2]> : tensor<2xi64>, b = dense<> : tensor<0xi64>, c = array<i32: 1>} "
        'loc("model.py":1:2) loc("f.py":1:2)',
    ]
    assert spellings("plain") == ["plain"]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ('"a"() <{b = 1}> : () -> ()', '"a"() {b = 1} : () -> ()'),
        ('"a"() <{b = "}>{"}> {c} : () -> ()', '"a"() {b = "}>{", c} : () -> ()'),
        ('"a"() <{b}> ({\n "x"() <{y}> : () -> ()\n}) {c} : ()', '"a"() ({\n "x"() {y} : () -> ()\n}) {b, c} : ()'),
        ('"a"() <{b}> ({}, {}) : ()', '"a"() ({}, {}) {b} : ()'),
        ('"a"() {c} : ()', '"a"() {c} : ()'),
    ],
)
def test_properties_become_attributes(new: str, old: str) -> None:
    assert without_properties(new) == old


def test_programs_have_names_of_their_own() -> None:
    names = [program.name for program in (*feature_programs(), *written_programs(), *model_programs())]
    assert len(names) > 150
    assert len(set(names)) == len(names)


def test_a_release_is_asked_for_no_version_that_is_newer() -> None:
    assert portable_targets("jaxlib==0.4.13") == ("0.13.4", "0.9.0", "0.10.0", "0.12.0")
    assert portable_targets("jaxlib==0.7.2")[:2] == ("1.13.0", "0.9.0")
    assert len(set(portable_targets("jaxlib==0.7.2"))) == len(portable_targets("jaxlib==0.7.2"))
    assert len(set(PRODUCERS)) == len(PRODUCERS)


def test_contents_of_a_file() -> None:
    name = next(entry.file for entry in corpus_index() if entry.program == "while" and entry.bytecode_version == 6)
    assert {"op vhlo.while_v1", "type vhlo 8", "section ir", "location builtin 11 of an op"} <= contents(
        read_corpus_file(name)
    )


def test_every_file_of_the_archive_is_walked_to_its_end() -> None:
    assert all(contents(data) for _, data in corpus_files())


@pytest.mark.releases
def test_a_corpus_is_the_same_each_time(tmp_path: Path) -> None:
    producers = ["jax==0.10.2"]
    archives = []
    for turn in ("first", "second"):
        build(tmp_path / turn, producers)
        pack(tmp_path / turn, tmp_path / f"{turn}.zip")
        archives.append((tmp_path / f"{turn}.zip").read_bytes())
    assert archives[0] == archives[1]
    with zipfile.ZipFile(tmp_path / "first.zip") as archive:
        rows = json.loads(archive.read("index.json"))
    # What JAX wrote here is what it wrote for the archive of the checkout.
    ours = {entry.file: entry.sha256 for entry in corpus_index()}
    shared = [row for row in rows if row["file"] in ours]
    assert len(shared) > 5
    assert all(ours[row["file"]] == row["sha256"] for row in shared)
