"""The table of op traits: it has all ops of the specification, and what is mapped to functions agrees with it."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import pytest

from vhlo_tools.bindings import Provider
from vhlo_tools.conversion import Pattern
from vhlo_tools.execution import CONTROL_FLOW, OP_TRAITS, DomainKind, ops_where
from vhlo_tools.execution.devices import GROUPS
from vhlo_tools.execution.lowering.patterns import PATTERNS
from vhlo_tools.execution.lowering.shapes import BOUND_PATTERNS
from vhlo_tools.execution.lowering.types import NARROW_FLOAT_PATTERNS
from vhlo_tools.execution.op_traits import Rewriting
from vhlo_tools.execution.reference.preparation import FACTORS
from vhlo_tools.execution.stepping.device_steps import DISTRIBUTED
from vhlo_tools.execution.stepping.local_steps import HOST_OPS
from vhlo_tools.execution.stepping.planning import STEPS
from vhlo_tools.execution.xla.workarounds import WORKAROUNDS
from vhlo_tools.spec import known_ops
from vhlo_tools.verification.drawing import INDEX_RULES

pytestmark = pytest.mark.every_python

# The specification has these as VHLO only: they stand for ops of the dialect func.
OF_FUNC = {"call": "func.call", "func": "func.func"}

# Why the table has ops of dialects that the specification does not describe.
OTHER_DIALECTS = {
    "builtin": "every program is a module",
    "chlo": "inputs are drawn for programs before they are legalized",
    "func": "in VHLO, the end of a function is the same op as that of a region",
    "mhlo": "frameworks write it, and it is removed before a program runs",
    "sdy": "artifacts hold it beside VHLO",
}

REWRITINGS: dict[Rewriting, tuple[Pattern, ...]] = {
    "bounds": BOUND_PATTERNS,
    "lowering": PATTERNS,
    "narrow floats": NARROW_FLOAT_PATTERNS,
    "xla workarounds": WORKAROUNDS,
}

#: Quantized elements are stored as integers with whatever ops take them, and these then do nothing more.
LOWERED_WITH_THEIR_TYPES = {"stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"}


def described() -> set[str]:
    return {OF_FUNC.get(op.name, f"stablehlo.{op.name}") for op in known_ops()}


def test_the_table_has_every_op_of_the_specification() -> None:
    assert described() - OP_TRAITS.keys() == set()


@pytest.mark.whole_data("the code has ops that the data must have too")
def test_the_table_has_no_op_that_nobody_knows(provider: Provider) -> None:
    others = OP_TRAITS.keys() - described()
    assert {name.partition(".")[0] for name in others} == OTHER_DIALECTS.keys()
    context = provider.new_context()
    assert [name for name in others if not context.is_registered_operation(name)] == []


@pytest.mark.parametrize("rewriting", get_args(Rewriting))
def test_ops_with_a_pattern_are_said_to_be_rewritten(rewriting: Rewriting) -> None:
    assert {each.op for each in REWRITINGS[rewriting]} == ops_where(lambda traits: rewriting in traits.rewritings)


def test_what_the_interpreter_lacks_is_lowered() -> None:
    lowered = ops_where(lambda traits: traits.reference == "lowered")
    rewritten = ops_where(lambda traits: not {"lowering", "bounds"}.isdisjoint(traits.rewritings))
    assert lowered - rewritten == LOWERED_WITH_THEIR_TYPES
    assert rewritten - lowered <= ops_where(lambda traits: traits.reference == "evaluated")


@pytest.mark.parametrize(
    ("mapped", "named"),
    [
        (DISTRIBUTED, ops_where(lambda traits: traits.reference == "devices")),
        (STEPS, ops_where(lambda traits: traits.reference == "host" or traits.may_hold_host_ops)),
        ({name for name, _ in INDEX_RULES}, ops_where(lambda traits: "index" in traits.domains.values())),
    ],
    ids=["distributed", "steps", "indices"],
)
def test_functions_of_ops_agree_with_traits(mapped: Collection[str], named: frozenset[str]) -> None:
    assert set(mapped) == named


def test_every_cost_has_a_factor() -> None:
    handled_before = {"branch", "callee", "free", "loop"}
    assert {traits.cost for traits in OP_TRAITS.values()} == {*FACTORS, *handled_before}


def test_every_kind_of_domain_is_used() -> None:
    assert {kind for traits in OP_TRAITS.values() for kind in traits.domains.values()} == {*get_args(DomainKind)} - {
        "any"
    }


def test_devices_meet_only_at_ops_between_devices() -> None:
    between = ops_where(lambda traits: traits.reference == "devices")
    assert GROUPS.keys() <= between
    assert ops_where(lambda traits: traits.one_axis) <= GROUPS.keys()


def test_host_ops_stay_so_wherever_they_stand() -> None:
    may_hold = ops_where(lambda traits: traits.may_hold_host_ops)
    assert not HOST_OPS & may_hold
    assert may_hold > CONTROL_FLOW


def test_only_what_does_not_run_says_why() -> None:
    assert {OP_TRAITS[name].reference for name in ops_where(lambda traits: bool(traits.reference_gap))} == {
        "unsupported"
    }
    assert all(OP_TRAITS[name].reference == "devices" for name in ops_where(lambda traits: bool(traits.xla_gap)))
