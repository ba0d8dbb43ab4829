"""Text of generated tests."""

from __future__ import annotations

from string import Template

__all__ = ["Template", "attribute", "presence"]


def presence(has_bytes: bool, held: str = "") -> Template:
    """Template for a new op or, with ``held``, for an op that contains a new type, attribute or case.

    ``has_bytes`` says whether artifacts with it can be written; ``held`` is an expression.
    """
    if held:
        samples = "sample_holding, sample_structure" if "sample_structure" in held else "sample_holding"
        operation = f"    # Put an op here that uses it.\n    return sample_holding(SPECS, {held}, BEFORE, VERSION)\n"
    else:
        samples = "sample"
        operation = (
            "    # Put meaningful operands, results and attributes here.\n"
            '    return sample(SPECS, SPECS.op_versions["$name"])\n'
        )
    return Template(
        _HEAD.format(replaced="", artifacts=_SAMPLE_ARTIFACT * has_bytes, samples=samples, moves="downgrade")
        + _FIXTURE.format(operation=operation)
        + _PRESENCE
        + _PRESENCE_IN_BYTES * has_bytes
    )


def attribute(has_bytes: bool) -> Template:
    imports = {"samples": "OTHER_VALUE, sample", "moves": "downgrade, upgrade"}
    operation = '    return sample(SPECS, SPECS.op_versions["$newer"])\n'
    return Template(
        _HEAD.format(replaced="from dataclasses import replace\n", artifacts=_SAMPLE_ARTIFACT * has_bytes, **imports)
        + _FIXTURE.format(operation=operation)
        + _OTHER
        + _ATTRIBUTE
        + _ATTRIBUTE_IN_BYTES * has_bytes
    )


_SAMPLE_ARTIFACT = "from vhlo_tools.artifact.sample_artifacts import sample_artifact\n"

_HEAD = '''\
"""$what: in StableHLO $version, and in none before."""

from __future__ import annotations

{replaced}from pathlib import Path

import pytest

import vhlo_tools as vt
{artifacts}from vhlo_tools.dialect.samples import {samples}
from vhlo_tools.dialect.specification import load_specification
from vhlo_tools.dialect.version_steps import OpStructure, {moves}

SPECS = load_specification(Path(__file__).resolve().parent / "$specs")
BEFORE, VERSION, FEATURE = vt.Version("$before"), vt.Version("$version"), "$feature"
'''

_FIXTURE = """

@pytest.fixture
def operation() -> OpStructure:
{operation}"""

_PRESENCE = """

def test_it_is_there_from_its_version_on(operation: OpStructure) -> None:
    assert downgrade(operation, VERSION, SPECS) == operation
    with pytest.raises(vt.DowngradeError) as refused:
        downgrade(operation, BEFORE, SPECS)
    found = {(finding.feature, finding.introduced) for finding in refused.value.findings}
    assert found == {(FEATURE, VERSION)}
"""

_PRESENCE_IN_BYTES = """

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
"""

_OTHER = """

@pytest.fixture
def other(operation: OpStructure) -> OpStructure:
    # Put a value here that is meaningful for $op.
    return replace(operation, attributes={**operation.attributes, "$attribute": OTHER_VALUE})
"""

_ATTRIBUTE = """

def test_the_default_goes_down_and_up_again(operation: OpStructure) -> None:
    older = downgrade(operation, BEFORE, SPECS)
    assert older.name == "$older"
    assert "$attribute" not in older.attributes
    default = SPECS.default("$default")
    assert default is not None
    newer = upgrade(older, VERSION, SPECS)
    assert newer.attributes["$attribute"] == default.value
    assert newer == operation


def test_another_value_is_refused(other: OpStructure) -> None:
    assert downgrade(other, VERSION, SPECS) == other
    with pytest.raises(vt.DowngradeError, match="$attribute is not its default") as refused:
        downgrade(other, BEFORE, SPECS)
    assert [finding.feature for finding in refused.value.findings] == [FEATURE]
"""

_ATTRIBUTE_IN_BYTES = """

def test_an_artifact_with_the_default_goes_down_and_up_again(operation: OpStructure) -> None:
    artifact = sample_artifact(operation, VERSION)
    requirements = artifact.requirements()
    assert (requirements.readable_since, requirements.findings(BEFORE)) == (VERSION, [])
    older = vt.retarget(artifact, BEFORE, engine="bytes")
    assert "$older" in older.dialects["vhlo"]
    assert older.requirements().readable_since < VERSION
    assert vt.diff(artifact, vt.retarget(older, VERSION, engine="bytes")) == []


def test_an_artifact_with_another_value_is_refused(other: OpStructure) -> None:
    artifact = sample_artifact(other, VERSION)
    assert artifact.requirements().downgradable_to == VERSION
    newest = vt.retarget(artifact, SPECS.newest, engine="bytes")
    assert vt.diff(artifact, vt.retarget(newest, VERSION, engine="bytes")) == []
    with pytest.raises(vt.DowngradeError) as refused:
        vt.retarget(artifact, BEFORE, engine="bytes")
    assert {finding.feature for finding in refused.value.findings} == {FEATURE}
"""
