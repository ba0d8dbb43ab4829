"""Artifacts that released packages wrote: nothing differs from itself, and any two can be compared."""

from __future__ import annotations

import pytest
from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.artifact.comparison import diff_artifacts


@pytest.mark.long
def test_every_artifact_of_the_corpus() -> None:
    last: dict[str, vt.Artifact] = {}
    differing = 0
    for name, data in corpus_files(ordinary=False):
        artifact = vt.open_artifact(data, name=name)
        assert diff_artifacts(artifact, vt.open_artifact(bytes(data)), locations=True) == [], name
        # The same program of another release or version.
        program = name.split("/")[1].split("@")[0]
        if program in last:
            differing += bool([str(each) for each in diff_artifacts(last[program], artifact, locations=True)])
        last[program] = artifact
    assert differing > 100
