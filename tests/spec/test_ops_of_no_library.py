"""The ops of versions that no library holds yet, which only plugins read: exp2 and log2 of 1.23.0, fma of 1.24.0."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.sample_artifacts import sample_artifact
from vhlo_tools.spec import downgrade, known_specification
from vhlo_tools.spec_tools.samples import sample

SPECS = known_specification()
#: Of each op, the version before it, and its own.
VERSIONS = {"exp2": ("1.22.0", "1.23.0"), "log2": ("1.22.0", "1.23.0"), "fma": ("1.23.0", "1.24.0")}

pytestmark = [
    pytest.mark.parametrize("op", VERSIONS),
    pytest.mark.whole_data("the data must have the versions of the ops"),
]


def test_it_is_there_from_its_version_on(op: str) -> None:
    before, version = map(vt.Version, VERSIONS[op])
    operation = sample(SPECS, SPECS.op_versions[f"{op}_v1"])
    assert downgrade(operation, version, SPECS) == operation
    with pytest.raises(vt.DowngradeError) as refused:
        downgrade(operation, before, SPECS)
    assert {(finding.feature, finding.introduced) for finding in refused.value.findings} == {(op, version)}


def test_an_artifact_with_it_needs_its_version(op: str) -> None:
    before, version = map(vt.Version, VERSIONS[op])
    requirements = sample_artifact(sample(SPECS, SPECS.op_versions[f"{op}_v1"]), version).requirements()
    assert requirements.readable_since == requirements.downgradable_to == version
    assert requirements.findings(version) == requirements.reader_findings(version) == []
    assert {finding.feature for finding in requirements.reader_findings(before)} == {op}


def test_an_artifact_with_it_is_retargeted_no_further_down(op: str) -> None:
    before, version = map(vt.Version, VERSIONS[op])
    artifact = sample_artifact(sample(SPECS, SPECS.op_versions[f"{op}_v1"]), version)
    newest = vt.retarget(artifact, SPECS.newest, engine="bytes")
    assert vt.diff(artifact, vt.retarget(newest, version, engine="bytes")) == []
    with pytest.raises(vt.DowngradeError) as refused:
        vt.retarget(artifact, before, engine="bytes")
    assert {(finding.feature, finding.level) for finding in refused.value.findings} == {(op, "error")}
