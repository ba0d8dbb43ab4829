"""What we write for a release is read by that release, and means the same to it."""

from __future__ import annotations

import pytest
from support.corpus import EXAMPLES, FEATURES, features_of_library
from support.release_environments import read_by

import vhlo_tools as vt

pytestmark = pytest.mark.releases

RELEASES = ("jaxlib==0.4.31", "jaxlib==0.4.35", "jaxlib==0.5.3", "jaxlib==0.8.3")
PORTABLE = ("saxpy.mlir", "convnet.bc", "symbolic_export.jax_export", "transformer_step.mlir")
MIXED = ("sharded_matmul.mlir", "custom_calls.mlir")


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_reads_what_is_written_for_it(release: str) -> None:
    artifacts = [vt.serialize(EXAMPLES / example, release) for example in PORTABLE]
    for example, artifact, outcome in zip(PORTABLE, artifacts, read_by(release, map(bytes, artifacts)), strict=True):
        # What the release understood, as text of its own, is the program that we understand; aliases and all.
        understood = vt.deserialize(vt.serialize(outcome["text"]))
        assert str(understood) == str(vt.deserialize(artifact))
        expected = 25 if example == "transformer_step.mlir" else 0
        assert str(understood).count("tf.aliasing_output") == expected


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_reads_every_feature_that_its_version_has(release: str) -> None:
    version = vt.resolve_target(release).version
    features = [feature for feature in features_of_library() if feature.introduced <= version]
    artifacts = [vt.serialize(FEATURES / f"{feature.id}.mlir", release) for feature in features]
    outcomes = read_by(release, map(bytes, artifacts))
    assert [feature.id for feature, each in zip(features, outcomes, strict=True) if "error" in each] == []
    assert len(features) > 8


@pytest.mark.parametrize("example", MIXED)
def test_other_dialects_are_read_since_the_version_that_brought_them(example: str) -> None:
    new = vt.serialize(EXAMPLES / example, "jaxlib==0.8.3", allow_other_dialects=True)
    assert not new.findings
    (outcome,) = read_by("jaxlib==0.8.3", map(bytes, [new]))
    understood = vt.deserialize(vt.serialize(outcome["text"], allow_other_dialects=True))
    assert str(understood) == str(vt.deserialize(new))
    old = vt.serialize(EXAMPLES / example, "jaxlib==0.5.3", allow_other_dialects=True)
    assert {finding.level for finding in old.findings} == {"warning"}
    assert "error" in read_by("jaxlib==0.5.3", map(bytes, [old]))[0]


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_reads_what_was_brought_down_on_its_bytes(release: str) -> None:
    """As it reads what the library itself writes for it."""
    version = vt.resolve_target(release).version
    newest = [vt.serialize(EXAMPLES / example) for example in PORTABLE]
    newest += [
        vt.serialize(FEATURES / f"{each.id}.mlir") for each in features_of_library() if each.introduced <= version
    ]
    down = [vt.retarget(each, release, engine="bytes") for each in newest]
    by_library = [vt.retarget(each, release, engine="mlir") for each in newest]
    assert read_by(release, map(bytes, down)) == read_by(release, map(bytes, by_library))
    assert not any("error" in outcome for outcome in read_by(release, map(bytes, down)))


def test_a_release_chokes_on_the_range_locations_that_the_library_leaves_in() -> None:
    """The reason why we make them plain."""
    kept = bytes(vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0"))
    relabelled = vt.open_artifact(kept.replace(b"StableHLO_v1.9.0", b"StableHLO_v1.7.8"))
    assert "error" in read_by("jaxlib==0.4.35", map(bytes, [relabelled]))[0]
    assert "text" in read_by("jaxlib==0.4.35", map(bytes, [vt.retarget(relabelled, "1.7.8")]))[0]
