"""`transformer_step.mlir`: one training step of a small causal transformer, with Adam.

The step replaces the parameters and the optimizer's state, so it donates both: each of those
arguments of `main` carries `tf.aliasing_output`; tokens and targets do not.
"""

from __future__ import annotations

from typing import NamedTuple

import _emit
import jax
import jax.numpy as jnp
from jax import Array

BATCH, SEQUENCE, VOCABULARY = 2, 8, 32
MODEL, HEADS, HIDDEN = 16, 2, 64
LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8

SHAPES: dict[str, tuple[int, ...]] = {
    "embedding": (VOCABULARY, MODEL),
    "positions": (SEQUENCE, MODEL),
    "norm1": (MODEL,),
    "qkv": (MODEL, 3, HEADS, MODEL // HEADS),
    "out": (HEADS, MODEL // HEADS, MODEL),
    "norm2": (MODEL,),
    "up": (MODEL, HIDDEN),
    "down": (HIDDEN, MODEL),
}

Parameters = dict[str, Array]


class Adam(NamedTuple):
    """The optimizer's state: the steps taken so far and both moments of the gradients."""

    steps: Array
    mean: Parameters
    variance: Parameters


def layer_norm(x: Array, scale: Array) -> Array:
    """Zero mean and unit variance per token, then a learned scale."""
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 1e-5) * scale


def attention(x: Array, qkv: Array, out: Array) -> Array:
    """Causal self-attention, every head at once."""
    query, key, value = jnp.einsum("bsm,mphd->pbhsd", x, qkv)
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / (MODEL / HEADS) ** 0.5
    causal = jnp.tril(jnp.ones((SEQUENCE, SEQUENCE), dtype=bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.einsum("bhqk,bhkd,hdm->bqm", weights, value, out)


def mlp(x: Array, up: Array, down: Array) -> Array:
    """Two dense layers around a GELU."""
    return jax.nn.gelu(x @ up) @ down


def forward(params: Parameters, tokens: Array) -> Array:
    """Scores of the next token at every position."""
    x = params["embedding"][tokens] + params["positions"]
    x = x + attention(layer_norm(x, params["norm1"]), params["qkv"], params["out"])
    x = x + mlp(layer_norm(x, params["norm2"]), params["up"], params["down"])
    return x @ params["embedding"].T


def cross_entropy(params: Parameters, tokens: Array, targets: Array) -> Array:
    """The mean loss over all positions."""
    log_probabilities = jax.nn.log_softmax(forward(params, tokens))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, targets[..., None], axis=-1))


def train_step(
    params: Parameters,
    adam: Adam,
    tokens: Array,
    targets: Array,
) -> tuple[Parameters, Adam, Array]:
    """The new parameters, the new state and the loss."""
    loss, gradients = jax.value_and_grad(cross_entropy)(params, tokens, targets)
    steps = adam.steps + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, adam.mean, gradients)
    variance = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, adam.variance, gradients)
    rate = LEARNING_RATE * jnp.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)

    def update(parameter: Array, mean: Array, variance: Array) -> Array:
        return parameter - rate * mean / (jnp.sqrt(variance) + EPSILON)

    params = jax.tree.map(update, params, mean, variance)
    return params, Adam(steps, mean, variance), loss


def build() -> bytes:
    """Lower the step with its state donated."""
    params = {name: jnp.zeros(shape) for name, shape in SHAPES.items()}
    adam = Adam(jnp.zeros((), jnp.int32), params, params)
    tokens = jnp.zeros((BATCH, SEQUENCE), jnp.int32)
    step = jax.jit(train_step, donate_argnames=("params", "adam"))
    return _emit.mlir_text(step.lower(params, adam, tokens, tokens))


if __name__ == "__main__":
    _emit.main(build, "transformer_step.mlir", tracebacks=True)
