"""Composites, with and without regions, as calls of their decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.expansions import check_same, check_same_on_devices, expanded

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.compat import expansion_policy
from vhlo_tools.conversion import expand_module
from vhlo_tools.program import load_program

_DTYPES = {"f32": np.float32, "i8": np.int8, "ui16": np.uint16, "i1": np.bool_, "complex<f32>": np.complex64}
_SQUARE = """
func.func private @square(%a: {type}) -> {type} {{
  %0 = stablehlo.multiply %a, %a : {type} return %0 : {type} }}"""


def _square(type_: str) -> str:
    return _SQUARE.format(type=type_)


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", _DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 3)], ids=str)
def test_types_and_sizes(element: str, shape: tuple[int, ...]) -> None:
    type_ = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    program = f"""func.func @main(%a: {type_}) -> {type_} {{
      %0 = stablehlo.composite "my.square" %a {{decomposition = @square}} : ({type_}) -> {type_}
      return %0 : {type_} }}{_square(type_)}"""
    value: Any = np.random.default_rng(0).integers(0, 9, shape).astype(_DTYPES[element])
    for target in (None, "0.9.0"):
        artifact, _ = expanded(program, "composite", target)
        check_same(program, artifact, [[value]])


# Composites in a called function, in a decomposition, and in regions of control flow and of a reduction; several
# results, and none.
_NESTED = f"""
func.func @main(%a: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<f32>, tensor<4xf32>) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = func.call @called(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.if"(%p) ({{
    %4:2 = stablehlo.composite "my.both" %0 {{decomposition = @both}}
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    stablehlo.return %4#1 : tensor<4xf32>
  }}, {{
    stablehlo.return %a : tensor<4xf32>
  }}) : (tensor<i1>) -> tensor<4xf32>
  %2 = "stablehlo.reduce"(%1, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %5 = stablehlo.composite "my.plus" %b, %c {{decomposition = @plus}}
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  stablehlo.composite "my.nothing" %a {{decomposition = @nothing}} : (tensor<4xf32>) -> ()
  return %0, %2, %1 : tensor<4xf32>, tensor<f32>, tensor<4xf32>
}}
func.func private @called(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.composite "my.square" %a {{decomposition = @square}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
func.func private @both(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %0 = stablehlo.composite "my.square" %a {{decomposition = @square}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
func.func private @plus(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}}
func.func private @nothing(%a: tensor<4xf32>) {{ return }}
{_square("tensor<4xf32>")}"""


def test_nested_and_called() -> None:
    artifact, notes = expanded(_NESTED, "composite", "0.9.0")
    assert len(notes) == 5
    text = artifact.text()
    assert "composite" not in text
    assert text.count('"vhlo.call_v1"') == 6
    value = np.array([1, -2, 3, 0.5], np.float32)
    check_same(_NESTED, artifact, [[value, np.array(each)] for each in (True, False)])


# The body of a composite may use values from outside, and newer features; a composite may be in it.
_REGIONS = f"""
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %c = stablehlo.sine %a : tensor<4xf32>
  %0 = "stablehlo.composite"(%a) ({{
  ^bb0(%b: tensor<4xf32>):
    %1 = stablehlo.tan %b : tensor<4xf32>
    %2 = "stablehlo.composite"(%1) ({{ stablehlo.return %c : tensor<4xf32> }})
      {{name = "my.inner", decomposition = @square}} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }}, {{
    stablehlo.return %a : tensor<4xf32>
  }}) {{name = "my.outer", decomposition = @square, my.tag = "kept"}} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.composite "my.plain" %0 {{decomposition = @square}} : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}}
{_square("tensor<4xf32>")}"""


@pytest.mark.needs("composite_regions")
def test_regions_are_ignored_and_other_composites_remain() -> None:
    artifact, notes = expanded(_REGIONS, "composite_regions")
    assert [note.message.partition(", because")[0] for note in notes] == [
        # It was within the other one.
        "stablehlo.composite was rewritten to StableHLO, without its name my.inner, regions",
        "stablehlo.composite was rewritten to func.call, without its name my.outer, regions",
    ]
    text = artifact.text()
    assert text.count("vhlo.composite_v1") == 1
    assert 'name = #vhlo.string_v1<"my.plain">' in text
    assert 'my.tag = #vhlo.string_v1<"kept">' in text
    assert "tan" not in text
    value = np.array([1, -2, 3, 0.5], np.float32)
    # XLA refuses composites with regions.
    check_same(_REGIONS, artifact, [[value]], engines=["reference"])
    (found,) = vt.run(artifact, [value], engine="xla")
    np.testing.assert_array_equal(found, value**4)
    both = vt.serialize(_REGIONS, "0.9.0", expand=True)
    assert {note.feature for note in both.findings} == {"composite_regions", "composite"}
    check_same(_REGIONS, both, [[value]], engines=["reference"])


@pytest.mark.needs("composite_regions")
def test_a_composite_with_regions_needs_one_expansion_only() -> None:
    artifact, notes = expanded(_REGIONS, "composite", "0.9.0")
    assert len(notes) == 3
    assert "composite" not in artifact.text()


def test_effects_of_a_decomposition_remain() -> None:
    program = """
    func.func @main(%a: tensor<4xf32>, %t: !stablehlo.token) -> tensor<4xf32> {
      stablehlo.composite "my.log" %a {decomposition = @log, my.tag = 1 : i64} : (tensor<4xf32>) -> ()
      %0 = stablehlo.composite "my.out" %a, %t {decomposition = @out}
        : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      return %a : tensor<4xf32>
    }
    func.func private @log(%a: tensor<4xf32>) {
      stablehlo.custom_call @log(%a) {has_side_effect = true} : (tensor<4xf32>) -> ()
      return
    }
    func.func private @out(%a: tensor<4xf32>, %t: !stablehlo.token) -> !stablehlo.token {
      %0 = "stablehlo.outfeed"(%a, %t) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      return %0 : !stablehlo.token
    }"""
    artifact, notes = expanded(program, "composite", "0.9.0")
    assert len(notes) == 2
    text = artifact.text()
    assert text.count('"vhlo.call_v1"') == 2
    assert "my.tag = #vhlo.integer_v1<1 : i64>" in text
    assert text.count("vhlo.custom_call_v1") == text.count("vhlo.outfeed_v1") == 1


def test_what_is_lost_is_said() -> None:
    program = f"""func.func @main(%a: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.composite "my.square" %a {{
        composite_attributes = {{x = 1 : i64}}, decomposition = @square, version = 3 : i32,
        mhlo.frontend_attributes = {{k = "v"}}
      }} : (tensor<f32>) -> tensor<f32> loc("model.py":7:1)
      %1 = stablehlo.composite "my.plain" %0 {{
        composite_attributes = {{}}, decomposition = @square, version = 0 : i32
      }} : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32> }}{_square("tensor<f32>")}"""
    artifact, (first, second) = expanded(program, "composite")
    assert first.message == (
        "stablehlo.composite was rewritten to func.call, without its name my.square, version, composite_attributes, "
        "because StableHLO 0.19.0 introduced the op composite (exact)"
    )
    assert str(first.location) == "model.py:7:1"
    assert "without its name my.plain, because" in second.message
    assert "mhlo.frontend_attributes" in artifact.text()


def test_aliases_and_devices() -> None:
    type_ = "tensor<2xf32>"
    program = f"""
    module attributes {{mhlo.num_replicas = 4 : i32}} {{
    func.func @main(%a: {type_} {{tf.aliasing_output = 0 : i32}}) -> {type_} {{
      %0 = stablehlo.composite "my.total" %a {{decomposition = @total}} : ({type_}) -> {type_}
      return %0 : {type_} }}
    func.func private @total(%a: {type_}) -> {type_} {{
      %0 = "stablehlo.all_reduce"(%a) ({{
      ^bb0(%b: tensor<f32>, %c: tensor<f32>):
        %1 = stablehlo.add %b, %c : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }}) {{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}} : ({type_}) -> {type_}
      return %0 : {type_} }} }}"""
    artifact, _ = expanded(program, "composite", "0.9.0")
    alias = '[#vhlo.dict_v1<{#vhlo.string_v1<"tf.aliasing_output"> = #vhlo.integer_v1<0 : i32>}>]'
    assert all(alias in vt.serialize(each).text() for each in (program, artifact))
    inputs = [[np.arange(2, dtype=np.float32) + device] for device in range(4)]
    check_same_on_devices(program, artifact, inputs, replicas=4)


def test_the_decomposition_must_fit(provider: Provider) -> None:
    # No text has such composites: MLIR's verifier refuses them, but a caller's module may not have been verified.
    text = f"""func.func @main(%a: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.composite "my.square" %a {{decomposition = @square}} : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32> }}
      func.func private @other(%a: tensor<i32>) -> tensor<f32> {{
        %0 = stablehlo.convert %a : (tensor<i32>) -> tensor<f32> return %0 : tensor<f32> }}
      func.func private @more(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {{
        return %a, %a : tensor<f32>, tensor<f32> }}{_square("tensor<f32>")}"""
    for name, reason in (
        ("missing", "the module has no function @missing, which is the decomposition"),
        ("other", "the operands have the types (tensor<f32>), but those of @other have (tensor<i32>)"),
        ("more", "the results have the types (tensor<f32>), but those of @more have (tensor<f32>, tensor<f32>)"),
    ):
        module = load_program(text).load()
        (op,) = [each for each in provider.walk(module) if str(each.name) == "stablehlo.composite"]
        op.attributes["decomposition"] = provider.ir.FlatSymbolRefAttr.get(name, context=module.context)
        outcome = expand_module(provider, module, vt.Version("0.9.0"), expansion_policy(["composite"]), "program")
        assert [each.reason for each in outcome.refusals if each.feature == "composite"] == [reason]
        assert outcome.notes == ()
        with pytest.raises(vt.InvalidProgramError, match=f"@{name}|'{name}'|decomposition has"):
            vt.serialize(module, "0.9.0", expand=True)
