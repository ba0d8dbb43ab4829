"""Artifacts made of a specification alone: the library reads those that it knows, and they move as others do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.vhlo_library import CURRENT, OP_VERSIONS, Vhlo

import vhlo_tools as vt
from vhlo_tools.artifact.sample_artifacts import sample_artifact
from vhlo_tools.bindings import Provider
from vhlo_tools.spec import EntryKind, Op, OpVersion, bytecode_version_of, known_specification, known_versions
from vhlo_tools.spec_tools.samples import sample, sample_holding, sample_structure

pytestmark = pytest.mark.every_python

SPECS = known_specification()
OLDEST = SPECS.versions[0].version


@pytest.fixture(scope="module")
def vhlo(provider: Provider) -> Vhlo:
    return Vhlo(provider)


@pytest.mark.parametrize(("op", "version"), OP_VERSIONS, ids=[version.name for _, version in OP_VERSIONS])
def test_the_library_reads_them(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    at = min(version.max or CURRENT, CURRENT)
    artifact = sample_artifact(sample(SPECS, version), at)
    assert (artifact.version, artifact.bytecode_version) == (at, bytecode_version_of(at))
    text = vhlo.provider.text(vhlo.provider.parse(vhlo.context, bytes(artifact)), generic=True)
    assert f'"vhlo.{version.name}"' in text
    assert vhlo.generic(artifact.text()) == text


@pytest.mark.parametrize("kind", ["attribute", "type"])
def test_they_hold_every_type_and_attribute(kind: EntryKind) -> None:
    for name, spelling in SPECS.kinds[kind].items():
        held = sample_structure(SPECS, kind, name)
        artifact = sample_artifact(sample_holding(SPECS, held, SPECS.newest), SPECS.newest)
        tables = artifact.file.attributes if kind == "attribute" else artifact.file.types
        values = [artifact.file.decode(kind, index) for index in range(len(tables))]
        assert name in {value.name for value in values if value is not None and value.dialect == "vhlo"}
        assert artifact.requirements().readable_since >= (spelling.min or OLDEST)
        assert artifact.requirements().downgradable_to >= (spelling.min or OLDEST)


def test_they_are_of_any_version() -> None:
    operation = sample(SPECS, SPECS.op_versions["dot_v1"])
    newest = sample_artifact(operation, SPECS.newest)
    for entry in known_versions():
        artifact = sample_artifact(operation, entry.version)
        assert artifact.requirements().readable_since <= entry.version
        assert vt.diff(vt.retarget(artifact, SPECS.newest, engine="bytes"), newest) == []


def test_what_holds_something_is_the_same_everywhere() -> None:
    versions = [entry.version for entry in known_versions()]
    case = {"attribute": "comparison_type_v1", "case": "WEAKORDER"}
    operation = sample_holding(SPECS, case, *versions)
    assert list(operation.attributes.values()) == [case]
    bf16 = sample_structure(SPECS, "type", "bf16_v1")
    assert (bf16["type"], bf16["element"]) == ("tensor_v1", {"type": "bf16_v1"})
    assert set(map(str, sample_holding(SPECS, bf16, *versions).operands)) == {str(bf16)}
    with pytest.raises(LookupError, match="no op is the same in 0.1.0 and can contain"):
        sample_holding(SPECS, case, vt.Version("0.1.0"))


def test_ops_that_are_none() -> None:
    operation = sample(SPECS, SPECS.op_versions["tanh_v1"])
    for wrong in (replace(operation, name="tanh_v9"), replace(operation, attributes={"x": {"attribute": "unit"}})):
        with pytest.raises(vt.InvalidProgramError, match="is not an op with the attributes"):
            sample_artifact(wrong, OLDEST)
    with pytest.raises(vt.UnknownTargetError, match="is older than"):
        sample_artifact(operation, vt.Version("0.1.0"))
