"""What a folder of specifications holds, as one list of entries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from vhlo_tools.spec.specification import Specification, SpecificationEntry, known_specification, structures_in
from vhlo_tools.version import Version

SPECS = known_specification()


def entry(kind: str, name: str, low: str, high: str | None = None) -> SpecificationEntry:
    return SpecificationEntry(kind, name, Version(low), None if high is None else Version(high))


@pytest.mark.parametrize(
    "expected",
    [
        entry("op", "all_reduce_v1", "0.9.0", "1.4.0"),
        entry("op", "all_reduce_v2", "1.5.0"),
        entry("type", "f4E2M1FN_v1", "1.8.0"),
        entry("attribute", "mesh_v1", "1.16.0"),
        entry("enum", "comparison_type_v1", "0.9.0"),
        entry("case", "comparison_type_v1.WEAKORDER", "1.22.0"),
        entry("encoding", "range_locations", "1.9.0"),
        entry("feature", "dot_algorithm", "1.6.0"),
        entry("step", "all_reduce.1-2", "1.5.0"),
        # A constraint lives from the first version that refuses to the last.
        entry("constraint", "custom_call.custom_call_futures", "0.9.0", "1.16.0"),
        entry("constraint", "all_reduce.mixed_precision_reduction", "0.9.0", "0.16.0"),
        entry("default", "default_result_accuracy", "1.9.0"),
        entry("version", "1.9.0", "1.9.0", "1.9.0"),
    ],
    ids=lambda each: f"{each.kind} {each.name}",
)
def test_entries(expected: SpecificationEntry) -> None:
    assert list(SPECS.entries()).count(expected) == 1


def test_every_entry_has_a_name_of_its_own() -> None:
    names = Counter((each.kind, each.name) for each in SPECS.entries())
    assert [name for name, count in names.items() if count > 1] == []
    kinds = Counter(each.kind for each in SPECS.entries())
    assert kinds["version"] == len(SPECS.versions)
    assert kinds["feature"] + kinds["encoding"] == len(SPECS.features)
    assert kinds["default"] == len(SPECS.defaults)


def test_types_without_a_version_are_there_since_the_first() -> None:
    (i2,) = (each for each in SPECS.types if each.name == "i2_v1")
    first = Specification.entries(replace(SPECS, types=(replace(i2, min=None),)))
    assert entry("type", "i2_v1", "0.9.0") in list(first)


def test_a_second_constraint_of_a_feature_has_a_number() -> None:
    op = next(op for _, op, constraint in SPECS.constraints() if constraint.feature == "mixed_precision_reduction")
    twice = replace(SPECS, ops=(replace(op, constraints=(op.constraints[0], op.constraints[0])),))
    first, second = (name for name, _, _ in twice.constraints())
    assert second == f"{first}.2"


def test_steps_need_both_of_their_versions() -> None:
    op = SPECS.op("all_reduce")
    assert op is not None
    assert [(older.name, newer.name) for _, _, older, newer in replace(SPECS, ops=(op,)).steps()] == [
        ("all_reduce_v1", "all_reduce_v2")
    ]
    for versions in (op.versions[:1], op.versions[1:]):
        assert list(replace(SPECS, ops=(replace(op, versions=versions),)).steps()) == []


def test_features_name_ops_or_types() -> None:
    assert {each.id for each in SPECS.features_of("tan")} == {"tan", "result_accuracy"}
    assert {each.id for each in SPECS.features_of("i2_v1")} == {"i2"}
    assert SPECS.features_of("nothing") == ()


def test_neighbours_of_versions() -> None:
    assert (SPECS.before(Version("1.0.0")), SPECS.after(Version("1.0.0"))) == (Version("0.20.0"), Version("1.1.0"))
    assert (SPECS.before(SPECS.versions[0].version), SPECS.after(SPECS.newest)) == (None, None)


def test_structures_within_structures() -> None:
    inner = {"type": "f32_v1"}
    outer = {"attribute": "array_v1", "elements": [inner, "text", {"attribute": "type_v1", "type": inner}]}
    # What is shared is there once.
    assert list(structures_in(outer)) == [outer, inner, {"attribute": "type_v1", "type": inner}]
    assert list(structures_in("text")) == []
