"""What changed between two versions of VHLO."""

from __future__ import annotations

from dataclasses import replace

import pytest

import vhlo_tools as vt
from vhlo_tools.spec.ops import OpVersion
from vhlo_tools.spec.specification import known_specification
from vhlo_tools.spec_tools.description import Change, diff, what_differs

SPECS = known_specification()


def changes(start: str, end: str) -> list[tuple[str, str, str, str]]:
    found = diff(SPECS, vt.Version(start), vt.Version(end))
    return [(str(each.version), each.action, each.kind, each.name) for each in found]


def test_changes_of_ops_types_and_encodings() -> None:
    assert changes("1.3.0", "1.5.0") == [
        ("1.4.0", "added", "op", "tan_v1"),
        ("1.5.0", "added", "op version", "all_gather_v2"),
        ("1.5.0", "added", "op version", "all_reduce_v2"),
        ("1.5.0", "added", "op version", "all_to_all_v2"),
    ]
    assert sorted(changes("1.6.0", "1.7.0")) == [
        ("1.7.0", "added", "type", "f8E3M4_v1"),
        ("1.7.0", "added", "type", "f8E4M3_v1"),
    ]
    assert ("0.20.0", "removed", "op", "trace_v1") in changes("0.19.0", "0.20.0")
    assert changes("1.21.0", "1.22.0") == [("1.22.0", "added", "case", "comparison_type_v1.WEAKORDER")]
    assert ("1.9.0", "allowed", "encoding", "range_locations") in changes("1.8.0", "1.9.0")
    assert changes("1.8.0", "1.8.0") == changes("1.8.5", "1.8.1") == []


def test_a_type_that_ends_is_removed_in_the_version_after() -> None:
    (i2,) = (each for each in SPECS.types if each.name == "i2_v1")
    specs = replace(SPECS, types=(replace(i2, max=vt.Version("1.8.0")),))
    found = diff(specs, specs.versions[0].version, specs.newest)
    assert [(str(each.version), each.action, each.name) for each in found if each.kind == "type"] == [
        ("1.2.0", "added", "i2_v1"),
        ("1.9.0", "removed", "i2_v1"),
    ]
    # What is in the newest version has not ended.
    current = replace(SPECS, types=(replace(i2, max=SPECS.newest),))
    assert "removed" not in {each.action for each in diff(current, vt.Version("1.2.0"), SPECS.newest)}


def test_back_is_the_opposite_in_the_opposite_order() -> None:
    opposite = {"added": "removed", "removed": "added", "allowed": "refused", "changed": "changed"}
    there, back = changes("0.9.0", "1.22.0"), changes("1.22.0", "0.9.0")
    assert {action for _, action, _, _ in there} == {"added", "removed", "allowed", "changed"}
    assert sorted((v, opposite[action], kind, name) for v, action, kind, name in there) == sorted(back)
    versions = [vt.Version(version) for version, *_ in back]
    assert versions == sorted(versions, reverse=True)


def test_bytecode_versions() -> None:
    older, newer = vt.Version("0.14.0"), vt.Version("0.15.0")
    (there,), (back,) = diff(SPECS, older, newer), diff(SPECS, newer, older)
    assert there == Change(newer, "changed", "bytecode", "6", "MLIR bytecode 4 to 6")
    assert back == Change(newer, "changed", "bytecode", "6", "MLIR bytecode 6 to 4")


@pytest.mark.parametrize(("start", "end"), [("1.8.0", "99.0.0"), ("0.1.0", "1.8.0")])
def test_versions_that_are_not_there(start: str, end: str) -> None:
    with pytest.raises(vt.UnknownTargetError) as refused:
        changes(start, end)
    known = [str(entry.version) for entry in SPECS.versions]
    assert f"is not a version of the specification: expected one from {known[0]} to {known[-1]}" in str(refused.value)
    assert known[0] != known[-1]


def op_version(name: str) -> OpVersion:
    return SPECS.op_versions[name]


def test_what_differs_between_versions_of_an_op() -> None:
    def differences(older: str, newer: str) -> list[str]:
        return list(what_differs(op_version(older), op_version(newer)))

    assert differences("all_reduce_v1", "all_reduce_v2") == ["any number of operands", "any number of results"]
    assert differences("all_reduce_v2", "all_reduce_v1") == []
    assert differences("tanh_v1", "tanh_v2") == ["new attribute result_accuracy"]
    assert differences("tanh_v2", "tanh_v1") == ["without attribute result_accuracy"]
    assert differences("composite_v1", "composite_v2") == ["new regions composite_regions*"]


def test_the_detail_names_the_default_of_a_new_attribute() -> None:
    found = {each.name: each.detail for each in diff(SPECS, vt.Version("1.8.0"), vt.Version("1.10.0"))}
    assert found["tanh_v2"] == "new attribute result_accuracy (default default_result_accuracy)"
    assert found["exponential_v2"] == "new attribute result_accuracy (default default_result_accuracy)"


def test_every_step_is_one_change_of_its_own_op() -> None:
    found = [each.name for each in diff(SPECS, SPECS.versions[0].version, SPECS.newest) if each.kind == "op version"]
    assert sorted(found) == sorted(newer.name for _, _, _, newer in SPECS.steps())
