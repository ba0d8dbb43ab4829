"""Generated tests for the changes of a version."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.spec_tools.samples import sample_holding
from vhlo_tools.spec_tools.toml_editing import Edit
from vhlo_tools.spec_tools.version_changes import NewAttribute, NewCase, NewKind, NewOp

if TYPE_CHECKING:
    from vhlo_tools.spec import EntryKind, Specification
    from vhlo_tools.spec_tools.version_changes import NewEntry
    from vhlo_tools.version import Version

# Text of generated tests


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
        _HEAD.format(
            replaced="", artifacts=_SAMPLE_ARTIFACT * has_bytes, samples=samples, moves="downgrade, load_specification"
        )
        + _FIXTURE.format(operation=operation)
        + _PRESENCE
        + _PRESENCE_IN_BYTES * has_bytes
    )


def attribute(has_bytes: bool) -> Template:
    imports = {"samples": "OTHER_VALUE, sample", "moves": "downgrade, load_specification, upgrade"}
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
{artifacts}from vhlo_tools.spec import OpStructure, {moves}
from vhlo_tools.spec_tools.samples import {samples}

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


# Generated tests for the changes of a version: one file for each change


class Generator:
    """Generator of the tests for a version; by default in ``tests/spec`` beside the folder, or ``tests`` in it."""

    def __init__(self, specs: Specification, tests: Path | None, before: Version, version: Version) -> None:
        folder = Path(str(specs.folder))
        beside = folder.parent / "tests" / "spec"
        self._specs = specs
        self._tests = tests or (beside if beside.is_dir() else folder / "tests")
        self._fixed = {
            "before": str(before),
            "version": str(version),
            "specs": Path(os.path.relpath(folder.resolve(), self._tests.resolve())).as_posix(),
        }
        # Bytes are read and written by the specification beside the package only.
        self._has_bytes = (folder.parent / "vhlo_tools" / "__init__.py").is_file()
        self._before = before

    def test_of(self, change: NewEntry, feature: str, newer: str = "", default: str = "") -> Edit | None:
        """Return the test file of a change; ``None`` if no op can contain the new type, attribute or case.

        ``newer`` is the first op version with a new attribute, and ``default`` the id of the value that older ones
        imply.
        """
        match change:
            case NewOp(name=name):
                template = presence(self._has_bytes)
                return self._edit(f"{name}_v1", template, f"The op {name}", feature, name=f"{name}_v1")
            case NewAttribute():
                return self._attribute(change, feature, newer, default)
            case NewKind(kind=kind, name=name):
                held = f'sample_structure(SPECS, "{kind}", "{name}")'
                return self._held(kind, f"{name}_{kind}", f"The {kind} {name}", feature, held)
            case NewCase(enum=enum, name=name):
                held = f'{{"attribute": "{enum}", "case": "{name}"}}'
                return self._held("attribute", f"{enum}_{name}", f"{name} of {enum}", feature, held)

    def _held(self, kind: EntryKind, file: str, what: str, feature: str, held: str) -> Edit | None:
        try:
            sample_holding(self._specs, {kind: ""}, self._before)
        except LookupError:
            return None
        return self._edit(file, presence(self._has_bytes, held), what, feature)

    def _attribute(self, change: NewAttribute, feature: str, newer: str, default: str) -> Edit:
        stem, _, number = newer.rpartition("_v")
        names = {
            "op": change.op,
            "attribute": change.name,
            "default": default,
            "newer": newer,
            "older": f"{stem}_v{int(number) - 1}",
        }
        what = f"{change.name} of {newer}"
        return self._edit(f"{newer}_{change.name}", attribute(self._has_bytes), what, feature, **names)

    def _edit(self, file: str, template: Template, what: str, feature: str, **names: str) -> Edit:
        path = self._tests / f"test_{file.lower().replace('-', '_')}.py"
        if path.exists():
            raise InvalidSpecificationError(f"{path} already exists: move it away, or give another folder with --tests")
        text = template.substitute(what=what, feature=feature, **names, **self._fixed)
        return Edit(path, None, text)
