"""Groups told by the axes of a mesh as explicit groups, against upstream's pass and on the engines."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded
from support.grouped_programs import ADD, CHANNEL, GLOBAL, dense, drawn, function, tensor

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

pytestmark = pytest.mark.needs("mesh_replica_groups")

#: Sizes of axes, the order of devices, axes of groups, and the groups. What upstream's pass lacks is marked.
MESHES = {
    "one axis of two": ((2,), (), ["a"], [[0, 1]]),
    "one axis of one": ((1,), (), ["a"], [[0]]),
    "no axis": ((2,), (), [], [[0], [1]]),
    "inner axis": ((2, 4), (), ["b"], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    "outer axis": ((2, 4), (), ["a"], [[0, 4], [1, 5], [2, 6], [3, 7]]),
    "both axes": ((2, 2), (), ["a", "b"], [[0, 1, 2, 3]]),
    "both axes, the other way": ((2, 2), (), ["b", "a"], [[0, 2, 1, 3]]),
    "axis in the middle": ((2, 2, 2), (), ["b"], [[0, 2], [1, 3], [4, 6], [5, 7]]),
    "two of three axes": ((2, 2, 2), (), ["c", "a"], [[0, 4, 1, 5], [2, 6, 3, 7]]),
    "order of devices": ((2, 2), (3, 1, 0, 2), ["a"], [[3, 0], [1, 2]]),
    "outer half of an axis": ((2, 4), (), ["b", "(1)2"], [[0, 2], [1, 3], [4, 6], [5, 7]]),
    "inner half of an axis": ((2, 4), (), ["b", "(2)2"], [[0, 1], [2, 3], [4, 5], [6, 7]]),
}
WITH_SUB_AXES = {name for name in MESHES if "half" in name}


def _groups(name: str) -> str:
    sizes, order, along, _ = MESHES[name]
    axes = ", ".join(
        f'#stablehlo.mesh_axis<name = "{axis}", size = {size}>' for axis, size in zip("abc", sizes, strict=False)
    )
    ids = f", device_ids = dense<{list(order)}> : tensor<{len(order)}xi64>" if order else ""
    references = [f'#stablehlo.axis_ref<name = "{each}">' for each in along if "(" not in each]
    if len(references) < len(along):
        references = [f'#stablehlo.axis_ref<name = "{along[0]}", sub_axis_info = {along[1]}>']
    mesh = f"#stablehlo.mesh<axes = [{axes}]{ids}>"
    return f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{', '.join(references)}]>"


def _ops(groups: str, size: int, *, channel: bool = False) -> dict[str, str]:
    held, a, b = f"replica_groups = {groups}, {GLOBAL}", tensor((8,), "f32"), tensor((8 // size,), "f32")
    gather, scatter = f"all_gather_dim = 0 : i64, {held}", f"scatter_dimension = 0 : i64, {held}"
    of_one_axis = f"replica_groups = {groups}" + (f", {CHANNEL}" if channel else "")
    gathered = tensor((8 * size,), "f32")
    split = f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = {size} : i64"
    return {
        "all_gather": function(f'"stablehlo.all_gather"(OPERANDS) {{{gather}}}', [a], [gathered]),
        "all_reduce": function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', [a], [a]),
        "reduce_scatter": function(f'"stablehlo.reduce_scatter"(OPERANDS) {ADD} {{{scatter}}}', [a], [b]),
        "all_to_all": function(f'"stablehlo.all_to_all"(OPERANDS) {{{split}, {of_one_axis}}}', [a], [a]),
        "collective_broadcast": function(f'"stablehlo.collective_broadcast"(OPERANDS) {{{of_one_axis}}}', [a], [a]),
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MESHES)
def test_groups_are_those_of_the_mesh(name: str) -> None:
    expected = MESHES[name][-1]
    for op, program in _ops(_groups(name), len(expected[0])).items():
        artifact, (note,) = expanded(program, "mesh_replica_groups")
        explicit = program.replace(_groups(name), dense(expected))
        assert note.op == f"stablehlo.{op}"
        assert str(vt.deserialize(artifact)) == str(vt.deserialize(vt.serialize(explicit, artifact.version)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [name for name in MESHES if name not in WITH_SUB_AXES])
def test_groups_are_those_of_upstream(name: str) -> None:
    """Upstream's pass expands all features of a target at once; these programs have no other."""
    provider = get_provider()
    for program in _ops(_groups(name), len(MESHES[name][-1][0])).values():
        artifact, _ = expanded(program, "mesh_replica_groups")
        context = provider.new_context()
        module = provider.parse(context, program)
        provider.run_passes(module, "stablehlo-compatibility-expander{target=1.15.0}", verify=True)
        found, expected = (
            re.findall(r"replica_groups = (dense<[^>]*> : tensor<[^>]*>)", text)
            for text in (str(vt.deserialize(artifact)), provider.text(module))
        )
        assert len(found) == 1
        assert found == expected


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["one axis of two", "both axes, the other way", "order of devices"])
@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "reduce_scatter"])
def test_results_on_devices(op: str, name: str) -> None:
    groups = MESHES[name][-1]
    program = _ops(_groups(name), len(groups[0]))[op]
    artifact, _ = expanded(program, "mesh_replica_groups", "0.9.0")
    count = sum(map(len, groups))
    rng = np.random.default_rng(count)
    inputs = [[rng.normal(size=8).astype("f4")] for _ in range(count)]
    for replicas in {1, count // 2, count}:
        check_same_on_devices(program, artifact, inputs, replicas=replicas, partitions=count // replicas)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["outer axis", "inner half of an axis", "two of three axes"])
@pytest.mark.parametrize("channel", [False, True])
def test_results_on_eight_replicas_or_partitions(name: str, channel: bool) -> None:
    groups = MESHES[name][-1]
    programs = _ops(_groups(name), len(groups[0]), channel=channel)
    rng = np.random.default_rng(8)
    inputs = [[drawn(rng, (8,), "f32")] for _ in range(8)]
    replicas, partitions = (1, 8) if channel else (8, 1)
    by_op: dict[str, list[Literal["reference", "xla"]]]
    by_op = {"all_to_all": ["reference", "xla"], "collective_broadcast": ["reference"]}
    for op, engines in by_op.items():
        artifact, _ = expanded(programs[op], "mesh_replica_groups")
        check_same_on_devices(programs[op], artifact, inputs, engines=engines, replicas=replicas, partitions=partitions)


def test_a_mesh_by_name() -> None:
    groups = '#stablehlo.replica_group_mesh_axes<mesh = @devices, axes = [#stablehlo.axis_ref<name = "a">]>'
    program = 'sdy.mesh @devices = <["b"=2, "a"=2], device_ids=[0, 2, 1, 3]>' + _ops(groups, 2)["all_gather"]
    artifact = vt.serialize(program, "1.15.0", allow_other_dialects=True, expand=["mesh_replica_groups"])
    assert "replica_groups = dense<[[0, 2], [1, 3]]>" in str(vt.deserialize(artifact))
    inputs = [[np.arange(8, dtype="f4") + each] for each in range(4)]
    check_same_on_devices(program, artifact, inputs, engines=["reference"], replicas=1, partitions=4)


@pytest.mark.parametrize(
    ("axis", "ids"),
    [
        ("sub_axis_info = (3)2", ""),
        ("sub_axis_info = (2)4", ""),
        ("sub_axis_info = (2)2", ", device_ids = dense<[0, 1, 2]> : tensor<3xi64>"),
    ],
)
def test_axes_that_do_not_fit_the_mesh_are_refused(axis: str, ids: str) -> None:
    mesh = f'#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "a", size = 4>]{ids}>'
    groups = f'#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = "a", {axis}>]>'
    with pytest.raises(
        vt.DowngradeError, match="cannot be expanded: the axes of its groups, or the devices of their mesh"
    ):
        vt.serialize(_ops(groups, 2)["all_gather"], "1.15.0", expand=True)


def test_attributes_and_aliases_are_carried() -> None:
    program = _ops(_groups("one axis of two"), 2)["all_gather"].replace(
        "{all_gather_dim", '{my.mark = "kept", all_gather_dim'
    )
    program = program.replace("%a0: tensor<8xf32>", "%a0: tensor<8xf32> {jax.buffer_donor = true}")
    artifact, (note,) = expanded(program, "mesh_replica_groups")
    text = str(vt.deserialize(artifact))
    assert 'my.mark = "kept"' in text
    assert "%arg0: tensor<8xf32> {jax.buffer_donor = true}" in text
    assert "without" not in note.message


def test_only_ops_of_meshes_change() -> None:
    program = _ops(dense([[0, 1]]), 2)["all_gather"]
    assert bytes(vt.serialize(program, "1.15.0", expand=True)) == bytes(vt.serialize(program, "1.15.0"))


def test_a_mesh_that_does_not_exist_is_refused() -> None:
    groups = '#stablehlo.replica_group_mesh_axes<mesh = @none, axes = [#stablehlo.axis_ref<name = "a">]>'
    # Some releases refuse it themselves.
    refused = (vt.DowngradeError, vt.InvalidProgramError)
    with pytest.raises(refused, match=r"its groups refer to mesh @none, which does not exist|mesh symbol 'none' not"):
        vt.serialize(_ops(groups, 2)["all_gather"], "1.15.0", expand=True)
