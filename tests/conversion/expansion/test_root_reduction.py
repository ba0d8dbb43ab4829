"""The op collective_reduce, which newer libraries than some have, against the op and against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded
from support.grouped_programs import CHANNEL, GLOBAL, dense, drawn, function, reduction, tensor
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

FEATURE = "collective_reduce"
HAS_OP = known_feature(FEATURE).introduced <= CURRENT
GRIDS = ((2, 1), (1, 2), (2, 2), (8, 1), (4, 2), (2, 4))
STRATEGIES = {"cross_replica": "", "cross_replica_and_partition": CHANNEL, "flattened_ids": GLOBAL}


def _program(
    groups: Sequence[Sequence[int]],
    types: Sequence[str] = ("tensor<3xf32>",),
    *,
    op: str = "add",
    element: str = "f32",
    roots: bool = False,
    held: str = "",
) -> str:
    told = [f"replica_groups = {dense(groups)}", "has_dynamic_root" if roots else "", held]
    takes = [*types, f"tensor<{len(types)}xi32>"] if roots else types
    region = reduction(op, element)
    return function(
        f'"stablehlo.collective_reduce"(OPERANDS) {region} {{{", ".join(filter(None, told))}}}', takes, types
    )


def _devices(groups: Sequence[Sequence[int]], strategy: str, replicas: int, partitions: int) -> list[list[int]]:
    """Return the devices of each group, as the specification tells them."""
    if strategy == "flattened_ids":
        return [list(group) for group in groups]
    by_partition = [[[each * partitions + at for each in group] for group in groups] for at in range(partitions)]
    if strategy == "cross_replica":
        return [group for part in by_partition for group in part]
    return [[each for part in by_partition for each in part[number]] for number in range(len(groups))]


def _expected(members: list[list[int]], inputs: Sequence[Sequence[Any]], roots: Sequence[int]) -> list[list[Any]]:
    """Return the sums of small integers on the root of each group, and zeros elsewhere."""
    data = [values[: len(roots)] for values in inputs]
    found = [[np.zeros_like(value) for value in values] for values in data]
    for group in members:
        for number, root in enumerate(roots):
            found[group[root]][number] = sum(data[each][number] for each in group)
    return found


if HAS_OP:

    @pytest.mark.parametrize("strategy", STRATEGIES)
    @pytest.mark.parametrize(("replicas", "partitions"), GRIDS, ids=str)
    @pytest.mark.parametrize("has_roots", [False, True])
    def test_roots_have_the_reduction(replicas: int, partitions: int, strategy: str, has_roots: bool) -> None:
        count = replicas * partitions if strategy == "flattened_ids" else replicas
        ids = list(range(count))
        rng = np.random.default_rng(replicas)
        for groups in ([ids[::-1]], [ids[::-2], ids[-2::-2]] if count > 1 else [ids], [ids[-1:], ids[:-1]]):
            told = [group for group in groups if group]
            program = _program(told, ["tensor<3xf32>", "tensor<f32>"], held=STRATEGIES[strategy], roots=has_roots)
            artifact, _ = expanded(program, FEATURE)
            members = _devices(told, strategy, replicas, partitions)
            roots = [int(rng.integers(min(map(len, members)))) if has_roots else 0 for _ in range(2)]
            given = [np.array(roots, "i4")] if has_roots else []
            inputs: Any = [
                [rng.integers(-9, 9, 3).astype("f4"), np.float32(rng.integers(9)), *given]
                for _ in range(replicas * partitions)
            ]
            expected = _expected(members, inputs, roots)
            for engine in ("reference", "xla"):
                found = vt.run_parallel(artifact, inputs, replicas=replicas, partitions=partitions, engine=engine)
                for one, other in zip(found, expected, strict=True):
                    for a, b in zip(one, other, strict=True):
                        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()

    @pytest.mark.parametrize("strategy", STRATEGIES)
    @pytest.mark.parametrize("element", ["f32", "f64", "bf16", "i32", "i1", "complex<f32>"])
    def test_the_bits_are_those_of_the_op(element: str, strategy: str) -> None:
        shapes: list[tuple[int, ...]] = [(), (2, 0), (1, 3)]
        op = "or" if element == "i1" else "add"
        types = [tensor(shape, element) for shape in shapes]
        groups = [[1, 0], [2, 3]] if strategy == "flattened_ids" else [[1, 0]]
        program = _program(groups, types, op=op, element=element, held=STRATEGIES[strategy])
        artifact, _ = expanded(program, FEATURE, "0.9.0")
        rng = np.random.default_rng(3)
        inputs = [[drawn(rng, shape, element) for shape in shapes] for _ in range(4)]
        check_same_on_devices(program, artifact, inputs, engines=["reference"], replicas=2, partitions=2)

    @pytest.mark.parametrize(
        ("strategy", "replicas", "partitions"),
        [("cross_replica", 4, 1), ("flattened_ids", 4, 1), ("flattened_ids", 2, 2), ("flattened_ids", 1, 4)],
    )
    def test_devices_of_no_group_have_zeros(strategy: str, replicas: int, partitions: int) -> None:
        told = f"mhlo.num_replicas = {replicas} : i32, mhlo.num_partitions = {partitions} : i32"
        program = f"module attributes {{{told}}} {{ {_program([[1, 0]], held=STRATEGIES[strategy])} }}"
        artifact, _ = expanded(program, FEATURE)
        inputs = [[np.full(3, each + 1, "f4")] for each in range(4)]
        for engine in ("reference", "xla"):
            found = vt.run_parallel(artifact, inputs, replicas=replicas, partitions=partitions, engine=engine)
            np.testing.assert_array_equal(found, _expected([[1, 0]], inputs, [0]))

    def test_a_wider_type_of_the_reduction() -> None:
        text = _program([[0, 1]], ["tensor<2xbf16>"]).replace("-> (tensor<2xbf16>)", "-> (tensor<2xf32>)")
        text = text.replace("return %r#0 : tensor<2xbf16>", "return %r#0 : tensor<2xf32>")
        artifact, _ = expanded(text, FEATURE, "0.9.0")
        inputs = [[np.array([1, 3 * 2.0**-8], ml_dtypes.bfloat16)], [np.array([2.0**-8, 2], ml_dtypes.bfloat16)]]
        for engine in ("reference", "xla"):
            found = vt.run_parallel(artifact, inputs, replicas=2, engine=engine)
            np.testing.assert_array_equal(found, [[[1 + 2.0**-8, 2 + 3 * 2.0**-8]], [[0, 0]]])

    def test_sizes_that_are_known_at_run_time_only() -> None:
        artifact, _ = expanded(_program([[0, 1]], ["tensor<?x2xf32>"]), FEATURE, "0.9.0")
        assert "stablehlo.dynamic_broadcast_in_dim" in str(vt.deserialize(artifact))

    def test_attributes_are_carried() -> None:
        artifact, (note,) = expanded(_program([[0, 1]], held='my.mark = "kept"'), FEATURE)
        assert "stablehlo.select" in str(vt.deserialize(artifact))
        assert str(vt.deserialize(artifact)).count('my.mark = "kept"') == 2
        assert "without" not in note.message

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_groups_of_a_mesh(strategy: str) -> None:
        axes = "".join(f'#stablehlo.mesh_axis<name = "{axis}", size = 2>, ' for axis in "ab")[:-2]
        mesh = f"#stablehlo.mesh<axes = [{axes}]>"
        groups = f'#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = "a">]>'
        explicit = _program([[0, 2], [1, 3]], held=STRATEGIES[strategy])
        given, expected = (
            str(vt.deserialize(vt.serialize(program, "0.9.0", expand=True)))
            for program in (explicit.replace(dense([[0, 2], [1, 3]]), groups), explicit)
        )
        assert given == expected

    def test_quantized_values_are_refused() -> None:
        element = "!quant.uniform<i8:f32, 5.000000e-01:3>"
        program = _program([[0, 1]], [tensor((2,), element)], element=element)
        with pytest.raises(vt.DowngradeError, match="is quantized, and has no constant of zeros"):
            vt.serialize(program, "1.18.0", expand=True)

    def test_empty_groups_are_refused() -> None:
        program = _program([[0, 1]]).replace(dense([[0, 1]]), "dense<> : tensor<1x0xi64>")
        with pytest.raises(vt.DowngradeError, match="its groups are empty, so that the number of devices decides them"):
            vt.serialize(program, "1.18.0", expand=True)

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_in_a_branch_only_groups_of_device_ids_are_refused(strategy: str) -> None:
        op = _program([[0, 1]], held=STRATEGIES[strategy]).split("%r:1 = ")[1].split(" return %r#0")[0]
        program = (
            'func.func @main(%a0: tensor<3xf32>, %p: tensor<i1>) -> tensor<3xf32> { %0 = "stablehlo.if"(%p) ({ '
            f"%r = {op} stablehlo.return %r : tensor<3xf32> }}, {{ stablehlo.return %a0 : tensor<3xf32> }}) : "
            "(tensor<i1>) -> tensor<3xf32> return %0 : tensor<3xf32> }"
        )
        if strategy == "flattened_ids":
            with pytest.raises(vt.DowngradeError, match=r"region of stablehlo.if whose condition may differ"):
                vt.serialize(program, "1.18.0", expand=True)
        else:
            assert expanded(program, FEATURE)

else:

    def test_the_library_lacks_the_op() -> None:
        with pytest.raises(vt.InvalidProgramError):
            vt.serialize(_program([[0, 1]]))
