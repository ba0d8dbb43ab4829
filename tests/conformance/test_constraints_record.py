"""What was recorded of constraints is what the verifier and the engines of the installed release do."""

from __future__ import annotations

import json

import jaxlib
import pytest
from constraints import RECORD, REFUSED, cases
from isolated_cases import work_off

SAMPLE = (
    *("all_gather C6 1", "compare C3 1", "compare C3 13", "dot_general C13 1", "fft C4 1", "reduce C6 1"),
    *("reduce conforms 1", "scatter C6 1", "select_and_scatter C9 1", "slice C3 1", "transpose C2 1"),
)


def test_a_sample_ends_as_recorded() -> None:
    record = json.loads(RECORD.read_text()).get(jaxlib.__version__)
    if record is None:
        pytest.skip(f"nothing is recorded of jaxlib {jaxlib.__version__}: python {RECORD.with_suffix('.py')} --record")
    chosen = [case for case in cases() if case.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    assert sum(1 for _ in cases()) == record["programs"]
    for ended in work_off("constraints:outcome", chosen, processes=2, timeout=200):
        assert ended.how == "done", ended
        how = REFUSED if ended.result.startswith(REFUSED) else ended.result
        default = REFUSED if ended.case.constraint else "equal"
        assert (ended.case.name, how) == (ended.case.name, record["passed"].get(ended.case.name, default))
