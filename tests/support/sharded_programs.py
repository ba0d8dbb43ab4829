"""Programs with shardings of Shardy, for the tests of their expansions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIZE = 8
WHOLE = f"tensor<{SIZE}x{SIZE}xf32>"
ADDING = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
})"""


@dataclass(frozen=True, slots=True)
class ShardedProgram:
    """A program of float matrices for several devices."""

    text: str  # the program
    devices: int  # the number of devices

    def inputs(self) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
        signature = self.text.partition("@main(")[2].partition("->")[0]
        rng = np.random.default_rng(self.devices)
        return [rng.integers(-9, 9, (SIZE, SIZE)).astype(np.float32) for _ in re.findall(r"%\w+: tensor", signature)]


def mesh(name: str, sizes: Sequence[int], order: Sequence[int] = ()) -> str:
    """Return a mesh with axes `a`, `b`, and so on."""
    axes = ", ".join(f'"{axis}"={size}' for axis, size in zip("abcd", sizes, strict=False))
    ids = f", device_ids={list(order)}" if order else ""
    return f"sdy.mesh @{name} = <[{axes}]{ids}>\n"


def annotated(first: str, result: str, constraint: str, *, of: str = "@m") -> str:
    """Return a function with a sharding of an argument, of a result, and of a value between, each by its dimensions."""
    argument, returned = (f"{{sdy.sharding = #sdy.sharding<{of}, {each}>}}" for each in (first, result))
    return f"""func.func @main(%a: {WHOLE} {argument}, %b: {WHOLE}) -> ({WHOLE} {returned}, {WHOLE}) {{
  %0 = stablehlo.add %a, %b : {WHOLE}
  %1 = sdy.sharding_constraint %0 <{of}, {constraint}> : {WHOLE}
  %2 = stablehlo.transpose %1, dims = [1, 0] : ({WHOLE}) -> {WHOLE}
  %3 = stablehlo.multiply %2, %a : {WHOLE}
  return %3, %1 : {WHOLE}, {WHOLE}
}}"""


def _manual(sizes: Sequence[int], axes: str, parts: Sequence[int]) -> str:
    """Return a program with a manual computation along the first axes: rows are split, and sums are exchanged."""
    count, devices = math.prod(parts), math.prod(sizes)
    part = f"tensor<{SIZE // count}x{SIZE}xf32>"
    ids = np.arange(devices).reshape(count, -1).T.tolist()
    split = ", ".join(f'"{axis}"' for axis in axes)
    others = ", ?" if len(axes) < len(sizes) else ""
    dimensions = f"[{{{split}{others}}}, {{{'?' if others else ''}}}]"
    return f"""func.func @main(%a: {WHOLE}) -> {WHOLE} {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, {dimensions}>] out_shardings=[<@m, {dimensions}>]
      manual_axes={{{split}}} (%p: {part}) {{
    %1 = "stablehlo.all_reduce"(%p) {ADDING} {{
      replica_groups = dense<{ids}> : tensor<{len(ids)}x{count}xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids
    }} : ({part}) -> {part}
    %2 = stablehlo.multiply %1, %p : {part}
    sdy.return %2 : {part}
  }} : ({WHOLE}) -> {WHOLE}
  %3 = stablehlo.add %0, %a : {WHOLE}
  return %3 : {WHOLE}
}}"""


_NESTED = f"""func.func @main(%a: {WHOLE}) -> {WHOLE} {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{{"a"}}, {{"b"}}]>] out_shardings=[<@m, [{{"a"}}, {{}}]>]
      manual_axes={{"a"}} (%p: tensor<4x8xf32>) {{
    %1 = sdy.sharding_constraint %p <@m, [{{}}, {{"b"}}]> : tensor<4x8xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@m, [{{}}, {{"b"}}]>] out_shardings=[<@m, [{{}}, {{"b"}}]>]
        manual_axes={{"b"}} (%q: tensor<4x4xf32>) {{
      %3 = stablehlo.add %q, %q : tensor<4x4xf32>
      sdy.return %3 : tensor<4x4xf32>
    }} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  }} : ({WHOLE}) -> {WHOLE}
  return %0 : {WHOLE}
}}"""

_LOOP = f"""func.func @main(%a: {WHOLE} {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{}}]>}}) -> {WHOLE} {{
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%i = %0, %v = %a) : tensor<i32>, {WHOLE} cond {{
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3 = stablehlo.compare LT, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }} do {{
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %i, %2 : tensor<i32>
    %4 = sdy.manual_computation(%v) in_shardings=[<@m, [{{"a"}}, {{"b"}}]>] out_shardings=[<@m, [{{"b"}}, {{"a"}}]>]
        manual_axes={{"a", "b"}} (%p: tensor<4x4xf32>) {{
      %5 = stablehlo.negate %p : tensor<4x4xf32>
      sdy.return %5 : tensor<4x4xf32>
    }} : ({WHOLE}) -> {WHOLE}
    %6 = sdy.sharding_constraint %4 <@m, [{{?}}, {{"b"}}]> : {WHOLE}
    stablehlo.return %3, %6 : tensor<i32>, {WHOLE}
  }}
  return %1#1 : {WHOLE}
}}"""

