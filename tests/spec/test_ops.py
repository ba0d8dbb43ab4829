"""The ops, enums and defaults against each other; what the library says of them is tested beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from vhlo_tools.spec import (
    Constraint,
    Op,
    Slot,
    find_enum,
    find_op,
    find_op_version,
    known_default,
    known_defaults,
    known_enums,
    known_ops,
    known_versions,
)
from vhlo_tools.spec.ops import load_ops

BY_NAME = pytest.mark.parametrize("op", known_ops(), ids=lambda op: op.name)
VERSIONS = [entry.version for entry in known_versions()]
CONSTRAINTS = [(op, constraint) for op in known_ops() for constraint in op.constraints]


def test_names_are_unique_and_found() -> None:
    names = [op.name for op in known_ops()]
    assert len(set(names)) == len(names)
    for op in known_ops():
        assert find_op(op.name) is op
        assert [find_op_version(version.name) for version in op.versions] == list(op.versions)
    assert find_op("there_is_no_such_op") is None
    assert find_op_version("exponential") is None
    assert find_op_version("exponential_v9") is None


@BY_NAME
def test_versions_meet_without_gap_or_overlap(op: Op) -> None:
    assert [version.number for version in op.versions] == list(range(1, len(op.versions) + 1))
    for version in op.versions:
        assert version.min in VERSIONS
        assert version.max is None or version.min <= version.max
    for older, newer in zip(op.versions, op.versions[1:], strict=False):
        assert older.max is not None
        assert VERSIONS.index(older.max) + 1 == VERSIONS.index(newer.min)
    assert (op.versions[-1].max is None) != op.versions[-1].forgotten, "only what was dropped by mistake has an end"
    for version in op.versions:
        assert op.at(version.min) is version
        assert version.max is None or op.at(version.max) is version
    first = VERSIONS.index(op.versions[0].min)
    assert first == 0 or op.at(VERSIONS[first - 1]) is None


@BY_NAME
def test_steps_say_all_that_differs(op: Op) -> None:
    neighbours = [(version.number, version.number + 1) for version in op.versions[:-1]]
    assert [(step.older, step.newer) for step in op.steps] == neighbours
    for step, older, newer in zip(op.steps, op.versions, op.versions[1:], strict=False):
        assert set(newer.attributes) - set(older.attributes) == set(step.added)
        assert set(older.attributes) - set(newer.attributes) == set(step.removed)
        for default in [*step.added.values(), *step.removed.values()]:
            known_default(default)
        for default in step.removed.values():
            of = known_default(default).of
            assert of is None or Slot(of) in newer.operands
        for default in step.added.values():
            assert known_default(default).text is not None, "a downgrade must know what to look for"
        assert _widened(older.operands, newer.operands) | _widened(older.results, newer.results) == set(step.single)
        assert {slot.name for slot in newer.regions[len(older.regions) :]} == set(step.empty)
        assert older.regions == newer.regions[: len(older.regions)]


def _widened(older: tuple[Slot, ...], newer: tuple[Slot, ...]) -> set[str]:
    return {slot.name for before, slot in zip(older, newer, strict=True) if slot.variadic and not before.variadic}


@BY_NAME
def test_attributes_are_in_the_order_of_the_alphabet(op: Op) -> None:
    for version in op.versions:
        assert list(version.attributes) == sorted(version.attributes)


@pytest.mark.parametrize(("op", "constraint"), CONSTRAINTS, ids=lambda value: getattr(value, "name", None))
def test_constraints_refer_to_what_is_there(op: Op, constraint: Constraint) -> None:
    for number in constraint.versions:
        version = op.versions[number - 1]
        assert version.min < constraint.since, "the constraint could never speak"
        assert set(constraint.operands) <= {slot.name for slot in version.operands}
        assert set(constraint.attributes) <= set(version.attributes)
    # Below it, in every version that the constraint can meet, the op is one that it applies to, if it is there at all.
    before = VERSIONS[VERSIONS.index(constraint.since) - 1]
    assert op.at(before) in [op.versions[number - 1] for number in constraint.versions]


def test_operands_are_shared_out() -> None:
    scatter = find_op_version("scatter_v2")
    assert scatter is not None
    assert scatter.operand_slices(5) == {
        "inputs": slice(0, 2),
        "scatter_indices": slice(2, 3),
        "updates": slice(3, 5),
    }
    outfeed = find_op_version("outfeed_v1")
    assert outfeed is not None
    assert outfeed.operand_slices(1) == {"inputs": slice(0, 0), "token": slice(0, 1)}
    for name, count in (("scatter_v2", 4), ("outfeed_v1", 0), ("abs_v1", 2), ("iota_v1", 1)):
        version = find_op_version(name)
        assert version is not None
        with pytest.raises(ValueError, match=f"{name} cannot have {count} operands"):
            version.operand_slices(count)


def test_enum_cases_are_unique() -> None:
    assert len({enum.name for enum in known_enums()}) == len(known_enums())
    for enum in known_enums():
        assert find_enum(enum.name) is enum
        values = [case.value for case in enum.cases]
        assert values == sorted(set(values))
        assert len({case.name for case in enum.cases}) == len(values)
        for case in enum.cases:
            assert enum.case(case.name) is case
            assert enum.case_of(case.value) is case
            assert enum.min <= case.min
            assert {enum.min, case.min} <= set(VERSIONS)
        assert enum.case("NO_SUCH_CASE") is enum.case_of(99) is None
    assert find_enum("no_such_enum_v1") is None


def test_defaults_are_unique_and_used() -> None:
    defaults = [default.id for default in known_defaults()]
    assert len(set(defaults)) == len(defaults)
    used = {
        value for op in known_ops() for step in op.steps for value in (*step.added.values(), *step.removed.values())
    }
    assert used == set(defaults)


def test_structures_name_cases_of_enums() -> None:
    structures = [
        *(default.value for default in known_defaults()),
        *(constraint.value for _, constraint in CONSTRAINTS),
    ]
    named = [node for structure in structures for node in _nodes(structure) if "case" in node]
    for node in named:
        enum = find_enum(node["attribute"])
        assert enum is not None
        assert enum.case(node["case"]) is not None
    assert {node["attribute"] for node in named} == {"api_version_v1", "result_accuracy_mode_v1"}


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _nodes(inner)


def test_another_folder_is_read(tmp_path: Path) -> None:
    ops = tmp_path / "vhlo" / "ops"
    ops.mkdir(parents=True)
    (ops / "README.md").write_text("not data")
    version = 'number = 1\nmin = "0.9.0"\noperands = ["a", "b*"]\nresults = []\nattributes = []\n'
    (ops / "mine.toml").write_text(f'[[op]]\nname = "my_op"\n[[op.version]]\n{version}')
    (op,) = load_ops(tmp_path)
    assert (op.name, op.family) == ("my_op", "mine")
    assert op.versions[0].operands == (Slot("a"), Slot("b", variadic=True))
    assert op.versions[0].name == "my_op_v1"
