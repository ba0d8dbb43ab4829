"""What we say that a release reads is what it reads: every artifact of the archive, in real releases."""

from __future__ import annotations

from functools import cache

import pytest
from support.corpus_files import corpus_files
from support.release_environments import read_by

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact, other_dialects

pytestmark = pytest.mark.releases

RELEASES = (
    "jaxlib==0.4.26",
    "jaxlib==0.4.31",
    "jaxlib==0.5.3",
    "jaxlib==0.8.3",
    "jaxlib==0.10.2",
    "jaxlib==0.12.0.1",
    "torch-mlir==20261001",
)


@cache
def artifacts() -> tuple[Artifact, ...]:
    return tuple(Artifact(data, name=name) for name, data in corpus_files(ordinary=False))


def outcomes_in(release: str) -> dict[str, str]:
    """Return what `release` says of each artifact, nothing if it reads it."""
    answers = read_by(release, map(bytes, artifacts()), text=False)
    return {each.name: answer.get("error", "") for each, answer in zip(artifacts(), answers, strict=True)}


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_reads(release: str) -> None:
    version = vt.resolve_target(release).version
    outcomes = outcomes_in(release)
    compared = refused = 0
    for artifact in artifacts():
        requirements = artifact.requirements()
        expected = not any(finding.level == "error" for finding in requirements.reader_findings(version))
        if other_dialects(artifact):
            # Since 1.11.0 it depends on the other dialects, which promise nothing: some are not known to every release,
            # and bytes of some are read by their own release only. Before, a release may know one by chance.
            continue
        assert (outcomes[artifact.name] == "") == expected, (artifact.name, outcomes[artifact.name])
        # Readers of 0.19 and before accept the mixed convolutions that those between refuse.
        if requirements.readable_since > version and expected:
            assert "mixed_f8_convolution" in artifact.name
        compared += 1
        refused += not expected
    assert compared > 1600
    assert refused >= 14


def test_other_dialects_are_refused_before_they_came() -> None:
    """All but one: jaxlib 0.5.3 happens to know `arith`, and reads a constant of it."""
    version = vt.resolve_target("jaxlib==0.5.3").version
    outcomes = outcomes_in("jaxlib==0.5.3")
    mixed = [artifact for artifact in artifacts() if other_dialects(artifact)]
    assert all(artifact.requirements().readable_since > version for artifact in mixed)
    read = {artifact.name.rpartition("/")[2].partition("@")[0] for artifact in mixed if not outcomes[artifact.name]}
    assert read == {"mixed_dense_resource"}
    assert len(mixed) > 50
