"""The op collective_broadcast as permutations, on both engines against the op itself on the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded
from support.grouped_programs import CHANNEL, ELEMENTS, GRIDS, dense, drawn, function, tensor

import vhlo_tools as vt

FEATURE = "collective_broadcast"


def _program(groups: Sequence[Sequence[int]], type_: str, *, channel: bool = False, held: str = "") -> str:
    told = ", ".join(filter(None, [f"replica_groups = {dense(groups)}", CHANNEL if channel else "", held]))
    return function(f'"stablehlo.collective_broadcast"(OPERANDS) {{{told}}}', [type_], [type_])


def _check(program: str, artifact: vt.Artifact, inputs: Any, replicas: int, partitions: int) -> None:
    check_same_on_devices(program, artifact, inputs, expected_by="reference", replicas=replicas, partitions=partitions)


def _groupings(count: int) -> list[list[list[int]]]:
    """Return ways to group ids: all, in two groups, each alone, and some in no group; of one size."""
    ids = list(range(count))
    ways = [[ids[::-1]], [ids[::-2], ids[-2::-2]], [[each] for each in ids], [ids[-1:]], [ids[1:3]]]
    return [each for each in ([group for group in way if group] for way in ways) if each]


@pytest.mark.sample(2)
@pytest.mark.parametrize("channel", [False, True], ids=["cross_replica", "cross_partition"])
@pytest.mark.parametrize(("replicas", "partitions"), GRIDS, ids=str)
def test_every_grouping(replicas: int, partitions: int, channel: bool) -> None:
    rng = np.random.default_rng(replicas)
    inputs = [[drawn(rng, (3,), "f32")] for _ in range(replicas * partitions)]
    for groups in _groupings(partitions if channel else replicas)[:: 1 if replicas * partitions < 8 else 2]:
        program = _program(groups, "tensor<3xf32>", channel=channel)
        artifact, (note,) = expanded(program, FEATURE)
        assert "collective_permute" in note.message
        _check(program, artifact, inputs, replicas, partitions)


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (2, 0), (5,), (2, 1, 3)], ids=str)
def test_every_type_of_elements(element: str, shape: tuple[int, ...]) -> None:
    program = _program([[2, 0, 1]], tensor(shape, element))
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    rng = np.random.default_rng(1)
    inputs = [[drawn(rng, shape, element)] for _ in range(4)]
    _check(program, artifact, inputs, 4, 1)


def test_bits_of_values_that_are_no_numbers_remain() -> None:
    artifact, _ = expanded(_program([[1, 0, 2]], "tensor<2xf32>"), FEATURE)
    bits = np.array([0x7FC12345, 0xFF800001], np.uint32)
    inputs = [[np.zeros(2, "f4")], [bits.view("f4")], [np.ones(2, "f4")], [np.ones(2, "f4")]]
    for engine in ("reference", "xla"):
        found = vt.run_parallel(artifact, inputs, replicas=4, engine=engine)
        np.testing.assert_array_equal([np.asarray(each).view(np.uint32) for (each,) in found], [bits] * 3 + [[0, 0]])


@pytest.mark.parametrize(
    "type_",
    [
        "tensor<?x2xf32>",
        "tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>",
        "tensor<?x!quant.uniform<i8:f32, 5.000000e-01:3>>",
    ],
)
def test_types_that_the_engines_do_not_take(type_: str) -> None:
    artifact, _ = expanded(_program([[0, 1, 2]], type_), FEATURE, "0.9.0")
    text = str(vt.deserialize(artifact))
    assert text.count("stablehlo.select") == 2
    assert type_ in text


@pytest.mark.needs("mesh_replica_groups")
def test_groups_of_a_mesh_need_no_other_expansion() -> None:
    mesh = '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 4>]>'
    groups = f'#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = "x">]>'
    program = _program([[0, 1, 2, 3]], "tensor<2xf32>").replace(dense([[0, 1, 2, 3]]), groups)
    artifact, _ = expanded(program, FEATURE)
    _check(program, artifact, [[np.full(2, each, "f4")] for each in range(4)], 4, 1)


def test_attributes_and_aliases_are_carried() -> None:
    program = _program([[0, 1]], "tensor<2xf32>", held='my.mark = "kept"')
    program = program.replace("%a0: tensor<2xf32>", "%a0: tensor<2xf32> {tf.aliasing_output = 0 : i32}")
    artifact, (note,) = expanded(program, FEATURE)
    text = str(vt.deserialize(artifact))
    assert 'stablehlo.select %3, %4, %0 {my.mark = "kept"}' in text
    assert "%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}" in text
    assert "without" not in note.message


# Branches and loops

_CALL = """%b = "stablehlo.collective_broadcast"(%v) {replica_groups = dense<[[1, 0], [2, 3]]> : tensor<2x2xi64>}
  : (tensor<2xf32>) -> tensor<2xf32>"""
_LOOP = """func.func @main(%a: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32> %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = START, %v = %a) : tensor<i32>, tensor<2xf32>
  cond { %c = stablehlo.compare LT, %i, LIMIT : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> }
  do { %j = stablehlo.add %i, STEP : tensor<i32> CALL
    %s = stablehlo.add %b, %a : tensor<2xf32> stablehlo.return %j, %s : tensor<i32>, tensor<2xf32> }
  return %r#1 : tensor<2xf32> }""".replace("CALL", _CALL)
