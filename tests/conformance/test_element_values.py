"""Ops on all values of narrow types and special ones of wider types: nothing is wrong that is not listed."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from element_values import ELEMENTS, FILE, outcomes, read_rules

from vhlo_tools.api import EngineChoice

RECORD = json.loads(FILE.with_suffix(".json").read_text())
BOTH: tuple[EngineChoice, ...] = ("reference", "xla")
#: What an engine was wrong on, and one op of each kind beside.
SOME = {
    "bf16": ("power", "logistic", "convert to f8E8M0FNU"),
    "complex<f32>": ("compare L*", "maximum", "sine", "exponential_minus_one", "log_plus_one"),
    "f16": ("logistic", "reduce_precision e8m7"),
    "f4E2M1FN": ("convert to i*", "reduce_precision e1m0", "constant", "sort"),
    "f64": ("convert to bf16", "clamp"),
    "f6E2M3FN": ("compare LT *", "floor"),
    "f8E3M4": ("ceil", "round_nearest_*", "sqrt", "logistic", "reduce add"),
    "f8E4M3FNUZ": ("reduce_precision *", "compare LT *", "select"),
    "f8E8M0FNU": ("negate", "subtract", "dot_general", "iota", "convert to f32", "convert to f6E2M3FN"),
    "i32": ("power", "convert to bf16", "convert to f8E8M0FNU"),
    "i4": ("popcnt", "shift_*", "bitcast_convert *", "reduce xor"),
}

# The judge's numbers are compared in extended precision, which not every machine has.
needs_precision = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="numpy has no floats of 80 bits here")


def unexpected(element: str, ops: Sequence[str]) -> list[str]:
    ended = list(outcomes([element], BOTH, read_rules(), ops))
    assert {each.engine for each in ended} == set(BOTH)
    return [str(each) for each in ended if each.is_unexpected]


@needs_precision
@pytest.mark.every_python
@pytest.mark.parametrize("element", SOME)
def test_some_ops_of_a_type(element: str) -> None:
    assert unexpected(element, SOME[element]) == []


@needs_precision
@pytest.mark.long
@pytest.mark.parametrize("element", ELEMENTS)
def test_all_ops_of_a_type(element: str) -> None:
    assert unexpected(element, ["*"]) == []


def test_the_record_has_only_what_is_listed() -> None:
    listed = {(each.outcome, each.reason) for each in read_rules() if each.outcome}
    assert {(each["outcome"], each["reason"]) for each in RECORD["causes"]} == listed
    assert {each["reason"] for each in RECORD["open"]} <= {each.reason for each in read_rules() if each.values}
    for engine, counted in RECORD["engines"].items():
        assert counted["right"] + counted["refused"] + counted["wrong"] == counted["ops"]
        assert counted["wrong"] == 0 or engine == "iree"
