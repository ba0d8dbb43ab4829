"""Programs with blockers of ten features and more, which an old jaxlib reads and runs after their expansions."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from support.corpus import ROOT
from support.release_runs import run_by_release

import vhlo_tools as vt

pytestmark = pytest.mark.needs("async", "composite_regions", "mesh_replica_groups")

PROGRAMS = ROOT / "tests" / "programs" / "expansion"
RELEASE = "jaxlib==0.4.26"
EXACT = frozenset(
    {
        *("async", "buffers", "composite_regions", "dot_algorithm", "gather_scatter_batching_dims"),
        *("mesh_replica_groups", "tan", "variadic_collectives"),
    }
)
RELAXED = frozenset({"exponential_result_accuracy", "result_accuracy"})
#: Of custom calls that are gone with the buffers.
GONE = {"custom_call_dictionary_backend_config"}


@dataclass(frozen=True)
class Case:
    """A program, the version it is written for, and the features with exact expansions that the version lacks."""

    program: str
    target: str
    exact: frozenset[str]

    def __str__(self) -> str:
        return f"{self.program} for {self.target}"


CASES = [
    Case("ten_blockers.mlir", RELEASE, EXACT),
    Case("ten_blockers.mlir", "0.19.0", EXACT),
    # XLA of the release reads composites, and compiles none: they are expanded for the version before theirs.
    Case("many_blockers.mlir", "0.18.0", EXACT | {"composite"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_expansions_every_reason_is_said(case: Case) -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAMS / case.program, case.target)
    assert {each.feature for each in refused.value.findings} == case.exact | RELAXED | GONE
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAMS / case.program, case.target, expand=True)
    assert {each.feature for each in refused.value.findings} == RELAXED


def test_the_report_says_what_became_of_each() -> None:
    artifact = vt.serialize(PROGRAMS / "ten_blockers.mlir", RELEASE, expand=True, allow_relaxed=RELAXED)
    assert list(map(str, artifact.findings)) == (PROGRAMS / "ten_blockers.txt").read_text().splitlines()


@pytest.mark.releases
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_old_release_reads_and_runs_it(case: Case) -> None:
    program = PROGRAMS / case.program
    artifact = vt.serialize(program, case.target, expand=True, allow_relaxed=RELAXED)
    notes = [each for each in artifact.findings if each.level == "note"]
    assert {each.feature for each in notes} == case.exact | RELAXED
    # Every op in the way is in the report, at its place in the source.
    lines = {each.location.line for each in notes if each.location is not None and each.location.file == "model.py"}
    named = re.findall(r'loc\("model.py":(\d+):', program.read_text())
    assert lines == {int(line) for line in named}
    assert [str(alias) for alias in artifact.aliases().aliases] == [
        str(alias) for alias in vt.serialize(program).aliases().aliases
    ]
    inputs = [
        np.arange(8, dtype=np.float32).reshape(2, 4) / 8,
        (np.arange(8).reshape(2, 4) / 4).astype(ml_dtypes.bfloat16),
    ]
    outcome = run_by_release(RELEASE, artifact, [inputs])
    assert outcome.results is not None, outcome.error
    for one, other in zip(outcome.results[0], vt.run(artifact, inputs, engine="xla"), strict=True):
        # Two versions of XLA.
        np.testing.assert_allclose(one, other, rtol=1e-6)
