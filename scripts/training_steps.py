"""Twenty training steps of JAX, each with its state donated: five models by four optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

Array = Any
SIZE: Final = 128


def linear(p: Any, x: Array) -> Array:
    return x @ p["w"] + p["b"]


def perceptron(p: Any, x: Array) -> Array:
    return jax.nn.relu(x @ p["w"] + p["b"]) @ p["v"]


def convolutional(p: Any, x: Array) -> Array:
    image = x.reshape(-1, 8, 16, 1)
    found = lax.conv_general_dilated(image, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(found).reshape(x.shape[0], -1) @ p["w"]


def recurrent(p: Any, x: Array) -> Array:
    def step(h: Array, each: Array) -> tuple[Array, None]:
        return jnp.tanh(each[:, None] * p["b"] + h @ p["w"]), None

    return lax.scan(step, jnp.zeros_like(x), x.T[:8])[0]


def attention(p: Any, x: Array) -> Array:
    queries, keys, values = (x.reshape(-1, 8, 16) @ p[name] for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", queries, keys) / 4.0)
    return jnp.einsum("bqk,bkd->bqd", weights, values).reshape(x.shape)


MODELS: Final[dict[str, tuple[Callable[[Any, Array], Array], dict[str, tuple[int, ...]]]]] = {
    "linear": (linear, {"w": (SIZE, SIZE), "b": (SIZE,)}),
    "perceptron": (perceptron, {"w": (SIZE, 512), "b": (512,), "v": (512, SIZE)}),
    "convolutional": (convolutional, {"k": (3, 3, 1, 4), "w": (512, SIZE)}),
    "recurrent": (recurrent, {"w": (SIZE, SIZE), "b": (SIZE,)}),
    "attention": (attention, dict.fromkeys("qkv", (16, 16))),
}


def sgd(p: Array, g: Array, s: None) -> tuple[Array, None]:
    return p - 0.01 * g, s


def momentum(p: Array, g: Array, s: Array) -> tuple[Array, Array]:
    moved = 0.9 * s + g
    return p - 0.01 * moved, moved


def adam(p: Array, g: Array, s: tuple[Array, Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
    first, second, count = 0.9 * s[0] + 0.1 * g, 0.99 * s[1] + 0.01 * g * g, s[2] + 1
    scale = jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    return p - 0.01 * scale * first / (jnp.sqrt(second) + 1e-8), (first, second, count)


def mixed(p: Array, g: Array, s: Array) -> tuple[Array, Array]:
    """Parameters of bf16, with a copy of f32 as state."""
    copy = s - 0.01 * g.astype(jnp.float32)
    return copy.astype(p.dtype), copy


OPTIMIZERS: Final[dict[str, tuple[Any, str, Callable[[Any], Any]]]] = {
    "sgd": (sgd, "float32", lambda p: None),
    "momentum": (momentum, "float32", lambda p: p),
    "adam": (adam, "float32", lambda p: (p, p, jax.ShapeDtypeStruct((), jnp.float32))),
    "mixed": (mixed, "bfloat16", lambda p: jax.ShapeDtypeStruct(p.shape, jnp.float32)),
}


def steps() -> Iterator[tuple[str, Any]]:
    """Yield the names of the steps, and what JAX lowers of each."""
    for model, (forward, shapes) in MODELS.items():
        for name, (update, dtype, state_of) in OPTIMIZERS.items():
            params = {key: jax.ShapeDtypeStruct(shape, dtype) for key, shape in shapes.items()}
            state = {key: state_of(each) for key, each in params.items()}
            batch = jax.ShapeDtypeStruct((32, SIZE), dtype)
            step = jax.jit(partial(_step, forward, update), donate_argnums=(0, 1))
            yield f"{model}, {name}", step.lower(params, state, batch, batch)


def _step(forward: Any, update: Any, params: Any, state: Any, x: Array, y: Array) -> tuple[Any, Any, Array]:
    def loss_of(p: Any) -> Array:
        return jnp.mean(jnp.square((forward(p, x) - y).astype(jnp.float32)))

    loss, gradients = jax.value_and_grad(loss_of)(params)
    moved = {key: update(params[key], gradients[key], state[key]) for key in params}
    return {key: each[0] for key, each in moved.items()}, {key: each[1] for key, each in moved.items()}, loss
