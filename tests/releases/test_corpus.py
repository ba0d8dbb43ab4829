"""The archive of artifacts that released packages wrote is whole, and is what its index says."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections import Counter

import pytest
from corpus_contents import contents
from make_corpus import read_by_newest
from support.corpus_files import ARCHIVE, corpus_files, corpus_index

from vhlo_tools.artifact import Artifact
from vhlo_tools.artifact.artifact import names_by_dialect
from vhlo_tools.bytecode import decode
from vhlo_tools.version import Version

pytestmark = pytest.mark.long

# Places on the machine that made the corpus.
MACHINE = re.compile(rb"/(tmp|root|home|usr|opt|work|private|Users)/|site-packages|\\\\Users")


def test_the_index_lists_all_files_and_no_other() -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        assert all(info.date_time == (1980, 1, 1, 0, 0, 0) for info in archive.infolist())
    assert names == ["index.json", *(entry.file for entry in corpus_index())]
    assert len(set(names)) == len(names)


def test_the_archive_is_large_enough_and_no_larger() -> None:
    forms = Counter(entry.ordinary for entry in corpus_index())
    assert forms[False] >= 1000
    assert forms[True] >= 200
    assert ARCHIVE.stat().st_size < 3_000_000
    producers = {producer for entry in corpus_index() for producer in entry.producers}
    assert len([producer for producer in producers if producer.startswith("jaxlib==")]) >= 20
    assert "torch-mlir==20261001" in producers


def test_contents_are_those_of_the_index() -> None:
    for entry, (name, data) in zip(corpus_index(), corpus_files(), strict=True):
        assert name == entry.file
        assert hashlib.sha256(data).hexdigest() == entry.sha256, name
        assert len(data) == entry.size, name
        assert not MACHINE.search(data), name
    assert len({entry.sha256 for entry in corpus_index()}) == len(corpus_index())


def test_the_reader_accepts_every_artifact() -> None:
    for entry, (name, data) in zip(corpus_index(), corpus_files(), strict=True):
        if entry.ordinary:
            continue
        artifact = Artifact(data, name=name)
        assert artifact.version == Version(entry.target), name
        assert artifact.bytecode_version == entry.bytecode_version, name
        if entry.program.startswith(("empty_module", "mixed_")):
            continue
        assert "vhlo" in artifact.dialects, name


def test_the_reader_accepts_ordinary_bytecode() -> None:
    for entry, (name, data) in zip(corpus_index(), corpus_files(), strict=True):
        if entry.ordinary:
            file = decode(data)
            assert file.version == entry.bytecode_version, name
            assert "builtin" in names_by_dialect(file), name


def test_every_version_of_bytecode_and_every_shape_of_file_occurs() -> None:
    versions = {(entry.ordinary, entry.bytecode_version) for entry in corpus_index()}
    assert versions == {
        *((False, version) for version in (0, 1, 3, 4, 5, 6)),
        *((True, version) for version in range(7)),
    }
    found = set[str]()
    for _, data in corpus_files():
        found |= contents(data)
    vhlo = {int(kind.rpartition(" ")[2]) for kind in found if re.fullmatch(r"attribute vhlo \d+", kind)}
    assert vhlo >= set(range(1, 26))
    assert {f"type vhlo {code}" for code in range(43)} <= found
    # Call sites, lines, fused ones, names, unknown ones and ranges: the codes of the builtin dialect.
    for kind in (10, 11, 12, 14, 15, 22):
        assert {f"location builtin {kind} of an op", f"location builtin {kind} of an argument"} <= found
    assert {
        "location builtin 13 of an op",
        "location left out of an argument",
        "use-list of arguments, as permutation",
        "use-list of results, as permutation",
        "use-list of results, as pairs",
        "successors of an op",
        "several, isolated in a section",
        "several, open",
        "region without blocks",
        "attribute builtin 16",
    } <= found


@pytest.mark.releases
def test_the_newest_library_reads_what_the_index_says() -> None:
    # It dies of some files, which count as unread: the next process goes on behind.
    read = read_by_newest(ARCHIVE, [entry.file for entry in corpus_index()])
    assert read == {entry.file: entry.read_by_newest for entry in corpus_index()}
    assert sum(read.values()) > 0.9 * len(read)