_BRANCH = """func.func private @inner(%v: tensor<2xf32>) -> tensor<2xf32> { CALL return %b : tensor<2xf32> }
func.func @main(%a: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32> %p = stablehlo.partition_id : tensor<ui32>
  %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
  %c = stablehlo.compare EQ, LIMIT, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "stablehlo.if"(%c) ({ %d = func.call @inner(%a) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %d : tensor<2xf32> }, { stablehlo.return %a : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  return %r : tensor<2xf32> }""".replace("CALL", _CALL)


def _loop(start: str = "%zero", limit: str = "%three", step: str = "%one") -> str:
    return _LOOP.replace("START", start).replace("LIMIT", limit).replace("STEP", step)


@pytest.mark.parametrize("program", [_loop(), _BRANCH.replace("LIMIT", "%zero")], ids=["loop", "branch"])
def test_conditions_that_are_equal_on_all_devices(program: str) -> None:
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    inputs = [[np.array([each, -each], "f4"), np.array(0, "i4")] for each in range(4)]
    _check(program, artifact, inputs, 4, 1)


@pytest.mark.parametrize(
    ("program", "op"),
    [
        (_loop(start="%n"), "while"),
        (_loop(limit="%n"), "while"),
        (_loop(step="%n"), "while"),
        (_BRANCH.replace("LIMIT", "%n"), "if"),
        (_BRANCH.replace("LIMIT", "%q"), "if"),
        (
            _BRANCH.replace("LIMIT", "%q").replace(
                "func.call @inner(%a)", 'stablehlo.composite "a.b" %a {decomposition = @inner}'
            ),
            "if",
        ),
    ],
)
def test_conditions_that_may_differ_are_refused(program: str, op: str) -> None:
    with pytest.raises(vt.DowngradeError, match=f"it is in a region of stablehlo.{op} whose condition may differ"):
        vt.serialize(program, "0.15.0", expand=True)


def test_empty_groups_are_refused() -> None:
    program = _program([], "tensor<2xf32>").replace("dense<> : tensor<0x0xi64>", "dense<> : tensor<1x0xi64>")
    with pytest.raises(vt.DowngradeError, match="its groups are empty, so that the number of devices decides them"):
        vt.serialize(program, "0.15.0", expand=True)


def test_nothing_else_changes() -> None:
    program = _program([[0, 1]], "tensor<2xf32>")
    assert bytes(vt.serialize(program, "0.16.0", expand=True)) == bytes(vt.serialize(program, "0.16.0"))
