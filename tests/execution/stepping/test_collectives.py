"""Collectives on the reference interpreter, by the specification, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.execution.devices import Grid
from vhlo_tools.execution.stepping.stepper import Stepper
from vhlo_tools.program import load_program

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADD = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })"""


def run(text: str, inputs: Any, replicas: int = 1, partitions: int = 1) -> Any:
    stepper = Stepper(load_program(text), isolated=True)
    found: Any = [results[0] for results in stepper.run_parallel(inputs, Grid(replicas, partitions))]
    return np.stack(found)


def program(op: str, argument: str, result: str) -> str:
    return (
        f"func.func @main(%a: {argument}) -> {result} {{ %0 = {op} : ({argument}) -> {result} return %0 : {result} }}"
    )


def rows(count: int, *shape: int) -> Any:
    """Return an array for each device, all numbers of which are different."""
    return np.arange(count * int(np.prod(shape)), dtype=np.float32).reshape(count, 1, *shape)


# Six devices: three replicas of two partitions. Which devices add up, by the specification.
GROUPINGS = {
    "cross_replica": ("dense<[[0, 2], [1, -1]]>", "", [[0, 4], [1, 5], [2], [3]]),
    "cross_replica_and_partition": ("dense<[[0, 2], [1, -1]]>", CHANNEL, [[0, 1, 4, 5], [2, 3]]),
    "flattened_ids": ("dense<[[0, 5, 1], [2, 3, 4]]>", f"{CHANNEL}, use_global_device_ids", [[0, 1, 5], [2, 3, 4]]),
}


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_devices_are_grouped_as_specified(grouping: str) -> None:
    ids, attributes, groups = GROUPINGS[grouping]
    held = ", ".join(filter(None, [f"replica_groups = {ids} : {shape_of(ids)}", attributes]))
    op = f'"stablehlo.all_reduce"(%a) {ADD} {{{held}}}'
    inputs = rows(6, 2)
    expected = np.empty_like(inputs[:, 0])
    for group in groups:
        expected[group] = inputs[group, 0].sum(axis=0)
    np.testing.assert_array_equal(run(program(op, "tensor<2xf32>", "tensor<2xf32>"), inputs, 3, 2), expected)


def shape_of(ids: str) -> str:
    groups = ids.count("[") - 1
    return f"tensor<{groups}x{(ids.count(',') + 1) // groups}xi64>"


@pytest.mark.parametrize(
    ("replicas", "partitions", "attributes", "pairs"),
    [
        (4, 1, "", {0: 1, 1: 3}),
        (1, 4, f", {CHANNEL}", {0: 1, 1: 3}),
        (2, 2, "", {0: 2, 1: 3}),
        (2, 2, f", {CHANNEL}", {0: 1, 2: 3}),
    ],
)
def test_permutations_are_of_replicas_or_of_partitions(
    replicas: int, partitions: int, attributes: str, pairs: dict[int, int]
) -> None:
    told = "[[0, 1]]> : tensor<1x2xi64>" if replicas == partitions else "[[0, 1], [1, 3]]> : tensor<2x2xi64>"
    op = f'"stablehlo.collective_permute"(%a) {{source_target_pairs = dense<{told}{attributes}}}'
    inputs = rows(4, 2) + 1
    expected = np.zeros_like(inputs[:, 0])
    for source, target in pairs.items():
        expected[target] = inputs[source, 0]
    found = run(program(op, "tensor<2xf32>", "tensor<2xf32>"), inputs, replicas, partitions)
    np.testing.assert_array_equal(found, expected)


