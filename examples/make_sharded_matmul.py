"""`sharded_matmul.mlir`: two matmuls over a 2 x 4 mesh of devices, sharded with Shardy.

The module holds the `sdy` dialect beside StableHLO: the mesh, a sharding on each argument and
result of `main`, and a constraint on the value between the matmuls.
"""

from __future__ import annotations

import os

# Read when JAX makes its client: eight devices out of one CPU.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import _emit
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import AxisType, NamedSharding, PartitionSpec

BATCH, MODEL, HIDDEN = 16, 32, 64


def build() -> bytes:
    """Lower two dense layers, data and model parallel."""
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    rows = NamedSharding(mesh, PartitionSpec("data", None))
    both = NamedSharding(mesh, PartitionSpec("data", "model"))
    up_columns = NamedSharding(mesh, PartitionSpec(None, "model"))
    down_rows = NamedSharding(mesh, PartitionSpec("model", None))

    def mlp(x: Array, up: Array, down: Array) -> Array:
        hidden: Array = jax.lax.with_sharding_constraint(jnp.maximum(x @ up, 0), both)
        return hidden @ down

    lowered = jax.jit(mlp, in_shardings=(rows, up_columns, down_rows), out_shardings=rows).lower(
        jnp.zeros((BATCH, MODEL)), jnp.zeros((MODEL, HIDDEN)), jnp.zeros((HIDDEN, MODEL))
    )
    return _emit.mlir_text(lowered)


if __name__ == "__main__":
    _emit.main(build, "sharded_matmul.mlir")
