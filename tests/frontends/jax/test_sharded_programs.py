"""Functions of JAX for two devices, exported, written, read and run: as in JAX, or refused with a reason."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import numpy as np
import pytest
from sharded_jax import PROGRAMS, X

import vhlo_tools as vt

#: What no engine runs on two devices: LAPACK in a `shard_map`, and what XLA refuses JAX too.
LAPACK_ON_PARTS = "XLA does not support custom calls in the body of sdy.manual_computation"
REFUSED = {"shard_map: ragged_all_to_all": LAPACK_ON_PARTS, "jit: in cond": "Inconsistent conditional sharding"}
#: Custom calls for which jax.export gives no promise.
UNPROMISED = [
    jax.export.DisabledSafetyCheck.custom_call(each)
    for each in ("lapack_sgeqp3_ffi", "lapack_sormqr_ffi", "ragged_all_to_all")
]


@pytest.mark.parametrize("part", range(8))
def test_what_two_devices_compute(part: int) -> None:
    assert len(PROGRAMS) > 200
    ended = {name: how_it_ends(name) for name in list(PROGRAMS)[part::8]}
    assert {name: how for name, how in ended.items() if how not in ("equal", "refused")} == {}
    assert list(ended.values()).count("equal") > len(ended) // 2


def how_it_ends(name: str) -> str:
    """Return `equal`, `refused` where that is known, or what is wrong."""
    function = PROGRAMS[name]
    exported = jax.export.export(function, disabled_checks=UNPROMISED)(X)
    artifact = vt.serialize(bytes(exported.serialize()))
    vt.deserialize(bytes(artifact))
    assert {each.level for each in vt.check(artifact, "current")} <= {"note", "warning"}
    is_of_parts = name.startswith("shard_map: ") and "@lapack_" in exported.mlir_module()
    expected = REFUSED.get(name, LAPACK_ON_PARTS if is_of_parts else None)
    try:
        (found,) = vt.run_parallel(artifact, [[X]])
    except vt.EngineError as error:
        return "refused" if expected is not None and expected in str(error) else f"refused: {error}"
    if expected is not None:
        return f"not refused, as it was: {expected}"
    right: list[Any] = [np.asarray(each) for each in jax.tree.leaves(function(X))]
    same = [one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
            for one, other in zip(found, right, strict=True)]  # fmt: skip
    return "equal" if all(same) else f"different: {found} and not {right}"