_MAXIMUM_OF_QUOTIENTS = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %d = stablehlo.divide %x, %y : tensor<f32> %m = stablehlo.maximum %d, %y : tensor<f32>
  stablehlo.return %m : tensor<f32> })"""
_TWO, _FOUR = rows(2, 2, 4), rows(4, 2, 1)


def groups(*ids: list[int]) -> str:
    return f"replica_groups = dense<{list(ids)}> : tensor<{len(ids)}x{len(ids[0])}xi64>"


#: For each op: what it takes and gives, of which replicas, and the result of each of these.
COLLECTIVES: dict[str, tuple[str, str, str, Any, Any]] = {
    "all_gather concatenates in the order of the group": (
        f'"stablehlo.all_gather"(%a) {{all_gather_dim = 1 : i64, {groups([2, 0], [1, 3])}}}',
        *("tensor<2x1xf32>", "tensor<2x2xf32>", _FOUR),
        [np.concatenate(_FOUR[each, 0], axis=1) for each in ([2, 0], [1, 3], [2, 0], [1, 3])],
    ),
    "all_to_all gives each its part of everybody": (
        '"stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, '
        f"{groups([0, 1])}}}",
        *("tensor<2x4xf32>", "tensor<4x2xf32>", _TWO),
        [np.concatenate([_TWO[0, 0][:, part], _TWO[1, 0][:, part]]) for part in (slice(0, 2), slice(2, 4))],
    ),
    "reduce_scatter gives each its part of the sum": (
        f'"stablehlo.reduce_scatter"(%a) {ADD} {{scatter_dimension = 0 : i64, {groups([1, 0])}}}',
        *("tensor<4xf32>", "tensor<2xf32>", rows(2, 4), [[8, 10], [4, 6]]),
    ),
    "collective_broadcast gives zeros to devices of no group": (
        f'"stablehlo.collective_broadcast"(%a) {{{groups([2, 1])}}}',
        *("tensor<2xf32>", "tensor<2xf32>", rows(3, 2) + 1, [[0, 0], [5, 6], [5, 6]]),
    ),
    "any function of two reduces": (
        f'"stablehlo.all_reduce"(%a) {_MAXIMUM_OF_QUOTIENTS} {{{groups([0, 1, 2])}}}',
        *("tensor<2xf32>", "tensor<2xf32>"),
        *(np.array([[[8.0, 3.0]], [[2.0, 4.0]], [[1.0, 16.0]]], np.float32), [[4, 16]] * 3),
    ),
    "reductions of a wider type than what is reduced": (
        f'"stablehlo.all_reduce"(%a) {ADD} {{{groups([0, 1])}}}',
        *("tensor<f16>", "tensor<f32>", np.array([[2048.0], [1.0]], np.float16), [2049, 2049]),
    ),
    "many devices need no cores": (
        f'"stablehlo.all_reduce"(%a) {ADD} {{{groups(list(range(64)))}}}',
        *("tensor<2xf32>", "tensor<2xf32>", rows(64, 2), np.broadcast_to(rows(64, 2).sum(axis=0), (64, 2))),
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_each_replica_gets(name: str) -> None:
    op, argument, result, inputs, expected = COLLECTIVES[name]
    np.testing.assert_array_equal(run(program(op, argument, result), inputs, len(inputs)), expected)


def test_several_operands_are_reduced_by_the_same_function() -> None:
    text = f"""func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<2xf32>, tensor<f32>) {{
      %0:2 = "stablehlo.all_reduce"(%a, %b) {ADD} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
      return %0#0, %0#1 : tensor<2xf32>, tensor<f32> }}"""
    inputs = [[np.ones(2, np.float32), np.array(3, np.float32)], [np.ones(2, np.float32), np.array(4, np.float32)]]
    found = Stepper(load_program(text), isolated=True).run_parallel(inputs, Grid(2))
    assert [[each.tolist() for each in device if each is not None] for device in found] == [[[2, 2], 7]] * 2


def test_devices_know_their_replica_and_their_partition() -> None:
    text = """func.func @main() -> tensor<2xui32> {
      %r = stablehlo.replica_id : tensor<ui32> %p = stablehlo.partition_id : tensor<ui32>
      %0 = stablehlo.reshape %r : (tensor<ui32>) -> tensor<1xui32>
      %1 = stablehlo.reshape %p : (tensor<ui32>) -> tensor<1xui32>
      %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
      return %2 : tensor<2xui32> }"""
    found = run(text, [[] for _ in range(6)], 3, 2)
    assert found.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]


def test_quantities_go_round_in_a_loop() -> None:
    text = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %zero = stablehlo.constant dense<0> : tensor<i32> %one = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.constant dense<3> : tensor<i32>
      %r:3 = stablehlo.while(%i = %zero, %v = %a, %s = %a) : tensor<i32>, tensor<f32>, tensor<f32>
      cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1> }
      do { %j = stablehlo.add %i, %one : tensor<i32>
        %w = "stablehlo.collective_permute"(%v) {
          source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>
        } : (tensor<f32>) -> tensor<f32>
        %t = stablehlo.add %s, %w : tensor<f32>
        stablehlo.return %j, %w, %t : tensor<i32>, tensor<f32>, tensor<f32> }
      return %r#2 : tensor<f32> }"""
    inputs = np.array([[1], [10], [100], [1000]], np.float32)
    assert run(text, inputs, 4).tolist() == [1111] * 4


