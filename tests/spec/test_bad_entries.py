"""What a file of a specification may not say, and what its steps say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.spec import find_op, known_jax_releases, step_texts
from vhlo_tools.spec.data import Kind, check_entry, convert_entry, read_entries
from vhlo_tools.spec.ops import _to_constraint
from vhlo_tools.spec.releases import _to_part


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[op]\n", "Expected"),
        ("[other]\na = 1\n", "unknown key other: expected only"),
        ("", "expected at least one"),
        ("op = [1, 2]\n", "expected op to be an array of tables"),
        ("[op]\na = 1\n", "expected op to be an array of tables"),
    ],
)
def test_files_that_are_none(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "ops.toml").write_text(text)
    with pytest.raises(InvalidSpecificationError, match=expected):
        read_entries("ops.toml", "op", tmp_path)
    # A fork may lack a file.
    assert read_entries("others.toml", "op", tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "good", "bad", "expected"),
    [
        (frozenset({"a", "b"}), "a", "c", "one of a, b"),
        (range(1, 9), 1, 0, "a number, at least 1"),
        (range(1, 9), 8, True, "a number, at least 1"),
        (str, "a", " ", "a string"),
        ([str], ["a"], ["a", 1], "a list, each element"),
        ({"": int}, {"a": 1}, {"a": True}, "a table, each value"),
    ],
)
def test_values_of_another_kind(kind: Kind, good: Any, bad: Any, expected: str) -> None:
    check_entry({"key": good}, key=kind)
    with pytest.raises(ValueError, match=rf"^key is .*: expected .*{expected}"):
        check_entry({"key": bad}, key=kind)
    with pytest.raises(ValueError, match="unknown key other: expected key"):
        check_entry({"other": good}, key=kind)


def test_constraints_say_what_they_are_about() -> None:
    entry: dict[str, Any] = {"feature": "f", "since": "1.0.0", "versions": [1], "requires": "same_element_types"}
    assert _to_constraint(entry).attributes == ()
    with pytest.raises(ValueError, match="^same_element_types has attributes: expected nothing else$"):
        _to_constraint(entry | {"attributes": ["a"]})
    with pytest.raises(ValueError, match="^operands_do_not_mix has nothing: expected operands and types$"):
        _to_constraint(entry | {"requires": "operands_do_not_mix"})


def test_parts_of_jax_exports_begin_or_end_at_a_known_release() -> None:
    release = known_jax_releases()[0].release
    part = {"id": "x", "value": "v", "title": "t", "step": "load"}
    for ends in ({"since": release}, {"until": release}):
        assert convert_entry("parts.toml", "part", {**part, **ends}, _to_part).id == "x"
    for ends, expected in (
        ({"until": "0.0.1"}, "until is '0.0.1': expected a release"),
        ({}, "expected since or until"),
    ):
        with pytest.raises(InvalidSpecificationError, match=expected):
            convert_entry("parts.toml", "part", {**part, **ends}, _to_part)


def test_steps_say_what_they_do_and_what_refuses_them() -> None:
    op = find_op("all_reduce")
    assert op is not None
    assert [list(step_texts(step)) for step in op.steps] == [
        [
            ("upgrade", "only the name changes", False),
            ("downgrade", "only with one value each of operands and results", True),
        ]
    ]
    dynamic = find_op("dynamic_conv")
    assert dynamic is not None
    (texts,) = [list(step_texts(step)) for step in dynamic.steps]
    assert {(direction, guard) for direction, _, guard in texts} == {("upgrade", False), ("downgrade", False)}
    assert any(text.endswith("is removed") for direction, text, _ in texts if direction == "upgrade")
