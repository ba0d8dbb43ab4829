"""What the tables of a file alone say of the newest version in it, against a traversal of all its ops."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import FEATURES, example_programs
from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact
from vhlo_tools.compat.survey import FeatureScan
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.spec import known_versions
from vhlo_tools.version import Version

FUTURE = Version("99.0.0")


def check(artifact: Artifact) -> bool:
    """Check the bound of an artifact, and return whether it is below the newest version."""
    survey = FeatureScan(artifact.file, FUTURE, "the program")
    bound = survey.max_introduced
    written, read = survey.summary
    assert {use for use in written | read if use.since > bound} == set()
    return bound < known_versions()[-1].version


@pytest.mark.long
def test_nothing_is_newer_in_what_old_releases_wrote() -> None:
    settled = seen = 0
    for _, data in corpus_files():
        try:
            artifact = Artifact(data)
        except MalformedArtifactError:
            continue
        seen += 1
        settled += check(artifact)
    assert seen > 100
    # The bound would be of no use if it were the newest version wherever it matters.
    assert settled > seen / 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", [*example_programs(), *sorted(FEATURES.glob("*.mlir"))], ids=lambda path: path.name)
def test_nothing_is_newer_in_programs_with_each_feature(path: Path) -> None:
    try:
        artifact = vt.serialize(path)
    except vt.VhloToolsError:
        return
    check(artifact)
    for target in known_versions():
        by_bound = Artifact(bytes(artifact)).requirements()
        by_traversal = Artifact(bytes(artifact)).requirements()
        by_traversal._survey.__dict__["max_introduced"] = FUTURE
        assert by_traversal._survey.max_introduced == FUTURE
        assert by_bound.findings(target.version) == by_traversal.findings(target.version)
        assert by_bound.contradiction == by_traversal.contradiction
