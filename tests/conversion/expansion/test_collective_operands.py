"""Several operands of collectives as one op for each operand."""

from __future__ import annotations

import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded
from support.grouped_programs import ADD, CHANNEL, GLOBAL, GRIDS, dense, drawn, function, reduction, tensor

import vhlo_tools as vt

#: How ids are told: attributes, and how many ids there are.
STRATEGIES = {"cross_replica": "", "cross_replica_and_partition": CHANNEL, "flattened_ids": GLOBAL}


def _groups(replicas: int, partitions: int, strategy: str) -> list[list[int]]:
    """Return two groups out of order, or one."""
    count = {"flattened_ids": replicas * partitions, "cross_partition": partitions}.get(strategy, replicas)
    return [list(range(count))[::-2], list(range(count))[-2::-2]] if count > 1 else [[0]]


@pytest.mark.sample(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("replicas", "partitions"), GRIDS, ids=str)
def test_gathering_and_reducing(replicas: int, partitions: int, strategy: str) -> None:
    groups = _groups(replicas, partitions, strategy)
    size = len(groups[0]) * (partitions if strategy == "cross_replica_and_partition" else 1)
    held = f"replica_groups = {dense(groups)}" + (f", {STRATEGIES[strategy]}" if STRATEGIES[strategy] else "")
    takes = [tensor((2, 1), "f32"), tensor((0, 3), "f32"), tensor((1, 4), "f32")]
    gives = [tensor((2, size), "f32"), tensor((0, 3 * size), "f32"), tensor((1, 4 * size), "f32")]
    rng = np.random.default_rng(replicas)
    inputs = [
        [rng.normal(size=shape).astype("f4") for shape in ((2, 1), (0, 3), (1, 4))]
        for _ in range(replicas * partitions)
    ]
    for program in (
        function(f'"stablehlo.all_gather"(OPERANDS) {{all_gather_dim = 1 : i64, {held}}}', takes, gives),
        function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', takes, takes),
    ):
        artifact, (note,) = expanded(program, "variadic_collectives")
        assert note.op is not None
        check_same_on_devices(program, artifact, inputs, replicas=replicas, partitions=partitions)


@pytest.mark.sample(3)
@pytest.mark.parametrize("strategy", ["cross_replica", "cross_partition"])
@pytest.mark.parametrize(("replicas", "partitions"), [(2, 2), (4, 2), (2, 4), (1, 8)], ids=str)
def test_all_to_all(replicas: int, partitions: int, strategy: str) -> None:
    groups = _groups(replicas, partitions, strategy)
    size = len(groups[0])
    held = f"replica_groups = {dense(groups)}, split_count = {size} : i64" + (
        f", {CHANNEL}" if strategy == "cross_partition" else ""
    )
    held = f"split_dimension = 0 : i64, concat_dimension = 1 : i64, {held}"
    takes, gives = (
        [tensor((8, 1), "f64"), tensor((4, 3), "i8")],
        [tensor((8 // size, size), "f64"), tensor((4 // size, 3 * size), "i8")],
    )
    program = function(f'"stablehlo.all_to_all"(OPERANDS) {{{held}}}', takes, gives)
    artifact, _ = expanded(program, "variadic_collectives", "0.9.0")
    rng = np.random.default_rng(partitions)
    inputs = [[drawn(rng, (8, 1), "f64"), drawn(rng, (4, 3), "i8")] for _ in range(replicas * partitions)]
    check_same_on_devices(program, artifact, inputs, replicas=replicas, partitions=partitions)


@pytest.mark.sample(2)
@pytest.mark.parametrize("element", ["f64", "i32", "i1", "bf16", "complex<f32>"])
def test_scalars_and_many_operands(element: str) -> None:
    takes = [tensor((), element), tensor((1, 1, 2), element), tensor((), element), tensor((5,), element)]
    op = "or" if element == "i1" else "add"
    held = f"replica_groups = {dense([[0, 1]])}"
    program = function(f'"stablehlo.all_reduce"(OPERANDS) {reduction(op, element)} {{{held}}}', takes, takes)
    artifact, _ = expanded(program, "variadic_collectives", "0.9.0")
    rng = np.random.default_rng(0)
    inputs = [[drawn(rng, shape, element) for shape in ((), (1, 1, 2), (), (5,))] for _ in range(2)]
    check_same_on_devices(program, artifact, inputs, replicas=2)


def test_groups_of_different_sizes() -> None:
    held = f"replica_groups = {dense([[2, 0, 3], [1]])}"
    takes = [tensor((2,), "f32")] * 2
    program = function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', takes, takes)
    artifact, _ = expanded(program, "variadic_collectives")
    inputs = np.arange(16, dtype="f4").reshape(4, 2, 2)
    check_same_on_devices(program, artifact, [list(each) for each in inputs], replicas=4)


def test_sizes_that_are_known_at_run_time_only() -> None:
    takes = [tensor(("?", 2), "f32"), tensor(("?",), "f32")]
    held = f"replica_groups = {dense([[0, 1]])}"
    program = function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', takes, takes)
    artifact, _ = expanded(program, "variadic_collectives", "0.9.0")
    assert "tensor<?x2xf32>" in str(vt.deserialize(artifact))


def test_attributes_are_carried_but_not_those_of_all_results() -> None:
    takes = [tensor((2,), "f32")] * 2
    held = f'replica_groups = {dense([[0, 1]])}, my.mark = "kept", mhlo.sharding = "{{{{replicated}}, {{replicated}}}}"'
    program = function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', takes, takes)
    program = program.replace("%a0: tensor<2xf32>", "%a0: tensor<2xf32> {tf.aliasing_output = 1 : i32}")
    artifact, (note,) = expanded(program, "variadic_collectives")
    text = str(vt.deserialize(artifact))
    assert text.count('my.mark = "kept"') == 2
    assert "mhlo.sharding" not in text
    assert "without its mhlo.sharding," in note.message
    assert "%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32}" in text


def test_one_operand_remains_as_it_is() -> None:
    held, types = f"replica_groups = {dense([[0, 1]])}", [tensor((2,), "f32")]
    program = function(f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{held}}}', types, types)
    unchanged = vt.serialize(program, "1.4.0")
    assert bytes(vt.serialize(program, "1.4.0", expand=["variadic_collectives"])) == bytes(unchanged)
