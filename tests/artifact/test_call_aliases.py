"""Aliases of custom calls on the bytes of artifacts: at every version, what the library reads is what was written."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, Tuple

PROGRAM = """
func.func private @inner(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @fill(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>) {
  %0 = func.call @inner(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1:2 = stablehlo.custom_call @both(%0, %b) {backend_config = "x", output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>]}
    : (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>)
  return %1#0, %1#1 : tensor<4xf32>, tensor<2xi32>
}
"""
FILL, BOTH = "@inner/0:stablehlo.custom_call", "@main/1:stablehlo.custom_call"


def must(output: tuple[int, ...], operand: int, index: tuple[int, ...] = ()) -> vt.Alias:
    return vt.Alias(output, operand, index, "must-alias")


def entry(output: str, operand: int) -> str:
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{output}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


def test_all_calls_are_known_by_path_and_target() -> None:
    fill, both = vt.serialize(PROGRAM).custom_calls()
    assert (fill.path, fill.target, fill.aliases) == (FILL, "fill", ())
    assert (both.path, both.target, both.aliases) == (BOTH, "both", (must((1,), 1),))
    assert both.signature.parameters == (Array("f32", (4,)), Array("s32", (2,)))
    assert both.signature.result == Tuple((Array("f32", (4,)), Array("s32", (2,))))
    assert fill.signature.result == Array("f32", (4,))


@pytest.mark.parametrize("version", ["0.9.0", "0.12.0", "0.14.0", "0.15.0", "1.0.0", "current"])
def test_the_library_reads_what_was_written(version: str) -> None:
    artifact = vt.serialize(PROGRAM, version)
    changed = artifact.with_call_aliases({"fill": [must((), 0)], BOTH: [must((0,), 0), must((1,), 1)]})
    assert changed.version == artifact.version
    assert [call.aliases for call in changed.custom_calls()] == [(must((), 0),), (must((0,), 0), must((1,), 1))]
    text = str(vt.deserialize(changed))
    assert f"@fill(%arg0) {{output_operand_aliases = [{entry('', 0)}]}}" in text
    assert f"output_operand_aliases = [{entry('0', 0)}, {entry('1', 1)}]" in text
    assert text == str(vt.deserialize(vt.serialize(text, version)))
    # And back again, to the very same program.
    back = changed.with_call_aliases({"fill": [], "both": [must((1,), 1)]})
    assert vt.diff(back, artifact, locations=True) == []
    assert back.requirements().readable_since == artifact.requirements().readable_since


def test_what_is_lost_leaves_the_tables() -> None:
    plain = vt.serialize(PROGRAM).with_call_aliases({"both": []})
    assert not plain.alias_findings()
    assert plain.declared_aliases().calls == ()
    assert "output_operand_alias<" not in str(vt.deserialize(plain))
    assert "output_operand_alias_v1" not in plain.inventory().attributes


def test_all_calls_of_a_target() -> None:
    twice = PROGRAM.replace("@both(%0, %b)", "@fill(%0, %b)")
    changed = vt.serialize(twice.replace("[1]", "[0]").replace("index = 1", "index = 0"))
    first = changed.with_call_aliases({FILL: [must((), 0)]})
    assert [len(call.aliases) for call in first.custom_calls()] == [1, 1]
    assert [call.aliases for call in changed.with_call_aliases({"fill": []}).custom_calls()] == [(), ()]


@pytest.mark.parametrize(
    ("call", "alias", "message"),
    [
        ("fill", must((0,), 0), "there is no result {0}: the result is f32[4]"),
        ("both", must((2,), 0), "there is no result {2}"),
        ("both", must((0,), 2), "there is no operand 2: the call has 2"),
        ("both", must((0,), -1), "there is no operand -1"),
        ("both", must((0,), 0, (0,)), "there is no operand 0 at {0}: its shape is f32[4]"),
        ("both", must((0,), 1), "result {0} is f32[4], but operand 1 at {} is s32[2]"),
        ("both", vt.Alias((0,), 0), "can only express must-alias"),
        ("other", must((), 0), f"there is no custom call other: expected a path or a target; the program has {FILL}"),
    ],
)
def test_what_stablehlo_and_xla_refuse_is_refused(call: str, alias: vt.Alias, message: str) -> None:
    with pytest.raises(vt.AliasError) as caught:
        vt.serialize(PROGRAM).with_call_aliases({call: [alias]})
    assert message in str(caught.value)


def test_a_program_without_calls_has_none_to_name() -> None:
    artifact = vt.serialize("func.func @main() { return }")
    assert artifact.custom_calls() == ()
    with pytest.raises(vt.AliasError, match="the program has no custom calls"):
        artifact.with_call_aliases({"fill": []})


def test_parts_of_tuples() -> None:
    program = """func.func @main(%a: tuple<tensor<4xf32>, tensor<i32>>) -> tuple<tensor<i32>, tensor<4xf32>> {
      %0 = stablehlo.custom_call @swap(%a)
        : (tuple<tensor<4xf32>, tensor<i32>>) -> tuple<tensor<i32>, tensor<4xf32>>
      return %0 : tuple<tensor<i32>, tensor<4xf32>>
    }"""
    changed = vt.serialize(program, "0.9.0").with_call_aliases({"swap": [must((1,), 0, (0,)), must((0,), 0, (1,))]})
    (call,) = vt.serialize(str(vt.deserialize(changed))).declared_aliases().calls
    assert call.aliases == (must((1,), 0, (0,)), must((0,), 0, (1,)))


@pytest.mark.parametrize("calls", [8, 9, 11])
def test_a_wrong_name_is_met_with_some_of_the_right_ones(calls: int) -> None:
    lines = "\n".join(
        f"%{number} = stablehlo.custom_call @f(%a) : (tensor<f32>) -> tensor<f32>" for number in range(calls)
    )
    artifact = vt.serialize(f"func.func @main(%a: tensor<f32>) {{ {lines}\n return }}")
    with pytest.raises(vt.AliasError) as refused:
        artifact.with_call_aliases({"g": []})
    message = str(refused.value)
    assert message.count(" of f") == min(calls, 8)
    assert message.endswith(f", and {calls - 8} more" if calls > 8 else "@main/7:stablehlo.custom_call of f")
