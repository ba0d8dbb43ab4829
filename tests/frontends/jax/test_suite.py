"""Sixty functions of JAX through all four sources: the same artifact, the same findings, and the numbers of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.export
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import optax
import pytest

import vhlo_tools as vt

M = np.linspace(-1.5, 2.0, 24, dtype=np.float32).reshape(4, 6)
P = np.linspace(0.1, 3.0, 24, dtype=np.float32).reshape(4, 6)
S = (P[:, :4] @ P[:, :4].T + 4 * np.eye(4)).astype(np.float32)
I = np.array([[3, 1], [0, 2]], np.int32)  # noqa: E741
U = np.array([1, 2, 3, 250], np.uint8)
KEY = np.array([1, 2], np.uint32)
IMAGE = np.linspace(0, 1, 2 * 8 * 8 * 3, dtype=np.float32).reshape(2, 8, 8, 3)
KERNEL = np.linspace(-1, 1, 3 * 3 * 3 * 4, dtype=np.float32).reshape(3, 3, 3, 4)

WINDOW = (1, 2, 2, 1)

Case = tuple[Callable[..., Any], tuple[Any, ...]]
ADAM: Final = optax.adam(1e-2)
# A jax.export file needs the types of its arguments registered.
for each in (optax.ScaleByAdamState, optax.EmptyState):
    jax.export.register_namedtuple_serialization(each, serialized_name=f"suite.{each.__name__}")


def convolved(x: Any, k: Any, **options: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, k, padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **{"window_strides": (1, 1), **options}
    )


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / 2.0, axis=-1) @ v


def lstm(state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(jnp.tanh(h) @ jnp.ones((6, 24)) + x @ jnp.ones((6, 24)), 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(c), c), h


def loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.square(jnp.tanh(x @ w)))


FUNCTIONS: Final[dict[str, Case]] = {
    "abs_sign": (lambda x: jnp.abs(x) * jnp.sign(x), (M,)),
    "activations": (lambda x: jax.nn.gelu(x) + jax.nn.silu(x) + jax.nn.softplus(x), (M,)),
    "adam": (lambda w, s: ADAM.update(w, s), (M, ADAM.init(M))),
    "argsort": (lambda x: jnp.argsort(x, axis=1), (M,)),
    "associative_scan": (lambda x: jax.lax.associative_scan(jnp.add, x), (M,)),
    "attention": (attention, (M, M, M)),
    "batch_norm": (lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), (M,)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16) * 2, (M,)),
    "bits": (lambda x: (x << 2) | (x >> 1) ^ 3, (I,)),
    "cholesky": (jnp.linalg.cholesky, (S,)),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), (M,)),
    "complex": (lambda x: jnp.abs(x + 1j * x), (M,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], axis=1), (M, P)),
    "cond": (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (M,)),
    "conv": (convolved, (IMAGE, KERNEL)),
    "conv_dilated": (lambda x, k: convolved(x, k, rhs_dilation=(2, 2)), (IMAGE, KERNEL)),
    "conv_strided": (lambda x, k: convolved(x, k, window_strides=(2, 2)), (IMAGE, KERNEL)),
    "cumprod": (lambda x: jnp.cumprod(x, axis=1), (P,)),
    "cumsum": (lambda x: jnp.cumsum(x, axis=0), (M,)),
    "dictionary": (lambda x: {"a": x, "b": [x + 1, ()]}, (M,)),
    "digamma": (lambda x: jsp.special.digamma(x) + jsp.special.gammaln(x), (P,)),
    "dot_general": (lambda x, y: jnp.einsum("ij,kj->ik", x, y), (M, P)),
    "dropout_key": (lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0), (KEY, M)),
    "dynamic_slice": (lambda x, i: jax.lax.dynamic_slice(x, (i[0, 1], i[1, 0]), (2, 3)), (M, I)),
    "dynamic_update": (lambda x, i: jax.lax.dynamic_update_slice(x, x[:2, :2], (i[0, 1], i[1, 0])), (M, I)),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], (S,)),
    "erf": (lambda x: jsp.special.erf(x) + jsp.special.erfc(x) * 2, (M,)),
    "erf_inv": (lambda x: jsp.special.erfinv(x / 4), (P,)),
    "exp_log": (lambda x: jnp.log(jnp.exp(x) + 1) + jnp.expm1(x) + jnp.log1p(x), (P,)),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), (M,)),
    "float64_free": (lambda x: x.astype(jnp.float16).astype(jnp.float32), (M,)),
    "fori_loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 1.5 + i, x), (M,)),
    "gather": (lambda x, i: x[i[:, 0], i[:, 1]], (M, I)),
    "grad": (jax.grad(loss), (np.ones((6, 2), np.float32), M)),
    "hessian": (jax.hessian(lambda v: jnp.sum(v**3)), (P[0],)),
    "inverse": (jnp.linalg.inv, (S,)),
    "iota": (lambda x: x + jnp.arange(6) * jnp.arange(4)[:, None], (M,)),
    "jvp": (lambda x: jax.jvp(jnp.tanh, (x,), (x,))[1], (M,)),
    "layer_norm": (lambda x: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5), (M,)),
    "log_softmax": (lambda x: jax.nn.log_softmax(x), (M,)),
    "logsumexp": (lambda x: jsp.special.logsumexp(x, axis=1), (M,)),
    "lstm": (lambda x: jax.lax.scan(lstm, (x[0] * 0, x[0] * 0), x), (M,)),
    "lu_solve": (lambda a, b: jnp.linalg.solve(a, b), (S, P[:, :2])),
    "max_pool": (
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        (IMAGE,),
    ),
    "one_hot": (lambda i: jax.nn.one_hot(i, 5), (I,)),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), mode="reflect"), (M,)),
    "power": (lambda x: x**2.5 + jnp.power(x, 3) + jax.lax.rsqrt(x) + jnp.cbrt(x), (P,)),
    "qr": (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), (S,)),
    "random_normal": (lambda k: jax.random.normal(k, (3, 3)), (KEY,)),
    "random_permutation": (lambda k, x: jax.random.permutation(k, x), (KEY, M)),
    "reduce_many": (lambda x: (x.sum(), x.max(0), x.argmin(1), x.prod(), jnp.any(x > 1)), (M,)),
    "remat": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(y).sum())(x)), (M,)),
    "round": (lambda x: jnp.round(x) + jnp.floor(x) + jnp.ceil(x), (M,)),
    "scatter_add": (lambda x, i: x.at[i[:, 0], i[:, 1]].add(2.0), (M, I)),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0, 2]), 3), (M,)),
    "sort_two": (lambda x, y: jax.lax.sort((x, y), num_keys=1), (M, P)),
    "switch": (lambda i, x: jax.lax.switch(i[0, 0], [jnp.sin, jnp.cos, jnp.tanh, jnp.exp], x), (I, M)),
    "top_k": (lambda x: jax.lax.top_k(x, 3), (M,)),
    "trigonometry": (lambda x: jnp.tan(x) + jnp.arctan2(x, 2.0) + jnp.sinh(x) + jnp.arcsinh(x), (M,)),
    "triangular_solve": (lambda a, b: jsp.linalg.solve_triangular(a, b, lower=True), (S, P[:, :2])),
    "uint8": (lambda x: (x // 3, x % 7, x + 10), (U,)),
    "vmap": (jax.vmap(lambda x: jnp.outer(x, x).sum(0)), (M,)),
    "while_loop": (lambda x: jax.lax.while_loop(lambda c: c.max() < 50, lambda c: c * 2 + 1, x), (P,)),
}


def test_there_are_sixty() -> None:
    assert len(FUNCTIONS) >= 60


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_artifact_and_numbers_from_every_source(name: str) -> None:
    fn, arguments = FUNCTIONS[name]
    jitted = jax.jit(fn, keep_unused=True)
    exported = jax.export.export(jitted)(*arguments)
    first, *others = (
        vt.serialize(source, "1.10.0")
        for source in (exported, jitted.lower(*arguments), exported.mlir_module(), bytes(exported.serialize()))
    )
    for other in others:
        assert vt.diff(first, other) == []
        assert [each.message for each in other.findings] == [each.message for each in first.findings]
    results = vt.run(first, [np.asarray(each) for each in jax.tree.leaves(arguments)])
    expected = jax.tree.leaves(jitted(*arguments))
    assert len(results) == len(expected)
    for one, another in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, another, rtol=2e-4, atol=2e-5)
