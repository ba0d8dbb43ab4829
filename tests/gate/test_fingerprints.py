"""What makes two findings the same: not lines, not positions, not the machine."""

from __future__ import annotations

import pytest

from vhlo_tools.compat import Target
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.gate import Question, fingerprints, identity_of
from vhlo_tools.version import Version

QUESTION = Question(Target("12w", Version("1.3.0"), "a window"))


def finding(path: str = "@main/4:stablehlo.while/1/2:stablehlo.tan", file: str = "model.py", line: int = 3) -> Finding:
    return Finding("tan", "error", "op", "...", "stablehlo.tan", SourceLocation(file, line), path=path, function="main")


@pytest.mark.parametrize(
    "other",
    [
        finding(line=99),
        finding(path="@main/5:stablehlo.while/1/7:stablehlo.tan"),
        finding(path="@main/5:stablehlo.while/0/7:stablehlo.tan"),
        finding(file="/home/someone/model.py"),
        finding(file="C:\\work\\model.py"),
    ],
)
def test_what_does_not_count(other: Finding) -> None:
    assert identity_of("m.mlir", QUESTION, other) == identity_of("m.mlir", QUESTION, finding())


def test_the_version_that_a_window_means_does_not_count() -> None:
    later = Question(Target("12w", Version("1.5.0"), "a window"))
    assert identity_of("m.mlir", later, finding()) == identity_of("m.mlir", QUESTION, finding())


@pytest.mark.parametrize(
    "other",
    [
        finding(path="@main/4:stablehlo.tan"),
        finding(file="other.py"),
        Finding("range_locations", "warning", "encoding", "..."),
    ],
)
def test_what_counts(other: Finding) -> None:
    assert identity_of("m.mlir", QUESTION, other) != identity_of("m.mlir", QUESTION, finding())


def test_the_path_without_positions() -> None:
    assert identity_of("m.mlir", QUESTION, finding()).path == "@main/stablehlo.while/stablehlo.tan"


def test_those_that_are_alike_are_counted() -> None:
    one = identity_of("m.mlir", QUESTION, finding())
    other = identity_of("n.mlir", QUESTION, finding())
    assert list(fingerprints([one, other, one])) == [f"{one.digest}:1", f"{other.digest}:1", f"{one.digest}:2"]
