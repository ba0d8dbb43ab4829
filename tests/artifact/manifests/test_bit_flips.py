"""Every bit of a small artifact, and of its manifest, flipped in turn: none is silent.

StableHLO's own reader takes 46 of these 2,352 artifacts for another program without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.corpus_files import read_corpus_file

import vhlo_tools as vt
from vhlo_tools.artifact import Manifest, check_manifest, manifest_place
from vhlo_tools.cli.main import main

ARTIFACT = read_corpus_file("jaxlib-0.4.31/strings@1.4.2.mlirbc")
READER = "1.17.0"


def flips(data: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlirbc"
    path.write_bytes(ARTIFACT)
    Manifest.of(path).save(manifest_place(path))
    return path


def test_there_are_2352_and_the_manifest_is_what_finds_many(model: Path) -> None:
    assert 8 * len(ARTIFACT) == 2352
    vt.require(model, READER, manifest=True)
    silent = 0
    for flipped in flips(ARTIFACT):
        try:
            vt.require(flipped, READER)
        except vt.VhloToolsError:
            continue
        silent += 1
    # Names of values and locations, and constants, can be anything.
    assert silent > 100


def test_require_and_run_find_every_flip(model: Path) -> None:
    for flipped in flips(ARTIFACT):
        model.write_bytes(flipped)
        with pytest.raises(vt.ManifestError, match="sha256: expected"):
            vt.require(model, READER)
        with pytest.raises((vt.ManifestError, vt.InvalidProgramError, vt.MalformedArtifactError)):
            vt.load_executable(model)


def test_inspect_finds_every_flip(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flipped in flips(ARTIFACT):
        model.write_bytes(flipped)
        assert main(["inspect", str(model), "--format", "json"]) == 2
        said = capsys.readouterr()
        # A file of no known kind is not described at all.
        assert not said.out or json.loads(said.out)["manifest"] == "differs"
        assert said.err.startswith("vhlo: ")


def test_check_finds_every_flip(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = manifest_place(model).read_bytes()  # type: ignore[union-attr]
    folder = tmp_path / "store"
    folder.mkdir()
    # What the gate says of a file that it cannot read at all needs no manifest: those that it reads count here.
    for number, flipped in enumerate(flips(ARTIFACT)):
        (folder / f"{number}.mlirbc").write_bytes(flipped)
        (folder / f"{number}.mlirbc.manifest.json").write_bytes(manifest)
    (folder / "whole.mlirbc").write_bytes(ARTIFACT)
    (folder / "whole.mlirbc.manifest.json").write_bytes(manifest)
    main(["check", str(folder), "--readable-by", READER, "--isolated", "--no-cache", "--jobs", "1", "--format", "json"])
    files = json.loads(capsys.readouterr().out)["files"]
    assert len(files) == 2353
    assert [Path(each["path"]).name for each in files if each["ok"]] == ["whole.mlirbc"]
    found = [each for each in files if each["reason"] is None and not each["ok"]]
    assert len(found) > 100
    for each in found:
        assert {"manifest_differs"} <= {finding["feature"] for finding in each["findings"]}


def test_no_flip_of_a_manifest_is_taken(model: Path) -> None:
    whole = Manifest.of(ARTIFACT).encode()
    for flipped in flips(whole):
        with pytest.raises(vt.ManifestError):
            Manifest.decode(flipped)
    assert check_manifest(ARTIFACT, None, Manifest.decode(whole)).state == "matches"
