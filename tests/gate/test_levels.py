"""Levels of features: which of several entries counts."""

from __future__ import annotations

from typing import get_args

import pytest

from vhlo_tools.findings import Finding, FindingKind, Level
from vhlo_tools.gate import Levels
from vhlo_tools.gate.settings import apply_levels, level_of, problem_with
from vhlo_tools.spec import known_explanations, known_features


def finding(feature: str = "dot_algorithm", kind: FindingKind = "attribute", level: Level = "error") -> Finding:
    return Finding(feature, level, kind, "...")


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([], None),
        ([{"tan": "deny"}], None),
        ([{"tan*": "deny", "?ot": "allow"}], None),
        ([{"tan*": "deny", "attribute": "warn"}], "warn"),
        ([{"attribute": "warn"}], "warn"),
        ([{"attribute": "warn", "dot_*": "allow"}], "allow"),
        ([{"*": "deny", "dot_*": "allow"}], "allow"),
        ([{"dot_*": "allow", "dot_algorithm": "deny", "attribute": "warn"}], "deny"),
        ([{"dot_algorithm": "deny"}, {"attribute": "allow"}], "allow"),
        ([{"dot_algorithm": "deny"}, {"type": "allow"}], "deny"),
        ([{"dot_?lgorithm": "allow", "dot_algorith?": "deny"}], "deny"),
    ],
)
def test_the_entry_that_counts(layers: list[Levels], expected: str | None) -> None:
    assert level_of(finding(), layers) == expected


def test_findings_get_their_levels() -> None:
    found = [finding("tan"), finding("i2"), finding("composite"), finding("custom_call", level="note")]
    left, allowed = apply_levels(found, [{"tan": "allow", "i2": "warn", "custom_call": "deny"}])
    assert [(each.feature, each.level) for each in left] == [
        ("i2", "warning"),
        ("composite", "error"),
        ("custom_call", "error"),
    ]
    assert allowed == [finding("tan")]


def test_no_feature_is_called_like_a_kind() -> None:
    ids = {each.id for each in known_features()} | {each.id for each in known_explanations()}
    assert not ids & set(get_args(FindingKind))


@pytest.mark.parametrize("name", ["tan", "op", "alias_*", "withdrawn_trace_v1", "withdrawn_*", "withdrawn_t*", "*"])
def test_what_a_level_may_be_for(name: str) -> None:
    assert problem_with(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tanh", "did you mean tan?"),
        ("ops", "did you mean op"),
        ("algorithm", "dot_algorithm"),
        ("withdrawn", "is not a feature"),
        ("zzz", "`vhlo spec list`"),
        ("zzz*", "matches no feature"),
    ],
)
def test_what_it_may_not_be_for(name: str, message: str) -> None:
    assert message in (problem_with(name) or "")
