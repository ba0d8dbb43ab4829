"""Constraints and names in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vhlo_tools.spec.specification import known_specification
from vhlo_tools.spec.version_steps import constraint_text, joined, life_text, structure_text
from vhlo_tools.version import Version

SPECS = known_specification()


def test_ranges() -> None:
    assert life_text(Version("0.9.0"), Version("1.4.0")) == "0.9.0 to 1.4.0"
    assert life_text(Version("1.5.0"), None) == "1.5.0 to current"


def test_names_as_in_a_sentence() -> None:
    assert joined([]) == ""
    assert joined(["a"]) == "a"
    assert joined(["a", "b"]) == "a and b"
    assert joined(["a", "b", "c"], "or") == "a, b or c"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"attribute": "comparison_type_v1", "case": "FLOAT"}, "FLOAT"),
        ({"type": "none_v1"}, "none_v1"),
        ({"attribute": "type_v1", "type": {"type": "f32_v1"}}, "f32_v1"),
        ({"attribute": "boolean_v1", "value": False}, '{"attribute": "boolean_v1", "value": false}'),
    ],
)
def test_structures(value: dict[str, object], text: str) -> None:
    assert structure_text(value) == text


def test_constraints() -> None:
    texts = {name: constraint_text(constraint) for name, _, constraint in SPECS.constraints()}
    assert texts["all_reduce.mixed_precision_reduction"] == "operands and results of different element types"
    assert texts["custom_call.custom_call_futures"] == "future_v1 as inputs"
    assert texts["dot_general.dot_algorithm_f8E4M3FN"] == "f8E4M3FN_v1 as lhs_precision_type or rhs_precision_type"


def test_many_types_of_a_constraint_are_shortened() -> None:
    mixed = next(each for name, _, each in SPECS.constraints() if name == "convolution.mixed_f8_convolution")
    few, many = replace(mixed, types=("a", "b", "c")), replace(mixed, types=("a", "b", "c", "d"))
    assert constraint_text(few) == "different element types of lhs and rhs among a, b and c"
    assert constraint_text(many) == "different element types of lhs and rhs among a ... d (4 types)"
