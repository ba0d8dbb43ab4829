"""`symbolic_export.jax_export`: a text encoder for any batch and length, as `jax.export` writes it.

Inference draws no dropout mask, so nothing reads the key. JAX drops such an argument only where
all shapes are static: here the program's `main` still takes it.
"""

from __future__ import annotations

import _emit
import jax
import jax.numpy as jnp
from jax import Array, export

VOCABULARY, MODEL, LONGEST = 32, 16, 64

Parameters = dict[str, Array]


def encode(params: Parameters, dropout_key: Array, tokens: Array) -> Array:
    """One vector of length 1 per row of tokens."""
    length = tokens.shape[1]
    x = params["embedding"][tokens] + params["positions"][:length]
    x = jnp.mean(jnp.tanh(x @ params["dense"]), axis=1)
    return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def build() -> bytes:
    """Export the encoder with two symbolic dimensions."""
    params = {
        "embedding": jnp.zeros((VOCABULARY, MODEL)),
        "positions": jnp.zeros((LONGEST, MODEL)),
        "dense": jnp.zeros((MODEL, MODEL)),
    }
    dropout_key = jnp.zeros(2, jnp.uint32)
    tokens = jnp.zeros((1, 1), jnp.int32)
    arguments = export.symbolic_args_specs(
        (params, dropout_key, tokens),
        ("...", "...", "b, s"),
        constraints=[f"s <= {LONGEST}"],
    )
    exported = export.export(jax.jit(encode), platforms=["cpu"])(*arguments)
    return bytes(exported.serialize())


if __name__ == "__main__":
    _emit.main(build, "symbolic_export.jax_export", tracebacks=True)
