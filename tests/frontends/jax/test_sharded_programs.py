"""Functions of JAX for two devices, exported, written, read and run: as in JAX, or refused with a reason."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import numpy as np
import pytest
from support.sharded_jax import PROGRAMS, X

import vhlo_tools as vt

#: What XLA refuses JAX too.
REFUSED = {
    "shard_map: ragged_all_to_all": "neither XLA nor vhlo_tools implements it",
    "jit: in cond": "Inconsistent conditional sharding",
}
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


def how_it_ends(name: str) -> str:
    """Return `equal`, `refused` where that is known, or what is wrong."""
    function = PROGRAMS[name]
    exported = jax.export.export(function, disabled_checks=UNPROMISED)(X)
    artifact = vt.serialize(bytes(exported.serialize()))
    vt.deserialize(bytes(artifact))
    assert {each.level for each in vt.check(artifact, "current")} <= {"note", "warning"}
    expected = REFUSED.get(name)
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
