"""Functions of JAX for two devices: by `shard_map`, and partitioned by XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import linalg
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

#: Small integers, of which sums and products are exact.
X = np.random.default_rng(0).integers(-4, 5, (8, 4)).astype(np.float32)


def square(x: Any) -> Any:
    return x.T @ jnp.roll(x, 1, 0) + 3 * jnp.eye(4)


def definite(x: Any) -> Any:
    return x.T @ x + 8 * jnp.eye(4)


def _grad(function: Callable[[Any], Any], x: Any) -> Any:
    return jax.grad(lambda y: function(y).sum())(x)


clipped = jax.custom_vjp(lambda x: x * x)
clipped.defvjp(lambda x: (x * x, x), lambda x, g: (jnp.clip(2 * x * g, -3, 3),))


steep = jax.custom_jvp(lambda x: 2 * x)
steep.defjvp(lambda x, t: (2 * x[0], 5 * t[0]))


def collatz(x: Any) -> Any:
    return lax.while_loop(
        lambda s: (s[0] < 20) & (s[1].max() > 1),
        lambda s: (s[0] + 1, jnp.where(s[1] % 2 == 0, s[1] // 2, 3 * s[1] + 1), s[2] | (s[1] > 9)),
        (0, jnp.abs(x.astype(jnp.int32)) + 1, x > 9),
    )


CONTROL: dict[str, Callable[[Any], Any]] = {
    "while_loop": lambda x: lax.while_loop(lambda y: y.sum() < 99, lambda y: y + 1, x),
    "while_loop of three": collatz,
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2 - i, x),
    "fori_loop to a bound in the data": lambda x: lax.fori_loop(0, x.max().astype(int), lambda i, y: y + i, x),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    "scan in reverse": lambda x: lax.scan(lambda c, row: (c - row, c.max()), x[0], x, reverse=True),
    "scan, unrolled": lambda x: lax.scan(lambda c, row: (row - c, c), x[0], x, unroll=3),
    "scan without inputs": lambda x: lax.scan(lambda c, _: (c + 1, c[0, 0]), x, None, length=4),
    "scan in scan": lambda x: lax.scan(lambda c, row: lax.scan(lambda a, b: (a + b, a - b), c, row), 0.0, x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: -y, x),
    "switch": lambda x: lax.switch(jnp.abs(x[0, 0]).astype(int) % 3, [jnp.negative, jnp.square, jnp.abs], x),
    "while_loop in cond": lambda x: lax.cond(
        x[0, 0] > 1, lambda y: lax.while_loop(lambda z: z.max() < 50, lambda z: z * 2 + 1, y), jnp.negative, x
    ),
    "cond in scan": lambda x: lax.scan(
        lambda c, row: (lax.cond(row[0] > 0, jnp.add, jnp.subtract, c, row), c), x[0], x
    ),
    "map": lambda x: lax.map(lambda row: (row.sum(), row[::-1]), x),
    "map in batches": lambda x: lax.map(lambda row: row * row.sum(), x, batch_size=2),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
    "associative_scan of matrices": lambda x: lax.associative_scan(jnp.matmul, x.reshape(-1, 2, 2), reverse=True),
    "grad of scan": partial(_grad, lambda y: lax.scan(lambda c, row: (c * 2 + row, c * row), y[0], y)[1]),
    "grad of fori_loop": partial(_grad, lambda y: lax.fori_loop(0, 2, lambda _, z: z * z - y, y)),
    "grad of cond": partial(_grad, lambda y: lax.cond(y[0, 0] > 0, lambda z: z * z, lambda z: 3 * z, y)),
    "custom_vjp in scan": partial(_grad, lambda y: lax.scan(lambda c, row: (clipped(c) - row, c), y[0], y)[1]),
    "custom_jvp": lambda x: jax.jvp(lambda y: steep(y).sum(0), (x,), (x,)),
    "checkpoint": partial(_grad, jax.checkpoint(lambda y: lax.map(lambda row: row * row * row[0], y))),
    "custom_root": lambda x: lax.custom_root(
        lambda y: y - x.sum(0), x[0], lambda f, y: y - f(y), lambda g, y: y / g(jnp.ones_like(y))
    ),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda y: 2 * y, x, lambda _, y: y / 2, symmetric=True
    ),
    "vmap of while_loop": jax.vmap(lambda row: lax.while_loop(lambda y: y.sum() < 20, lambda y: y + 1, row)),
    "optimization_barrier": lambda x: lax.optimization_barrier((x * 2, x.sum(0))),
    "jit in jit": lambda x: jax.jit(lambda y: y + 1)(x) * jax.jit(lambda y: y + 1)(x * 2),
}  # fmt: skip
LINEAR_ALGEBRA: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: linalg.cholesky(definite(x)),
    "cholesky_update": lambda x: linalg.cholesky_update(jnp.linalg.cholesky(definite(x)).T, x[0]),
    "grad of cholesky": partial(_grad, lambda x: jnp.linalg.cholesky(definite(x))),
    "qr, full": lambda x: linalg.qr(x[:3].T),
    "qr, reduced": lambda x: linalg.qr(x, full_matrices=False),
    "qr, pivoted": lambda x: linalg.qr(square(x), pivoting=True),
    "householder_product": lambda x: linalg.householder_product(square(x), x[0] / 9),
    "ormqr": lambda x: linalg.ormqr(square(x), x[0] / 9, x.T),
    "svd": lambda x: linalg.svd(x, full_matrices=False),
    "svd, full": lambda x: linalg.svd(x[:3], full_matrices=True),
    "svd, values": lambda x: linalg.svd(x, compute_uv=False),
    "eigh": lambda x: linalg.eigh(definite(x)),
    "grad of eigh": partial(_grad, lambda x: linalg.eigh(definite(x))[1]),
    "eig": lambda x: linalg.eig(square(x)),
    "lu": lambda x: linalg.lu(square(x)),
    "lu_pivots_to_permutation": lambda x: linalg.lu_pivots_to_permutation(linalg.lu(square(x))[1], 4),
    "triangular_solve": lambda x: linalg.triangular_solve(definite(x), x, lower=True),
    "solve": lambda x: jnp.linalg.solve(square(x), x.T),
    "cho_solve": lambda x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(definite(x)), x.T),
    "inv": lambda x: jnp.linalg.inv(square(x)),
    "det": lambda x: jnp.linalg.det(square(x)),
    "slogdet": lambda x: tuple(jnp.linalg.slogdet(square(x))),
    "lstsq": lambda x: jnp.linalg.lstsq(x, x[:, 0])[0],
    "pinv": lambda x: jnp.linalg.pinv(x),
    "expm": lambda x: jax.scipy.linalg.expm(square(x) / 16),
    "hessenberg": lambda x: linalg.hessenberg(square(x)),
    "schur": lambda x: linalg.schur(square(x)),
    "tridiagonal": lambda x: linalg.tridiagonal(definite(x)),
    "tridiagonal_solve": lambda x: linalg.tridiagonal_solve(
        x[0].at[0].set(0), 20 + x[1], x[2].at[-1].set(0), x[:4, :].T
    ),
    "symmetric_product": lambda x: linalg.symmetric_product(x.T, definite(x), symmetrize_output=True),
    "qdwh": lambda x: linalg.qdwh(square(x))[:2],
    "batched": lambda x: jnp.linalg.cholesky(x[:, :, None] * x[:, None, :] + 8 * jnp.eye(4)),
    "of complex": lambda x: linalg.eigh(definite(x) + 1j * (square(x) - square(x).T)),
}  # fmt: skip
OTHERS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: lax.sort((x, jnp.arange(x.size).reshape(x.shape)), dimension=0, num_keys=1),
    "argsort": lambda x: jnp.argsort(x, axis=1, descending=True),
    "top_k": lambda x: lax.top_k(x.T, 3),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "gather": lambda x: x[jnp.abs(x[:, 0]).astype(int) % 4],
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.abs(x).astype(int) % 4, 0),
    "scatter": lambda x: x.at[jnp.abs(x[:, 0]).astype(int) % 4].add(x * 2),
    "segment_sum": lambda x: jax.ops.segment_sum(x, jnp.abs(x[:, 0]).astype(int), 5),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (x[0, 0].astype(int), 1), (2, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2] * 3, (x[0, 0].astype(int), 0)),
    "conv": lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "conv with groups": lambda x: lax.conv_general_dilated(
        x[None], x[:, None, :3], (1,), "SAME", feature_group_count=x.shape[0]
    ),
    "random bits": lambda x: jax.random.bits(jax.random.key(x[0, 0].astype(int)), x.shape),
    "random normal": lambda x: x + jax.random.normal(jax.random.key(3), x.shape),
    "rng_bit_generator": lambda x: jax.random.bits(jax.random.key(7, impl="rbg"), x.shape) ^ (x > 0),
    "fft": lambda x: jnp.fft.fft(x, axis=0),
    "irfft of rfft": lambda x: jnp.fft.irfft(jnp.fft.rfft(x)),
    "cumsum": lambda x: lax.cumsum(x, axis=0),
    "cummax in reverse": lambda x: lax.cummax(x, axis=0, reverse=True),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, axis=0),
    "reduce_window": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID"),
    "grad of reduce_window": partial(
        _grad, lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
    ),
    "dot_general": lambda x: lax.dot_general(x.astype(jnp.bfloat16), x, (((0,), (0,)), ((), ()))),
    "ragged_dot": lambda x: lax.ragged_dot(x, jnp.stack([x[:4], x[:4] * 2]), jnp.array([1, 3])),
    "reduce": lambda x: lax.reduce((x, -x), (0.0, 9.0), lambda a, b: (a[0] + b[0], lax.min(a[1], b[1])), (0,)),
    "erf_inv": lambda x: lax.erf_inv(x / 5),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int8),
    "igamma": lambda x: lax.igamma(jnp.abs(x) + 1, x * x),
}  # fmt: skip
#: Functions of the part of a device.
COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "psum": lambda x: lax.psum(x, "d"),
    "psum of a tree": lambda x: lax.psum({"a": x, "b": (x.sum(0), x.astype(int))}, "d"),
    "psum in groups": lambda x: lax.psum(x, "d", axis_index_groups=[[0], [1]]),
    "pmean": lambda x: lax.pmean(x, "d"),
    "pmax": lambda x: lax.pmax(x, "d"),
    "pmin": lambda x: lax.pmin(x, "d"),
    "all_gather": lambda x: lax.all_gather(x, "d"),
    "all_gather, tiled": lambda x: lax.all_gather(x, "d", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x[:2], "d"),
    "psum_scatter, tiled": lambda x: lax.psum_scatter(x, "d", scatter_dimension=1, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "d", [(0, 1)]),
    "pshuffle": lambda x: lax.pshuffle(x, "d", [1, 0]),
    "pswapaxes": lambda x: lax.pswapaxes(x[:2], "d", 0),
    "all_to_all": lambda x: lax.all_to_all(x[:2], "d", 0, 1),
    "all_to_all, tiled": lambda x: lax.all_to_all(x, "d", 1, 0, tiled=True),
    "ragged_all_to_all": lambda x: lax.ragged_all_to_all(
        x, jnp.zeros((8, 4)), *(jnp.array(each) for each in ([0, 2], [2, 2])),
        lax.axis_index("d") * 2 + jnp.array([0, 0]), jnp.array([2, 2]), axis_name="d",
    ),
    "axis_index": lambda x: x + lax.axis_index("d"),
    "axis_size": lambda x: x * lax.axis_size("d"),
    "psum of bool": lambda x: lax.psum(x > 0, "d"),
    "psum in while_loop": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + lax.psum(s[1], "d")), (0, x)
    ),
    "while_loop until psum": lambda x: lax.while_loop(lambda y: lax.psum(y.sum(), "d") < 99, lambda y: y + 1, x),
    "ppermute in scan": lambda x: lax.scan(lambda c, row: (lax.ppermute(c, "d", [(0, 1), (1, 0)]) + row, c), x[0], x),
    "psum in cond": lambda x: lax.cond(
        lax.psum(x[0, 0], "d") > 0, lambda y: lax.psum(y, "d"), lambda y: lax.pmax(y, "d"), x
    ),
    "all_gather in switch": lambda x: lax.switch(
        lax.psum(1, "d"), [lambda y: y, lambda y: y, lambda y: lax.all_gather(y, "d", tiled=True)[:4] * 2], x
    ),
    "grad of psum": partial(_grad, lambda x: lax.psum(x * x, "d") * x),
    "grad of all_gather": partial(_grad, lambda x: lax.all_gather(x, "d").sum(0) * x),
    "cholesky of psum": lambda x: jnp.linalg.cholesky(lax.psum(definite(x), "d")),
    "qr of all_gather": lambda x: linalg.qr(lax.all_gather(x, "d", tiled=True)),
    "scan over solve and psum": lambda x: lax.scan(
        lambda c, row: (jnp.linalg.solve(lax.psum(definite(x), "d"), c) + row, c), x[0], x
    ),
    "vmap with psum": lambda x: jax.vmap(lambda y: lax.psum(y, ("d", "i")), axis_name="i")(x),
}  # fmt: skip


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:2]), ("d",))


def by_shard_map(body: Callable[[Any], Any]) -> Any:
    def stacked(x: Any) -> Any:
        return jax.tree.map(jnp.atleast_1d, body(x))

    return jax.jit(jax.shard_map(stacked, mesh=mesh(), in_specs=P("d"), out_specs=P("d"), check_vma=False))


def by_partitioning(function: Callable[[Any], Any]) -> Any:
    return jax.jit(function, in_shardings=NamedSharding(mesh(), P("d")))


def to(x: Any, *spec: Any) -> Any:
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*spec)))


#: Functions that ask for shardings of values in between.
CONSTRAINED: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: to(to(x, "d", None).T * 2, None, "d"),
    "product": lambda x: to(x @ to(x.T, None, "d"), "d"),
    "gathered": lambda x: to(x + 1, None, None) @ x.T,
    "in while_loop": lambda x: lax.while_loop(lambda y: y.sum() < 99, lambda y: to(to(y, None, "d") + 1, "d"), x),
    "in scan": lambda x: lax.scan(lambda c, row: (to(c + row, "d"), to(c * row, None)), x[0], x),
    "in cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: to(y * 2, None, "d"), lambda y: to(-y, "d"), x),
    "cholesky in other parts": lambda x: to(jnp.linalg.cholesky(to(definite(x), "d")), None, "d"),
    "in grad": partial(_grad, lambda x: to(x * to(x, None, "d"), "d") * x),
    "shard_map in scan": lambda x: lax.scan(
        lambda c, _: (by_shard_map(lambda y: lax.psum(y, "d") + y)(c), None), x, None, length=2
    )[0],
    "shard_map of while_loop, then qr": lambda x: linalg.qr(by_shard_map(CONTROL["while_loop"])(x)),
}

EVERYWHERE: Final = {**CONTROL, **LINEAR_ALGEBRA, **OTHERS}
#: Each as a function of a whole array, compiled for both devices.
PROGRAMS: Final[dict[str, Any]] = {
    **{f"shard_map: {name}": by_shard_map(body) for name, body in (EVERYWHERE | COLLECTIVES).items()},
    **{f"jit: {name}": by_partitioning(body) for name, body in (EVERYWHERE | CONSTRAINED).items()},
}