@pytest.mark.needs("async")
def test_a_collective_may_be_started_and_waited_for() -> None:
    text = """func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
      %f = "stablehlo.async_start"(%a) ({ ^bb0(%x: tensor<2xf32>):
        %g = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
          : (tensor<2xf32>) -> tensor<4xf32>
        stablehlo.return %g : tensor<4xf32> }) : (tensor<2xf32>) -> !stablehlo.future<tensor<4xf32>>
      %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }"""
    assert run(text, rows(2, 2), 2).tolist() == [[0, 1, 2, 3]] * 2


TRANSFER = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %s = "stablehlo.send"(%a, %t) {CHANNEL, is_host_transfer = false PAIRS}
    : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  %r:2 = "stablehlo.recv"(%s) {CHANNEL, is_host_transfer = false PAIRS}
    : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %r#0 : tensor<2xf32> }""".replace("CHANNEL", CHANNEL)


def test_values_are_sent_from_device_to_device() -> None:
    text = TRANSFER.replace("PAIRS", ", source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>")
    assert run(text, rows(2, 2), 1, 2).tolist() == [[2, 3], [0, 1]]


def test_what_is_sent_nowhere_is_refused() -> None:
    with pytest.raises(vt.EngineError, match=r"stablehlo.send: it has no source_target_pairs"):
        run(TRANSFER.replace("PAIRS", ""), rows(2, 2), 1, 2)


@pytest.mark.parametrize("op", ["infeed", "outfeed"])
def test_feeds_are_refused_by_name(op: str) -> None:
    body = {
        "infeed": '%0:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)',
        "outfeed": '%0 = "stablehlo.outfeed"(%t) : (!stablehlo.token) -> !stablehlo.token',
    }[op]
    text = f"func.func @main() {{ %t = stablehlo.create_token : !stablehlo.token {body} return }}"
    with pytest.raises(vt.EngineError, match=rf"stablehlo.{op}: there is no host"):
        vt.run(text, [])


ONLY_ONE = f"""func.func @main(%a: tensor<f32>) -> tensor<f32> {{
  %i = stablehlo.replica_id : tensor<ui32> %one = stablehlo.constant dense<1> : tensor<ui32>
  %p = stablehlo.compare EQ, %i, %one : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({{
    %0 = "stablehlo.all_reduce"(%a) {ADD} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
      : (tensor<f32>) -> tensor<f32>
    stablehlo.return %0 : tensor<f32> }}, {{ OTHER }}) : (tensor<i1>) -> tensor<f32>
  return %r : tensor<f32> }}"""


def test_a_collective_that_not_all_come_to_is_told() -> None:
    with pytest.raises(
        vt.EngineError, match="deadlock: all devices of a group must reach the same collective"
    ) as caught:
        run(ONLY_ONE.replace("OTHER", "stablehlo.return %a : tensor<f32>"), np.ones((2, 1), np.float32), 2)
    said = str(caught.value)
    assert "device 0 (replica 0, partition 0) has finished" in said
    assert "device 1 (replica 1, partition 0) waits at the text:5:10: stablehlo.all_reduce" in said


