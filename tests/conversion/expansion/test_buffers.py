"""Buffers as tensors, where no two custom calls rely on the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.expansions import ENGINES, expanded

import vhlo_tools as vt

_FEATURE = "buffers"
_ALIAS = "#stablehlo.output_operand_alias<output_tuple_indices = {}, operand_index = {}, operand_tuple_indices = []>"
_DTYPES = {"f32": np.float32, "bf16": None, "i1": np.bool_, "ui8": np.uint8, "complex<f64>": np.complex128}


def _call(target: str, types: str, operands: str = "", aliases: str = "", more: str = "") -> str:
    listed = f", output_operand_aliases = [{aliases}]" if aliases else ""
    return f"stablehlo.custom_call @{target}({operands}) {{api_version = 4 : i32{listed}{more}}} : {types}"


def _main(body: str, types: str) -> str:
    return f"func.func @main(%a: {types}) -> {types} {{\n{body}\n}}"


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("element", _DTYPES)
def test_contents_go_through_unchanged(element: str, shape: tuple[int, ...]) -> None:
    inner = f"{''.join(f'{size}x' for size in shape)}{element}>"
    one, other = f"tensor<{inner}", f"memref<{inner}"
    pinned, created = (f"%{name} = " for name in ("0", "2"))
    body = f"""{pinned}{_call("Pin", f"({one}) -> {other}", "%a")}
      %1 = {_call("Unpin", f"({other}) -> {one}", "%0")}
      {created}{_call("CreateBuffer", f"() -> {other}")}
      %3 = {_call("Unpin", f"({other}) -> {one}", "%2")}
      return %1 : {one}"""
    for target in (None, "0.9.0"):
        artifact, notes = expanded(_main(body, one), _FEATURE, target)
        assert len(notes) == 4
        # Neither has a use for what the other buffer held.
        assert artifact.text() == vt.serialize(_main(f"return %a : {one}", one), artifact.version).text()


def test_a_buffer_whose_contents_are_not_defined_has_zeros() -> None:
    for element, dtype in (("f32", np.float32), ("i1", np.bool_), ("complex<f64>", np.complex128)):
        one, other = (f"{kind}<2x3x{element}>" for kind in ("tensor", "memref"))
        body = f"""%0 = {_call("CreateBuffer", f"() -> {other}")}
          %1 = {_call("Unpin", f"({other}) -> {one}", "%0")}
          return %1 : {one}"""
        artifact, _ = expanded(_main(body, one), _FEATURE, "0.9.0")
        for engine in ENGINES:
            (found,) = vt.run(artifact, [np.ones((2, 3), dtype)], engine=engine)
            np.testing.assert_array_equal(found, np.zeros((2, 3), dtype))


_ONE, _OTHER = "tensor<4xf32>", "memref<4xf32>"
_PINNED = f"%0 = {_call('Pin', f'({_ONE}) -> {_OTHER}', '%a')}"
_FIRST = _ALIAS.format("[]", 0)


def test_one_call_reads_and_returns_its_buffers() -> None:
    aliases = f"{_ALIAS.format('[0]', 0)}, {_ALIAS.format('[2]', 2)}"
    types = f"({_OTHER}, {_ONE}, {_OTHER}) -> ({_OTHER}, {_ONE}, {_OTHER})"
    effects = ', has_side_effect = true, my.tag = "kept"'
    body = f"""{_PINNED}
      %1 = {_call("Pin", f"({_ONE}) -> {_OTHER}", "%a")}
      %2:3 = {_call("update", types, "%0, %a, %1", aliases, effects)}
      %3 = {_call("Unpin", f"({_OTHER}) -> {_ONE}", "%2#0")}
      %4 = {_call("Unpin", f"({_OTHER}) -> {_ONE}", "%2#2")}
      %5 = stablehlo.subtract %3, %4 : {_ONE}
      %6 = stablehlo.multiply %5, %2#1 : {_ONE}
      return %6 : {_ONE}"""
    artifact, notes = expanded(_main(body, _ONE), _FEATURE)
    assert [each.message.partition(", because")[0].removeprefix("stablehlo.custom_call was ") for each in notes] == [
        *("replaced by its operand", "replaced by its operand", "rewritten"),
        *("replaced by its operand", "replaced by its operand"),
    ]
    plain = _call("update", types.replace(_OTHER, _ONE), "%a, %a, %a", aliases, effects)
    body = f"""%2:3 = {plain}
      %5 = stablehlo.subtract %2#0, %2#2 : {_ONE}
      %6 = stablehlo.multiply %5, %2#1 : {_ONE}
      return %6 : {_ONE}"""
    assert artifact.text() == vt.serialize(_main(body, _ONE), "1.12.0").text()

    def update(call: Any, *arrays: np.ndarray[Any, Any]) -> Any:
        return [array + index for index, array in enumerate(arrays, 3)]

    value = np.array([1, 2, -3, 0.5], np.float32)
    (found,) = vt.run(artifact, [value], engine="reference", handlers={"update": update})
    np.testing.assert_array_equal(found, -2 * (value + 4))


def test_a_buffer_from_outside_of_a_region() -> None:
    body = f"""{_PINNED}
      %p = stablehlo.constant dense<true> : tensor<i1>
      %1 = "stablehlo.if"(%p) ({{
        %2 = {_call("Unpin", f"({_OTHER}) -> {_ONE}", "%0")}
        stablehlo.return %2 : {_ONE}
      }}, {{
        stablehlo.return %a : {_ONE}
      }}) : (tensor<i1>) -> {_ONE}
      return %1 : {_ONE}"""
    artifact, _ = expanded(_main(body, _ONE), _FEATURE, "0.9.0")
    (found,) = vt.run(artifact, [np.arange(4, dtype=np.float32)], engine="xla")
    np.testing.assert_array_equal(found, np.arange(4))


_UNPINNED = f"%9 = {_call('Unpin', f'({_OTHER}) -> {_ONE}', '%1')} return %9 : {_ONE}"
_TUPLE = f"tuple<{_OTHER}, {_ONE}>"
_LAID_OUT = "memref<4xf32, strided<[1]>>"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            f"""%5 = {_call("one", f"({_OTHER}) -> {_OTHER}", "%0", _FIRST)}
            %1 = {_call("two", f"({_OTHER}) -> {_OTHER}", "%5", _FIRST)} {_UNPINNED}""",
            "@one and @two use a buffer in turn, and may rely on the same memory; tensors may be copied",
        ),
        (
            f"""{_call("log", f"({_OTHER}) -> ()", "%0")} return %a : {_ONE}""",
            "@log has a buffer that is no alias of a result, and may write to it",
        ),
        (
            f"""%1 = {_call("one", f"({_OTHER}) -> {_OTHER}", "%0", _FIRST)}
            {_call("Unpin", f"({_OTHER}) -> {_ONE}", "%0").replace("stablehlo", "%4 = stablehlo", 1)} {_UNPINNED}""",
            "2 ops use the buffer that @Pin gives",
        ),
        (
            f"%1 = func.call @pass(%0) : ({_OTHER}) -> {_OTHER} {_UNPINNED}",
            "func.call uses a buffer: only custom calls can use a tensor in its place",
        ),
        (
            f"""%1 = stablehlo.while(%b = %0) : {_OTHER} cond {{
              %c = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %c : tensor<i1>
            }} do {{ stablehlo.return %b : {_OTHER} }} {_UNPINNED}""",
            "stablehlo.while uses a buffer: only custom calls can use a tensor in its place",
        ),
        (
            f"""%5 = {_call("two", f"({_OTHER}) -> {_TUPLE}", "%0", _ALIAS.format("[0]", 0))} return %a : {_ONE}""",
            f"a buffer within a tuple: {_TUPLE}",
        ),
        (
            f"""%1 = {_call("Unpin", f"({_OTHER}) -> tensor<?xf32>", "%0")} return %a : {_ONE}""",
            "Unpin changes the type tensor<4xf32> to tensor<?xf32>",
        ),
        (
            f"""%1 = {_call("CreateBuffer", "() -> memref<?xf32>")} return %a : {_ONE}""",
            "tensor<?xf32> has a size that is only known at run time",
        ),
    ],
)
def test_what_a_tensor_cannot_do_is_refused(body: str, reason: str) -> None:
    program = f"""{_main(f"{_PINNED if '%0' in body else ''} {body}", _ONE)}
    func.func private @pass(%b: {_OTHER}) -> {_OTHER} {{ return %b : {_OTHER} }}"""
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, "1.12.0", expand=True)
    reasons = [each.message.partition("it cannot be expanded: ")[2] for each in refused.value.findings]
    assert reason in reasons, reasons


def test_buffers_of_main_are_refused() -> None:
    program = f"""func.func @main(%a: {_OTHER}) -> {_OTHER} {{
      %0 = {_call("update", f"({_OTHER}) -> {_OTHER}", "%a", _FIRST)}
      return %0 : {_OTHER} }}"""
    with pytest.raises(vt.DowngradeError, match="a function or a region takes a buffer as an argument"):
        vt.serialize(program, "1.12.0", expand=True)


def test_tensors_and_donated_arguments_remain() -> None:
    program = f"""func.func @main(%a: {_ONE} {{tf.aliasing_output = 0 : i32}}) -> {_ONE} {{
      %0 = {_call("update", f"({_ONE}) -> {_ONE}", "%a", _FIRST)}
      return %0 : {_ONE} }}"""
    assert bytes(vt.serialize(program, "1.12.0", expand=True)) == bytes(vt.serialize(program, "1.12.0"))
    pinned = f"""{_PINNED}
      %1 = {_call("Unpin", f"({_OTHER}) -> {_ONE}", "%0")}
      return %1 : {_ONE}"""
    text = _main(pinned, _ONE).replace("%a: tensor<4xf32>", "%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}")
    artifact, _ = expanded(text, _FEATURE, "0.9.0")
    assert '{#vhlo.string_v1<"tf.aliasing_output"> = #vhlo.integer_v1<0 : i32>}' in artifact.text()
