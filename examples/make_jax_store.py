"""`jax_store/`: what a project keeps that exports its functions with `jax.export`, one file for each.

`STORE` says how each is made and called, so that a test can hold what a file computes against the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import _emit
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export
from jax.sharding import AxisType, NamedSharding, PartitionSpec

FEATURES, HIDDEN, BATCH = 6, 4, 8

Tree = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of the store.

    Attributes:
        function: Returns the function, as `jax.jit` makes it.
        inputs: Returns arguments to call it with, the same each time.
        specs: Returns what it is exported for, where that is more than the shapes of `inputs`.
        platforms: The platforms it is exported for.
        vjp_order: How many derivatives are saved with it.
        devices: How many devices it runs on.
    """

    function: Callable[[], Any]
    inputs: Callable[[], tuple[tuple[Any, ...], Mapping[str, Any]]]
    specs: Callable[[], tuple[tuple[Any, ...], Mapping[str, Any]]] | None = None
    platforms: tuple[str, ...] = ("cpu",)
    vjp_order: int = 0
    devices: int = 1


def numbers(*shape: int, seed: int) -> np.ndarray[Any, Any]:
    """Numbers that are the same on every machine."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights() -> dict[str, Any]:
    """The weights of a network with one hidden layer."""
    return {"hidden": numbers(FEATURES, HIDDEN, seed=1), "output": numbers(HIDDEN, seed=2)}


def predict(params: Tree, x: Array) -> Array:
    """The network."""
    return jnp.tanh(x @ params["hidden"]) @ params["output"]


def loss(params: Tree, x: Array, y: Array) -> Array:
    """How far off the network is."""
    return jnp.mean((predict(params, x) - y) ** 2)


def train_step(params: Tree, momentum: Tree, x: Array, y: Array, *, rate: Array) -> tuple[Tree, Tree, Array]:
    """A step of gradient descent, in the memory of what it replaces."""
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum, value


def standardize(x: Array) -> Array:
    """The columns of any table with a mean of 0 and a variance of 1."""
    centred = x - jnp.mean(x, axis=0)
    return centred * jax.lax.rsqrt(jnp.var(x, axis=0) + 1e-6)


def gelu(x: Array) -> Array:
    """An activation that is approximated on one platform and exact on the other."""
    return jax.lax.platform_dependent(
        x,
        cpu=lambda x: 0.5 * x * (1 + jax.lax.erf(x / np.sqrt(2).astype(np.float32))),
        cuda=lambda x: jax.nn.gelu(x, approximate=True),
    )


def evaluate(params: Tree, dropout_key: Array, batch: list[Array], *, threshold: Array, step: int) -> dict[str, Array]:
    """What is reported of a batch; neither the key nor the step matters to it."""
    x, y = batch
    error = jnp.abs(predict(params, x) - y)
    return {"loss": loss(params, x, y), "within": jnp.sum(error < threshold)}


def sharded_predict(params: Tree, x: Array) -> Array:
    """The network, with the rows of a batch on two devices."""
    return predict(params, x)


def over_two_devices() -> Any:
    """`sharded_predict`, for two devices."""
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    rows, everywhere = (NamedSharding(mesh, spec) for spec in (PartitionSpec("batch"), PartitionSpec()))
    return jax.jit(sharded_predict, in_shardings=(everywhere, rows), out_shardings=rows)


def batch() -> tuple[Any, Any]:
    """Rows, and what the network should make of them."""
    return numbers(BATCH, FEATURES, seed=3), numbers(BATCH, seed=4)


def zeros() -> dict[str, Any]:
    """A momentum to begin with."""
    return {name: np.zeros_like(value) for name, value in weights().items()}


STORE: Mapping[str, Entry] = {
    "train_step": Entry(
        lambda: jax.jit(train_step, donate_argnums=(0, 1)),
        lambda: ((weights(), zeros(), *batch()), {"rate": np.float32(0.1)}),
    ),
    "standardize": Entry(
        lambda: jax.jit(standardize),
        lambda: ((numbers(5, 3, seed=5),), {}),
        specs=lambda: (export.symbolic_args_specs((jnp.zeros((1, 1)),), ("rows, columns",)), {}),
    ),
    "loss": Entry(lambda: jax.jit(loss), lambda: ((weights(), *batch()), {}), vjp_order=2),
    "gelu": Entry(lambda: jax.jit(gelu), lambda: ((numbers(7, seed=6),), {}), platforms=("cpu", "cuda")),
    "evaluate": Entry(
        lambda: jax.jit(evaluate),
        lambda: (
            (weights(), np.zeros(2, np.uint32), list(batch())),
            {"threshold": np.float32(0.5), "step": np.int32(3)},
        ),
    ),
    "sharded_predict": Entry(over_two_devices, lambda: ((weights(), batch()[0]), {}), devices=2),
}


def build(name: str) -> bytes:
    """Export a function of the store."""
    entry = STORE[name]
    arguments, keywords = (entry.specs or entry.inputs)()
    exported = export.export(entry.function(), platforms=entry.platforms)(*arguments, **keywords)
    return bytes(exported.serialize(vjp_order=entry.vjp_order))


if __name__ == "__main__":
    # Before anything asks for a device.
    jax.config.update("jax_num_cpu_devices", 2)
    _emit.main_of_many({f"jax_store/{name}.jax_export": partial(build, name) for name in STORE})
