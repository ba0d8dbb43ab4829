"""`custom_calls.mlir`: custom calls that work in place, by their `output_operand_aliases`.

Most are LAPACK's, which JAX calls on CPU. One calls a function of the user's, by a target name
that nobody registered: enough to lower the program, not to run it.
"""

from __future__ import annotations

import _emit
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import linalg

ROWS, COLUMNS = 16, 4


def scale_in_place(x: Array, factor: float) -> Array:
    """Multiply by a factor, the result in the buffer of the operand."""
    # The second argument only gives the result its shape and type.
    call = jax.ffi.ffi_call("example_scale_in_place", x, input_output_aliases={0: 0})
    scaled: Array = call(x, factor=np.float32(factor))
    return scaled


def whiten(samples: Array) -> tuple[Array, Array, Array]:
    """Samples without their correlations; their principal components; an orthonormal basis."""
    centered = samples - jnp.mean(samples, axis=0)
    covariance = scale_in_place(centered.T @ centered, 1 / ROWS) + 1e-3 * jnp.eye(COLUMNS)
    factor = linalg.cholesky(covariance)
    white = linalg.triangular_solve(factor, centered, lower=True, transpose_a=True)
    components, variances = linalg.eigh(covariance)
    basis, _ = linalg.qr(centered, full_matrices=False)
    return white, components * jnp.sqrt(variances), basis


def build() -> bytes:
    """Lower the program for CPU, where LAPACK is."""
    return _emit.mlir_text(jax.jit(whiten).lower(jnp.zeros((ROWS, COLUMNS))))


if __name__ == "__main__":
    _emit.main(build, "custom_calls.mlir")
