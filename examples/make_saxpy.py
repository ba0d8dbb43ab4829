"""`saxpy.mlir`: the smallest program worth running, a scalar times a vector plus a vector.

It has no locations, to be read at a glance.
"""

from __future__ import annotations

import _emit
import jax
import jax.numpy as jnp
from jax import Array


def saxpy(a: Array, x: Array, y: Array) -> Array:
    """The BLAS routine of that name, for `f32`."""
    return a * x + y


def build() -> bytes:
    """Lower it for vectors of four."""
    lowered = jax.jit(saxpy).lower(jnp.zeros(()), jnp.zeros(4), jnp.zeros(4))
    return _emit.mlir_text(lowered, locations=False)


if __name__ == "__main__":
    _emit.main(build, "saxpy.mlir")