_SEVERAL = f"""func.func @main(%a: {WHOLE}) -> ({WHOLE}, {WHOLE}) {{
  %0 = sdy.constant dense<3.0> : {WHOLE}
  %1 = sdy.manual_computation() in_shardings=[] out_shardings=[<@m, [{{"a"}}, {{"b"}}]>] manual_axes={{"a", "b"}} () {{
    %9 = stablehlo.constant dense<2.0> : tensor<4x4xf32>
    sdy.return %9 : tensor<4x4xf32>
  }} : () -> {WHOLE}
  %2:2 = sdy.manual_computation(%a, %1) in_shardings=[<@m, [{{"a"}}, {{}}]>, <@m, [{{}}, {{"a"}}]>]
      out_shardings=[<@m, [{{}}, {{"a"}}]>, <@m, [{{"a"}}, {{}}]>] manual_axes={{"a"}}
      (%p: tensor<4x8xf32>, %q: tensor<8x4xf32>) {{
    %9 = stablehlo.add %q, %q : tensor<8x4xf32>
    %8 = stablehlo.negate %p : tensor<4x8xf32>
    sdy.return %9, %8 : tensor<8x4xf32>, tensor<4x8xf32>
  }} : ({WHOLE}, {WHOLE}) -> ({WHOLE}, {WHOLE})
  %3 = stablehlo.add %2#0, %0 : {WHOLE}
  return %3, %2#1 : {WHOLE}, {WHOLE}
}}"""

_GROUPS = f"""func.func @main(%a: {WHOLE} {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{}}]>}}, %b: {WHOLE})
    -> {WHOLE} {{
  %0 = stablehlo.add %a, %a : {WHOLE}
  sdy.sharding_group %0 group_id=0 : {WHOLE}
  %1 = stablehlo.add %b, %b {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{?}}, {{"b", ?}}]>]>}} : {WHOLE}
  sdy.sharding_group %1 group_id=0 : {WHOLE}
  %2 = stablehlo.multiply %0, %1 : {WHOLE}
  return %2 : {WHOLE}
}}"""

_A_THEN_B = annotated('[{"a"}, {}]', '[{}, {"b"}]', '[{"a"}, {"b"}]')
PROGRAMS = {
    "one axis of 2": ShardedProgram(mesh("m", [2]) + annotated('[{"a"}, {}]', '[{}, {"a"}]', "[{?}, {?}]"), 2),
    "one axis of 8": ShardedProgram(mesh("m", [8]) + annotated('[{"a"}, {}]', '[{}, {"a"}]', '[{}, {"a"}]'), 8),
    "two axes": ShardedProgram(mesh("m", [2, 2]) + _A_THEN_B, 4),
    "three axes": ShardedProgram(
        mesh("m", [2, 2, 2]) + annotated('[{"a", "c"}, {"b"}]', '[{"c"}, {?}]', '[{"b", ?}, {"a"}]'), 8
    ),
    "parts of axes, priorities": ShardedProgram(
        mesh("m", [2, 4]) + annotated('[{"a"}p1, {"b":(1)2, ?}p0]', '[{"b":(2)2}, {}]', '[{"b", "a"}, {}]'), 8
    ),
    "replicated axes": ShardedProgram(
        mesh("m", [2, 2]) + annotated('[{"a", ?}, {}], replicated={"b"}', "[{}, {}]", '[{}, {?}], replicated={"a"}'), 4
    ),
    "axes of one": ShardedProgram(mesh("m", [1, 4]) + annotated('[{"a"}, {"b"}]', '[{"b"}, {"a"}]', "[{}, {}]"), 4),
    "order of devices": ShardedProgram(mesh("m", [2, 2], [3, 1, 0, 2]) + _A_THEN_B, 4),
    "equal meshes": ShardedProgram(mesh("n", [2, 2]) + mesh("m", [2, 2]) + _A_THEN_B.replace("<@m,", "<@n,", 1), 4),
    "other meshes": ShardedProgram(
        mesh("n", [4]) + mesh("m", [2, 2]) + "sdy.mesh @e = <[]>\n" + "sdy.mesh @one = <[], device_ids=[0]>\n"
        + _A_THEN_B.replace("<@m,", "<@n,", 1), 4
    ),
    "inlined mesh": ShardedProgram(
        annotated('[{"q"}, {}]', '[{}, {"q"}]', "[{?}, {}]", of='mesh<["q"=4]>'), 4
    ),
    "manual, 2": ShardedProgram(mesh("m", [2]) + _manual([2], "a", [2]), 2),
    "manual, 4": ShardedProgram(mesh("m", [2, 2]) + _manual([2, 2], "ab", [2, 2]), 4),
    "manual, 8": ShardedProgram(mesh("m", [2, 2, 2]) + _manual([2, 2, 2], "abc", [2, 2, 2]), 8),
    "manual, free axes": ShardedProgram(mesh("m", [2, 2]) + _manual([2, 2], "a", [2]), 4),
    "manual, two free axes": ShardedProgram(mesh("m", [2, 2, 2]) + _manual([2, 2, 2], "a", [2]), 8),
    "manual, several": ShardedProgram(mesh("m", [2, 2]) + _SEVERAL, 4),
    "manual in a loop": ShardedProgram(mesh("m", [2, 2]) + _LOOP, 4),
    "manual in another": ShardedProgram(mesh("m", [2, 2]) + _NESTED, 4),
    "groups": ShardedProgram(mesh("m", [2, 2]) + _GROUPS, 4),
}  # fmt: skip
