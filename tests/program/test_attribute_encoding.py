"""Attributes without a form in VHLO are spelled otherwise, and given back by whoever reads them."""

from __future__ import annotations

import pytest
from support.raw import RawLibrary

import vhlo_tools as vt

ATTRIBUTES = """module {
  func.func @main(%a: tensor<4xf32> {my.u, my.n = {x = unit, y = [array<i32: 1, 2>, 3 : i32]}})
      -> (tensor<4xf32> {r.u = array<i32>, r.v = array<i16: 3, -4>}) attributes {f.u, f.a = array<f64: 1.5, 0.1>} {
    %0 = stablehlo.custom_call @x(%a) {backend_config = {u, k = array<i8: 1, -2>}, api_version = 4 : i32,
      my.other = array<f32: 1.5, 0x7FC00000>} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>,
      use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}>
      : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}"""


@pytest.mark.parametrize("target", ["0.9.0", "current"])
def test_attributes_are_spelled_and_given_back(target: str, raw: RawLibrary) -> None:
    text = (
        ATTRIBUTES
        if target == "current"
        else ATTRIBUTES.replace("backend_config = {u, k = array<i8: 1, -2>}, api_version = 4 : i32,", "")
    )
    before = str(raw.parse(text))
    artifact = vt.serialize(text, target)
    assert {(each.level, each.kind) for each in artifact.findings} == {("note", "attribute")}
    assert str(vt.deserialize(artifact)) == before
    # Whoever knows nothing of it sees `true` and dense tensors.
    plain = str(raw.deserialize(bytes(artifact)))
    assert "my.u = true" in plain
    assert "r.v = dense<[3, -4]> : tensor<2xi16>" in plain
    # The way round again, and through another version on the bytes.
    again = vt.serialize(vt.deserialize(artifact), target)
    assert bytes(again) == bytes(artifact)
    assert str(vt.deserialize(vt.retarget(artifact, "1.0.0" if target == "0.9.0" else "1.17.0"))) == before


def test_what_was_changed_since_is_not_given_back(raw: RawLibrary) -> None:
    artifact = vt.serialize("func.func @main(%a: tensor<f32> {my.u, my.n = array<i32: 1>}) { return }")
    module = raw.deserialize(bytes(artifact))
    with module.context:
        attributes = {"my.u": "false", "my.n": "dense<[1]> : tensor<1xi64>", "vhlo_tools.spelled": None}
        ir = raw.ir
        (held,) = module.body.operations[0].attributes["arg_attrs"]
        changed = {
            name: ir.Attribute.parse(text) if text else held["vhlo_tools.spelled"] for name, text in attributes.items()
        }
        module.body.operations[0].attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(changed)])
    back = str(vt.deserialize(vt.serialize(module)))
    assert "my.n = dense<1> : tensor<1xi64>, my.u = false" in back
    assert "vhlo_tools" not in back


def written_by_others(raw: RawLibrary, text: str) -> bytes:
    """Return an artifact that says of its attributes whatever it likes."""
    artifact = raw.serialize(raw.parse(text), "1.9.0")
    assert artifact is not None
    return artifact


def test_records_of_others_do_not_touch_what_ops_know(raw: RawLibrary) -> None:
    text = """func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %0 = "stablehlo.custom_call"(%a) <{has_side_effect = true, call_target_name = "x"}>
        {vhlo_tools.spelled = {has_side_effect = "unit"}} : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}>
        {vhlo_tools.spelled = {value = "array<i32>"}} : () -> tensor<2xi32>
      return %0, %1 : tensor<2xf32>, tensor<2xi32>
    }"""
    back = str(vt.deserialize(written_by_others(raw, text)))
    assert "has_side_effect = true" in back
    assert "stablehlo.constant dense<[1, 2]> : tensor<2xi32>" in back
    assert "vhlo_tools" not in back


def test_records_of_others_do_not_fill_the_memory(raw: RawLibrary) -> None:
    huge = "my.x = dense<0> : tensor<100000000000xi32>"
    text = f'func.func @main(%a: tensor<f32> {{{huge}, vhlo_tools.spelled = {{my.x = "array<i32>"}}}}) {{ return }}'
    assert f"{{{huge}}}" in str(vt.deserialize(written_by_others(raw, text)))


def test_attributes_may_nest_deep(raw: RawLibrary) -> None:
    depth = 2000
    nested = "[" * depth + "true" + "]" * depth
    record = '{"0" = ' * depth + '"unit"' + "}" * depth
    text = (
        f"func.func @main(%a: tensor<f32> {{my.x = {nested}, vhlo_tools.spelled = {{my.x = {record}}}}}) {{ return }}"
    )
    assert f"{{my.x = {nested}}}" in str(vt.deserialize(written_by_others(raw, text)))
    with pytest.raises(vt.UnsupportedFeatureError, match="holds a unit attribute"):
        vt.serialize(f"func.func @main(%a: tensor<f32> {{my.x = {nested.replace('true', 'unit')}}}) {{ return }}")


def test_units_that_xla_takes_no_notice_of_do_not_become_donors(raw: RawLibrary) -> None:
    text = "func.func @main(%a: tensor<4xf32> {jax.buffer_donor}) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    artifact = vt.serialize(text)
    assert not artifact.aliases()
    assert 'jax.buffer_donor = "unit"' in str(raw.deserialize(bytes(artifact)))
    assert "{jax.buffer_donor}" in str(vt.deserialize(artifact))