def test_devices_at_different_collectives_are_told() -> None:
    other = """%b = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
      %1 = "stablehlo.all_gather"(%b) {
        all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
      } : (tensor<1xf32>) -> tensor<2xf32>
      stablehlo.return %a : tensor<f32>"""
    text = ONLY_ONE.replace("OTHER", other)
    with pytest.raises(vt.EngineError) as caught:
        run(text, np.ones((2, 1), np.float32), 2)
    assert "device 0 (replica 0, partition 0) waits at" in str(caught.value)
    assert "stablehlo.all_gather" in str(caught.value)
    assert "stablehlo.all_reduce" in str(caught.value)


def test_collectives_for_more_devices_than_there_are_are_refused() -> None:
    op = f'"stablehlo.all_reduce"(%a) {ADD} {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}'
    with pytest.raises(
        vt.EngineError, match=r"id 1 \(cross_replica\) is out of range or occurs twice on 1 replica of 1 partition;"
    ):
        vt.run(program(op, "tensor<2xf32>", "tensor<2xf32>"), [np.ones(2, np.float32)])


def test_results_of_other_shapes_than_the_program_says_are_refused() -> None:
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    op = f'"stablehlo.all_gather"(%a) {{all_gather_dim = 0 : i64, {groups}, {CHANNEL}}}'
    text = program(op, "tensor<2xf32>", "tensor<4xf32>")
    with pytest.raises(
        vt.EngineError, match=r"result 0 has the shape \[8\] on these devices, but the program specifies tensor<4xf32>"
    ):
        run(text, rows(4, 2), 2, 2)


def test_inputs_for_other_devices_are_refused() -> None:
    stepper = Stepper(load_program("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"))
    with pytest.raises(vt.InvalidInputError, match="inputs for 3 devices, but runs on 2 replicas of 2 partitions"):
        stepper.run_parallel([[np.array(1, np.float32)]] * 3, Grid(2, 2))


# Eight devices as a mesh of x=2, y=4, or with their order told; which add up.
MESHES = {
    "axis y": ("sdy", '<["x"=2, "y"=4]>', ['name = "y"'], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    "axis x": ("sdy", '<["x"=2, "y"=4]>', ['name = "x"'], [[0, 4], [1, 5], [2, 6], [3, 7]]),
    "both": ("sdy", '<["x"=2, "y"=4]>', ['name = "y"', 'name = "x"'], [[0, 1, 2, 3, 4, 5, 6, 7]]),
    "order": ("sdy", '<["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>', ['name = "x"'],
              [[7, 3], [6, 2], [5, 1], [4, 0]]),
    "outer half of y": ("sdy", '<["x"=2, "y"=4]>', ['name = "y", sub_axis_info = (1)2'],
                        [[0, 2], [1, 3], [4, 6], [5, 7]]),
    "inner half of y": ("sdy", '<["x"=2, "y"=4]>', ['name = "y", sub_axis_info = (2)2'],
                        [[0, 1], [2, 3], [4, 5], [6, 7]]),
    "mesh in place": ("here", 'axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", '
                      "size = 4>]", ['name = "x"'], [[0, 4], [1, 5], [2, 6], [3, 7]]),
}  # fmt: skip


@pytest.mark.needs("mesh_replica_groups")
@pytest.mark.parametrize("name", MESHES)
def test_groups_are_told_by_the_axes_of_a_mesh(name: str) -> None:
    kind, mesh, axes, groups = MESHES[name]
    references = ", ".join(f"#stablehlo.axis_ref<{each}>" for each in axes)
    told = "@mesh" if kind == "sdy" else f"#stablehlo.mesh<{mesh}>"
    held = f"#stablehlo.replica_group_mesh_axes<mesh = {told}, axes = [{references}]>"
    op = f'"stablehlo.all_reduce"(%a) {ADD} {{replica_groups = {held}, {CHANNEL}, use_global_device_ids}}'
    text = program(op, "tensor<2xf32>", "tensor<2xf32>")
    if kind == "sdy":
        text = f"sdy.mesh @mesh = {mesh}\n{text}"
    inputs = rows(8, 2)
    expected = np.empty_like(inputs[:, 0])
    for group in groups:
        expected[group] = inputs[group, 0].sum(axis=0)
    np.testing.assert_array_equal(run(text, inputs, 1, 8), expected)
