"""Modules of Equinox and Flax, and states of optax: as the function, as arguments, and as weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import vhlo_tools as vt
from vhlo_tools.integrations.jax import JaxProgram, export

X = jnp.linspace(0.0, 1.0, 4)


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(2)(nn.relu(nn.Dense(8)(x)))


class Nnx(nnx.Module):
    def __init__(self, rngs: Any) -> None:
        self.linear = nnx.Linear(4, 2, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, deterministic=True)

    def __call__(self, x: Any) -> Any:
        return self.dropout(self.linear(x))


DENSE = {f"params.Dense_{at}.{name}" for at in range(2) for name in ("kernel", "bias")}
MLP = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0))
LINEN, NNX = Linen(), Nnx(nnx.Rngs(0))
VARIABLES = LINEN.init(jax.random.key(0), X)
OPTIMIZER = optax.adam(1e-3)


def step(model: Any, state: Any, x: Any) -> Any:
    gradients = eqx.filter_grad(lambda model: model(x).sum())(model)
    updates, state = OPTIMIZER.update(gradients, state)
    return eqx.apply_updates(model, updates), state


def arrays(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in jax.tree.leaves(tree) if hasattr(each, "dtype")]


def compare(program: JaxProgram, fn: Callable[..., Any], *args: Any) -> None:
    given = [*arrays(args), *program.weights.values()]
    assert len(given) == len(program.arguments)
    results, expected = vt.run(program.artifact, given), arrays(fn(*args))
    assert len(results) == len(expected) == len(program.outputs)
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (MLP, (X,)),
        (lambda model, x: model(x), (MLP, X)),
        (eqx.filter_jit(lambda model, x: model(x)), (MLP, X)),
        (step, (MLP, OPTIMIZER.init(eqx.filter(MLP, eqx.is_array)), X)),
        (lambda variables, x: LINEN.apply(variables, x), (VARIABLES, X)),
        (LINEN.bind(VARIABLES), (X,)),
        (NNX, (X,)),
        (lambda model, x: model(x), (NNX, X)),
        (nnx.jit(lambda model, x: model(x)), (NNX, X)),
        (lambda state: OPTIMIZER.update(state[0].mu, state), (OPTIMIZER.init(VARIABLES),)),
    ],
)
def test_modules_and_states_as_they_are(fn: Any, args: Any) -> None:
    compare(export(fn, target="1.0.0")(*args), fn, *args)


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (MLP, {f"layers.{at}.{name}" for at in range(3) for name in ("weight", "bias")}),
        (lambda x: LINEN.apply(VARIABLES, x), {f"VARIABLES.{each}" for each in DENSE}),
        (LINEN.bind(VARIABLES), DENSE),
        (NNX, {"linear.kernel.value", "linear.bias.value"}),
    ],
)
def test_weights_of_modules_by_their_paths(fn: Any, names: set[str]) -> None:
    program = export(fn, weights="arguments", target="1.0.0")(X)
    assert set(program.weights) == names
    compare(program, fn, X)


def test_a_donated_state_is_aliased() -> None:
    state = OPTIMIZER.init(eqx.filter(MLP, eqx.is_array))
    program = export(step, donate_argnums=(0, 1))(MLP, state, X)
    aliases = program.artifact.aliases().aliases
    assert len(aliases) == len(arrays((MLP, state)))
    compare(program, step, MLP, state, X)
