"""The op exp2: in StableHLO 1.23.0, and in none before."""

from __future__ import annotations

from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.sample_artifacts import sample_artifact
from vhlo_tools.spec import OpStructure, downgrade, load_specification
from vhlo_tools.spec_tools.samples import sample

SPECS = load_specification(Path(__file__).resolve().parent / "../../dialect_specs")
BEFORE, VERSION, FEATURE = vt.Version("1.22.0"), vt.Version("1.23.0"), "exp2"


@pytest.fixture
def operation() -> OpStructure:
    # Put meaningful operands, results and attributes here.
    return sample(SPECS, SPECS.op_versions["exp2_v1"])


def test_it_is_there_from_its_version_on(operation: OpStructure) -> None:
    assert downgrade(operation, VERSION, SPECS) == operation
    with pytest.raises(vt.DowngradeError) as refused:
        downgrade(operation, BEFORE, SPECS)
    found = {(finding.feature, finding.introduced) for finding in refused.value.findings}
    assert found == {(FEATURE, VERSION)}


def test_an_artifact_with_it_needs_its_version(operation: OpStructure) -> None:
    requirements = sample_artifact(operation, VERSION).requirements()
    assert requirements.readable_since == requirements.downgradable_to == VERSION
    assert [(feature.id, feature.introduced) for feature in requirements.features] == [(FEATURE, VERSION)]
    assert requirements.findings(VERSION) == requirements.reader_findings(VERSION) == []
    assert {finding.feature for finding in requirements.reader_findings(BEFORE)} == {FEATURE}


def test_an_artifact_with_it_is_retargeted_no_further_down(operation: OpStructure) -> None:
    artifact = sample_artifact(operation, VERSION)
    newest = vt.retarget(artifact, SPECS.newest, engine="bytes")
    assert vt.diff(artifact, vt.retarget(newest, VERSION, engine="bytes")) == []
    with pytest.raises(vt.DowngradeError) as refused:
        vt.retarget(artifact, BEFORE, engine="bytes")
    assert {(finding.feature, finding.level) for finding in refused.value.findings} == {(FEATURE, "error")}
