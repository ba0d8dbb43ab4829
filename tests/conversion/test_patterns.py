"""The driver of patterns: what it replaces, what stays, what is passed on, and ops nested in ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import ModuleOp, Provider, names_without_class
from vhlo_tools.conversion import MatchFailure, Notes, Pattern, Rewriter, UnmatchedOpError, apply_patterns

PROGRAM = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a {mhlo.note = "kept"} : tensor<4xf32>
  %1 = stablehlo.abs %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""


def _absolute(rewriter: Rewriter) -> Sequence[Any]:
    (value,) = rewriter.operands()
    return [rewriter.make("stablehlo.abs", [value], value.type)]


def _never(rewriter: Rewriter) -> Sequence[Any]:
    rewriter.make("stablehlo.abs", rewriter.operands(), rewriter.result_type())
    raise MatchFailure("not this one")


@pytest.fixture
def module(provider: Provider) -> ModuleOp:
    return provider.parse(provider.new_context(), PROGRAM)


def _names(provider: Provider, module: ModuleOp) -> list[str]:
    return [name for op in provider.walk(module) if (name := str(op.name)).startswith("stablehlo.")]


def test_an_op_is_replaced_with_its_attributes_and_its_location(provider: Provider, module: ModuleOp) -> None:
    before = provider.walk(module)[2].location
    notes = Notes("m")
    apply_patterns(provider, module, [Pattern("stablehlo.negate", _absolute)], notes)
    made = provider.walk(module)[2]
    assert _names(provider, module) == ["stablehlo.abs", "stablehlo.abs"]
    assert (made.location, str(made.attributes["mhlo.note"])) == (before, '"kept"')
    assert [str(each) for each in notes.findings] == ["m:3:8: stablehlo.negate was rewritten to stablehlo.abs"]


def test_an_op_that_is_not_matched_stays_and_nothing_is_left_behind(provider: Provider, module: ModuleOp) -> None:
    apply_patterns(provider, module, [Pattern("stablehlo.negate", _never)])
    assert _names(provider, module) == ["stablehlo.negate", "stablehlo.abs"]


def _of_other_type(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.make("stablehlo.negate", rewriter.operands(), rewriter.tensor((3,), rewriter.type("f32")))]


def test_the_reason_why_an_op_stays_is_said(provider: Provider, module: ModuleOp) -> None:
    refused: list[tuple[str, str]] = []
    patterns = [Pattern("stablehlo.negate", _of_other_type), Pattern("stablehlo.abs", _never)]
    apply_patterns(provider, module, patterns, refuse=lambda op, reason: refused.append((str(op.name), reason)))
    assert _names(provider, module) == ["stablehlo.negate", "stablehlo.abs"]
    (invalid, why), never = refused
    assert invalid == "stablehlo.negate"
    assert why.startswith("what would replace it is not valid: ")
    assert "'stablehlo.negate' op" in why
    assert never == ("stablehlo.abs", "not this one")


_COPIED = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>, a.b = "c", a.complex = dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>,
      a.place = loc("there":1:2), mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_copies_have_all_attributes_or_the_note_says_what_they_lack(provider: Provider) -> None:
    def same(rewriter: Rewriter) -> Sequence[Any]:
        (type_,) = (each.type for each in rewriter.op.results)
        return rewriter.make_like(
            rewriter.operands(), [type_], channel_id=None, **{"mhlo.sharding": None, "a.new": flag}
        )

    def several(rewriter: Rewriter) -> Sequence[Any]:
        (type_,) = (each.type for each in rewriter.op.results)
        return rewriter.make_like([*rewriter.operands()] * 2, [type_] * 2, without=["mhlo.sharding"])[:1]

    # The driver passes on what the pattern leaves out, if the bindings have a class for it: up to jaxlib 0.10.0 for
    # locations too.
    before = provider.parse(provider.new_context(), _COPIED)
    (reduction,) = (op for op in provider.walk(before) if str(op.name) == "stablehlo.all_reduce")
    nameless = sorted(names_without_class(reduction.attributes))
    assert nameless in (["a.complex"], ["a.complex", "a.place"])
    passed_on = ["a.b", *({"a.place"} - {*nameless})]
    for build, kept, said in (
        (same, ["a.b", "a.complex", "a.new", "a.place", "mhlo.sharding"], "was rewritten"),
        (several, passed_on, f"was rewritten, without its {', '.join(['mhlo.sharding', *nameless])}"),
    ):
        module = provider.parse(provider.new_context(), _COPIED)
        flag = provider.ir.UnitAttr.get(module.context)
        notes = Notes("m")
        apply_patterns(provider, module, [Pattern("stablehlo.all_reduce", build)], notes)
        (made,) = (op for op in provider.walk(module) if str(op.name) == "stablehlo.all_reduce")
        names = sorted(each if isinstance(each, str) else each.name for each in made.attributes)
        assert names == [*kept, "replica_groups"]
        assert [each.message for each in notes.findings] == [f"stablehlo.all_reduce {said}"]
        assert "stablehlo.add" in str(made)


def test_an_op_that_has_to_be_matched_is_named(provider: Provider, module: ModuleOp) -> None:
    with pytest.raises(UnmatchedOpError, match="not this one") as caught:
        apply_patterns(provider, module, [Pattern("stablehlo.negate", _never, required=True)])
    assert str(caught.value.op.name) == "stablehlo.negate"


def test_what_is_built_wrong_stays_out(provider: Provider, module: ModuleOp) -> None:
    def wrong(rewriter: Rewriter) -> Sequence[Any]:
        # The result is of another shape than the operand.
        return [rewriter.make("stablehlo.abs", rewriter.operands(), rewriter.tensor((3,), rewriter.type("f32")))]

    apply_patterns(provider, module, [Pattern("stablehlo.negate", wrong)])
    provider.verify(module)
    assert _names(provider, module) == ["stablehlo.negate", "stablehlo.abs"]


def test_ops_within_an_op_that_is_cloned_are_replaced_too() -> None:
    """Indices of eight bits and a comparison by total order: the interpreter has neither."""
    program = """
    func.func @main(%a: tensor<4xf32>, %i: tensor<2x1xui8>, %u: tensor<2xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %c = stablehlo.compare GT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %s = stablehlo.select %c, %x, %y : tensor<i1>, tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4xf32>, tensor<2x1xui8>, tensor<2xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    inputs = [np.zeros(4, np.float32), np.array([[1], [3]], np.uint8), np.array([5, -1], np.float32)]
    for engine in ("reference", "xla"):
        (result,) = vt.run(program, inputs, engine=engine)
        assert result.tolist() == [0, 5, 0, 0]
