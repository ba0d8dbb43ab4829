"""HLO as JAX prints it, before and after XLA has optimized it: read, and run with the results of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings.xla import text_of_hlo

pytestmark = pytest.mark.every_python

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "argmax": lambda x: jnp.argmax(x, axis=1),
    "bfloat16": lambda x: jax.lax.dot(
        x.astype(jnp.bfloat16), x.T.astype(jnp.bfloat16), preferred_element_type="float32"
    ),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
    "cond": lambda x: jax.lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x),
    "convolution": lambda x: jax.lax.conv(x[None, None], jnp.ones((1, 1, 3, 3)), (1, 1), "SAME"),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "dot": lambda x: x @ x.T,
    "dynamic_slice": lambda x: jax.lax.dynamic_slice(x, (x[0, 0].astype(int) + 3, 1), (2, 2)),
    "erf": jax.scipy.special.erf,
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)),
    "gather": lambda x: x[jnp.array([0, 2]), jnp.array([1, 1])],
    "nested": lambda x: {"a": [x, (x + 1,)], "b": ()},
    "nothing": lambda x: (),
    "pool": lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 1), "VALID"),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "scan": lambda x: jax.lax.scan(lambda c, y: (c + y.sum(), c), 0.0, x),
    "scatter": lambda x: x.at[jnp.array([0, 2])].add(1.0),
    "softmax": lambda x: jax.nn.softmax(x),
    "sort": lambda x: jnp.sort(x, axis=0),
    "tanh": lambda x: jnp.tanh(jnp.ones((64, 64)) @ jnp.ones((64, 64)) * x[0, 0]),
    "top_k": lambda x: jax.lax.top_k(x, 2),
    "transpose": lambda x: (x.T.reshape(3, 8) + 1).T,
    "while": lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0)),
}


def proto_of(lowered: Any) -> bytes:
    proto: bytes = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    return proto


@pytest.mark.sample(2)
@pytest.mark.parametrize("compiled", [False, True], ids=["lowered", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_function(name: str, compiled: bool) -> None:
    lowered = jax.jit(FUNCTIONS[name], keep_unused=True).lower(X)
    # `as_text("hlo")` leaves out the configurations of custom calls in jax 0.8.1.
    lowered_text = lowered.as_text("hlo") if name != "cholesky" else text_of_hlo(proto_of(lowered))
    text = lowered.compile().as_text() if compiled else lowered_text
    expected = jax.tree.leaves(jax.jit(FUNCTIONS[name])(X))
    for found in (vt.run(vt.serialize(text), [X]), vt.run(text, [X]), vt.run(text, [X], engine="xla")):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.sample(3)
@pytest.mark.parametrize("compiled", [False, True], ids=["lowered", "compiled"])
@pytest.mark.parametrize("number", [1, 5, 6, 17, 64])
def test_donations_of_any_number_of_parameters(number: int, compiled: bool) -> None:
    def step(state: dict[str, Any], x: Any) -> Any:
        return {name: each + x for name, each in state.items()}, x.sum()

    state = {f"p{at:02}": np.full(3, at, np.float32) for at in range(number)}
    lowered = jax.jit(step, donate_argnums=0).lower(state, X[0, :3])
    text = lowered.compile().as_text() if compiled else lowered.as_text("hlo")
    aliases = vt.serialize(text, "1.0.0").aliases().aliases
    assert [(each.output_index, each.parameter_number) for each in aliases] == [((at,), at) for at in range(number)]
