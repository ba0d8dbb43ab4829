"""Roots and several operands of collective_broadcast, which newer libraries than some have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded
from support.grouped_programs import CHANNEL, ELEMENTS, GRIDS, dense, drawn, function, tensor
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

FEATURE = "collective_broadcast_dynamic_root"
HAS_ROOTS = known_feature(FEATURE).introduced <= CURRENT


def _program(
    groups: Sequence[Sequence[int]], types: Sequence[str], *, roots: bool = True, channel: bool = False, held: str = ""
) -> str:
    told = [f"replica_groups = {dense(groups)}", CHANNEL if channel else "", "has_dynamic_root" if roots else "", held]
    takes = [*types, f"tensor<{len(types)}xi32>"] if roots else types
    return function(f'"stablehlo.collective_broadcast"(OPERANDS) {{{", ".join(filter(None, told))}}}', takes, types)


if HAS_ROOTS:

    @pytest.mark.parametrize("channel", [False, True], ids=["cross_replica", "cross_partition"])
    @pytest.mark.parametrize(("replicas", "partitions"), GRIDS, ids=str)
    def test_roots_of_each_device(replicas: int, partitions: int, channel: bool) -> None:
        ids = list(range(partitions if channel else replicas))
        rng = np.random.default_rng(partitions)
        for groups in ([ids[::-1]], [each for each in (ids[::-2], ids[-2::-2]) if each], [ids[1:3] or ids]):
            program = _program(groups, ["tensor<3xf32>", "tensor<i8>"], channel=channel)
            artifact, _ = expanded(program, FEATURE, "0.16.0")
            assert expanded(program, FEATURE)[0].requirements().readable_since <= vt.Version("0.16.0")
            # Without groups of all devices the others have any roots.
            inputs: Any = [
                [drawn(rng, (3,), "f32"), drawn(rng, (), "i8"), rng.integers(0, len(groups[0]), 2).astype("i4")]
                for _ in range(replicas * partitions)
            ]
            check_same_on_devices(
                program, artifact, inputs, expected_by="reference", replicas=replicas, partitions=partitions
            )

    @pytest.mark.parametrize("element", ELEMENTS)
    def test_every_type_of_elements(element: str) -> None:
        shapes: list[tuple[int, ...]] = [(), (2, 0), (1, 2, 2)]
        program = _program([[2, 0, 1]], [tensor(shape, element) for shape in shapes])
        artifact, _ = expanded(program, FEATURE)
        rng = np.random.default_rng(1)
        roots = np.array([1, 2, 0], "i4")
        inputs = [[*(drawn(rng, shape, element) for shape in shapes), roots] for _ in range(4)]
        check_same_on_devices(program, artifact, inputs, expected_by="reference", replicas=4)

    def test_several_operands_without_roots() -> None:
        program = _program([[1, 0]], ["tensor<3xf32>", "tensor<i1>", "tensor<2x0xf64>"], roots=False)
        artifact, (note,) = expanded(program, FEATURE)
        assert note.message.startswith(
            "stablehlo.collective_broadcast was rewritten to 3 stablehlo.collective_broadcast,"
        )
        rng = np.random.default_rng(2)
        inputs = [[drawn(rng, (3,), "f32"), drawn(rng, (), "i1"), drawn(rng, (2, 0), "f64")] for _ in range(2)]
        check_same_on_devices(program, artifact, inputs, engines=["reference"], replicas=2)

    @pytest.mark.parametrize("roots", [False, True])
    def test_older_versions_are_reached_with_the_expansion_of_the_op(roots: bool) -> None:
        program = _program([[1, 0, 2]], ["tensor<3xf32>", "tensor<2xf64>"], roots=roots)
        artifact = vt.serialize(program, "0.9.0", expand=True)
        assert "collective_broadcast" not in str(vt.deserialize(artifact))
        rng = np.random.default_rng(2)
        told = [np.array([2, 1], "i4")] if roots else []
        inputs = [[drawn(rng, (3,), "f32"), drawn(rng, (2,), "f64"), *told] for _ in range(4)]
        check_same_on_devices(program, artifact, inputs, expected_by="reference", replicas=4)

    def test_the_expansion_of_the_op_alone_refuses_roots() -> None:
        with pytest.raises(vt.DowngradeError, match="its root is only known at run time"):
            vt.serialize(_program([[0, 1]], ["tensor<f32>"]), "0.9.0", expand=["collective_broadcast"])

    def test_attributes_are_carried() -> None:
        program = _program([[0, 1]], ["tensor<2xf32>"], held='my.mark = "kept"')
        artifact, _ = expanded(program, FEATURE)
        assert str(vt.deserialize(artifact)).count('my.mark = "kept"') == 1

    def test_empty_groups_are_refused() -> None:
        program = _program([[0, 1]], ["tensor<f32>"]).replace(dense([[0, 1]]), "dense<> : tensor<1x0xi64>")
        with pytest.raises(vt.DowngradeError, match="its groups are empty, so that the number of devices decides them"):
            vt.serialize(program, "1.19.0", expand=True)

else:

    def test_the_library_refuses_roots() -> None:
        with pytest.raises(vt.InvalidProgramError):
            vt.serialize(_program([[0, 1]], ["tensor<f32>"]))


def test_one_operand_remains_as_it_is() -> None:
    program = _program([[0, 1]], ["tensor<f32>"], roots=False)
    assert bytes(vt.serialize(program, "0.16.0", expand=[FEATURE])) == bytes(vt.serialize(program, "0.16.0"))
