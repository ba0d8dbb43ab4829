"""What every release of StableHLO's history wrote: read by us and by the installed library, as the page says."""

from __future__ import annotations

from functools import cache

import pytest
import replay_history
from support.corpus import ROOT

import vhlo_tools as vt
from vhlo_tools.artifact import Manifest
from vhlo_tools.bindings import get_provider

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "history.md"


@cache
def history() -> tuple[list[replay_history.HistoricArtifact], dict[str, bytes], dict[str, Manifest]]:
    return replay_history.history()


def test_every_version_with_a_jaxlib_is_there() -> None:
    index, contents, manifests = history()
    releases = replay_history.writers()
    assert list(dict.fromkeys(each.producer for each in index)) == [str(each) for each in releases]
    assert len(releases) > 35
    assert len({each.program for each in index}) >= 40
    assert {each.file for each in index} == contents.keys() == manifests.keys()


def test_every_artifact_is_as_its_manifest_says() -> None:
    _, contents, manifests = history()
    for file, data in contents.items():
        assert manifests[file].verify(data) == (), file


def test_our_reader_reads_all_of_it() -> None:
    index, contents, _ = history()
    newest = max(vt.Version(each.tag).minor_release for each in index)
    for each in {each.file: each for each in index}.values():
        artifact = vt.open_artifact(contents[each.file], name=each.file)
        assert artifact.version == vt.Version(each.target)
        assert artifact.inventory()
        # What was written for a version needs no newer one, but for the one thing that was withdrawn for a time.
        withdrawn = each.program == "mixed_f8_convolution"
        assert artifact.requirements().downgradable_to <= (vt.Version("1.20.0") if withdrawn else artifact.version)
        assert vt.retarget(artifact, newest).version == newest


def test_the_installed_library_reads_all_of_it() -> None:
    _, contents, _ = history()
    current = get_provider().library.current
    read = 0
    for file, data in contents.items():
        artifact = vt.open_artifact(data, name=file)
        if artifact.version > current or artifact.requirements().reader_findings(current):
            continue
        vt.deserialize(artifact, trusted=True)
        read += 1
    assert read > 500


def test_the_page_is_what_was_found() -> None:
    text = PAGE.read_text()
    begin = text.index(replay_history.BEGIN) + len(replay_history.BEGIN)
    assert text[begin : text.index(replay_history.END)].strip().splitlines() == list(replay_history.page())


@pytest.mark.parametrize("reader", [each.reader for each in replay_history.readings()[1]])
def test_readers_of_the_page_did_as_the_specification_says(reader: str) -> None:
    """But for what the page lists: quantized types that old bindings do not let in are no matter of reading."""
    _, contents, _ = history()
    reading = next(each for each in replay_history.readings()[1] if each.reader == reader)
    version = vt.Version(reading.version)
    wrong = []
    for file, data in contents.items():
        artifact = vt.open_artifact(data, name=file)
        expected = not [each for each in artifact.requirements().reader_findings(version) if each.level == "error"]
        if expected == (file in reading.refused):
            wrong.append(file)
    assert all(listed(file, reader) for file in wrong), wrong


def listed(file: str, reader: str) -> bool:
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith(f"| {reader} | ")]
    return any(file.rpartition("-")[0] in row[2].split(", ") for row in rows)
