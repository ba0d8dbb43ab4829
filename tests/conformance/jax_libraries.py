"""Programs of JAX's libraries: exported, moved to the oldest version that they allow, run, and compared with JAX.

`python tests/conformance/jax_libraries.py [--only REGEX]`, in an environment with this package and flax, optax,
equinox, diffrax, optimistix, lineax, dm-haiku, numpyro, blackjax, jaxopt and distrax. Prints what became of each
program; the exit code is 1 if one differs, or is refused without standing in `REFUSED`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

# Otherwise equinox reports failures through callbacks, which JAX does not export; and two devices.
os.environ.setdefault("EQX_ON_ERROR", "nan")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import blackjax
import diffrax
import distrax
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.export
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.spatial.transform
import jaxopt
import lineax
import numpy as np
import numpyro.distributions as dist
import optax
import optimistix
from flax import nnx
from framework_programs import NO_EXPORT, Outcome, became, main
from jax import lax
from jax.experimental import sparse
from numpyro.infer.util import log_density

import vhlo_tools as vt

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
KEY: Final = jax.random.PRNGKey(0)
RNG: Final = np.random.default_rng(0)
X: Final = RNG.normal(size=(4, 8)).astype(np.float32)
IMAGES: Final = RNG.normal(size=(2, 8, 8, 3)).astype(np.float32)
TOKENS: Final = RNG.integers(0, 20, (2, 6)).astype(np.int32)
SEQUENCES: Final = RNG.normal(size=(2, 6, 8)).astype(np.float32)
SPD: Final = (lambda m: (m @ m.T + 5 * np.eye(5)).astype(np.float32))(RNG.normal(size=(5, 5)))
B: Final = RNG.normal(size=5).astype(np.float32)
#: What no artifact, or no engine, can have, and why.
REFUSED: Final[dict[str, str]] = {}

CASES: dict[str, Callable[[], Case]] = {}


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def added(make: Callable[[], Any]) -> Callable[[], Any]:
        def made() -> Case:
            function, *args = make()
            options = args.pop() if args and isinstance(args[-1], dict) and args[-1].keys() <= {"symbols"} else {}
            return function, tuple(args), options

        CASES[name] = made
        return make

    return added


def of_linen(name: str, module: nn.Module, inputs: Any, **options: Any) -> None:
    def make() -> Any:
        return lambda v, x: module.apply(v, x, **options), module.init(KEY, inputs), inputs

    case(f"flax {name}")(make)


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(3)(nn.gelu(nn.LayerNorm()(nn.Dense(16)(x))))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.max_pool(nn.relu(nn.Conv(4, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.avg_pool(nn.relu(nn.ConvTranspose(4, (3, 3), (2, 2))(x)), (2, 2))
        return nn.Dense(5)(x.reshape(x.shape[0], -1))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(num_heads=2)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(8)(nn.silu(nn.Dense(16)(nn.RMSNorm()(x))))


class Normed(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(2)(nn.BatchNorm(use_running_average=False)(nn.Dense(8)(x)))


of_linen("mlp", Mlp(), X)
of_linen("cnn", Cnn(), IMAGES)
of_linen("transformer block", Block(), SEQUENCES)
of_linen("lstm", nn.RNN(nn.OptimizedLSTMCell(5)), SEQUENCES)
of_linen("gru", nn.RNN(nn.GRUCell(5)), SEQUENCES)
of_linen("embedding", nn.Embed(20, 7), TOKENS)
of_linen("group norm", nn.GroupNorm(num_groups=2), SEQUENCES)
of_linen("batch norm, in training", Normed(), X, mutable=["batch_stats"])


@case("flax dropout of a given key")
def _() -> Any:
    module = nn.Dropout(0.5, deterministic=False)
    return lambda key, x: module.apply({}, x, rngs={"dropout": key}), KEY, X


@case("nnx mlp")
def _() -> Any:
    graph, state = nnx.split(
        nnx.Sequential(nnx.Linear(8, 4, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(4, 2, rngs=nnx.Rngs(1)))
    )
    pure = jax.tree.map(lambda each: each, nnx.to_pure_dict(state))

    def function(values: Any, x: Any) -> Any:
        copy = jax.tree.map(lambda each: each, state)
        nnx.replace_by_pure_dict(copy, values)
        return nnx.merge(graph, copy)(x)

    return function, pure, X


def of_optax(name: str, optimizer: Any) -> None:
    def make() -> Any:
        variables = Mlp().init(KEY, X)

        def step(variables: Any, state: Any, x: Any, labels: Any) -> Any:
            def loss(variables: Any) -> Any:
                return optax.softmax_cross_entropy_with_integer_labels(Mlp().apply(variables, x), labels).mean()

            value, gradients = jax.value_and_grad(loss)(variables)
            updates, state = optimizer.update(gradients, state, variables)
            return optax.apply_updates(variables, updates), state, value

        return step, variables, optimizer.init(variables), X, np.array([0, 2, 1, 1], np.int32)

    case(f"optax {name}")(make)


for _name in ("sgd", "adam", "adamw", "lion", "rmsprop", "lamb", "adafactor", "nadam", "yogi", "radam", "novograd"):
    of_optax(_name, getattr(optax, _name)(1e-2))
of_optax(
    "sgd, clipped, on a schedule",
    optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(optax.cosine_decay_schedule(0.1, 10), 0.9)),
)
of_optax("accumulated steps", optax.MultiSteps(optax.adam(1e-2), 2))


@case("optax ctc loss")
def _() -> Any:
    logits = RNG.normal(size=(2, 6, 5)).astype(np.float32)
    labels = np.array([[1, 2, 0], [3, 3, 4]], np.int32)
    padding = np.zeros((2, 6), np.float32), np.array([[0, 0, 1], [0, 0, 0]], np.float32)
    return lambda x, y, p, q: optax.ctc_loss(x, p, y, q), logits, labels, *padding


def of_equinox(name: str, module: Any, *inputs: Any) -> None:
    def make() -> Any:
        arrays, static = eqx.partition(module, eqx.is_array)
        return lambda a, *x: eqx.combine(a, static)(*x), arrays, *inputs

    case(f"equinox {name}")(make)


of_equinox("mlp", eqx.nn.MLP(8, 2, 16, 2, key=KEY), X[0])
of_equinox("convolution", eqx.nn.Conv2d(3, 4, 3, key=KEY), IMAGES[0].transpose(2, 0, 1))
of_equinox("gru cell", eqx.nn.GRUCell(8, 5, key=KEY), X[0], np.zeros(5, np.float32))
of_equinox("attention", eqx.nn.MultiheadAttention(2, 8, key=KEY), *[SEQUENCES[0]] * 3)
of_equinox("layer norm", eqx.nn.LayerNorm(8), X[0])


def decay(t: Any, y: Any, args: Any) -> Any:
    return -args * y + jnp.sin(t)


def of_diffrax(name: str, solver: Any, controller: Any = None) -> None:
    def make() -> Any:
        def solve(y: Any, rate: Any) -> Any:
            return diffrax.diffeqsolve(
                diffrax.ODETerm(decay),
                solver,
                0.0,
                1.0,
                0.1,
                y,
                rate,
                stepsize_controller=controller or diffrax.ConstantStepSize(),
                saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 4)),
                max_steps=256,
            ).ys

        return solve, B, np.float32(1.5)

    case(f"diffrax {name}")(make)


of_diffrax("tsit5", diffrax.Tsit5())
of_diffrax("dopri5, adaptive", diffrax.Dopri5(), diffrax.PIDController(rtol=1e-4, atol=1e-6))
of_diffrax("implicit", diffrax.Kvaerno3(), diffrax.PIDController(rtol=1e-4, atol=1e-6))


@case("diffrax brownian motion")
def _() -> Any:
    def solve(key: Any, y: Any) -> Any:
        path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, shape=(5,), key=key, levy_area=diffrax.BrownianIncrement)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, a: -y),
            diffrax.ControlTerm(lambda t, y, a: lineax.DiagonalLinearOperator(0.1 * jnp.ones(5)), path),
        )
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.1, y).ys

    return solve, KEY, B


def residual(x: Any, matrix: Any) -> Any:
    return matrix @ x + 0.1 * x**3 - 1


@case("optimistix newton")
def _() -> Any:
    return lambda x, m: optimistix.root_find(residual, optimistix.Newton(1e-5, 1e-5), x, m).value, B, SPD


@case("optimistix least squares")
def _() -> Any:
    solver = optimistix.LevenbergMarquardt(1e-5, 1e-5)
    return lambda x, m: optimistix.least_squares(residual, solver, x, m).value, B, SPD


@case("optimistix bfgs")
def _() -> Any:
    solver = optimistix.BFGS(1e-5, 1e-5)
    return lambda x, m: optimistix.minimise(lambda x, m: jnp.sum(residual(x, m) ** 2), solver, x, m).value, B, SPD


for _name, _solver in {
    "cg": lineax.CG(1e-6, 1e-6),
    "gmres": lineax.GMRES(1e-6, 1e-6),
    "lu": lineax.LU(),
    "qr": lineax.QR(),
    "svd": lineax.SVD(),
    "cholesky": lineax.Cholesky(),
}.items():

    @case(f"lineax {_name}")
    def _(solver: Any = _solver) -> Any:
        tags = lineax.positive_semidefinite_tag
        return lambda m, b: lineax.linear_solve(lineax.MatrixLinearOperator(m, tags), b, solver).value, SPD, B


BATCH_NORM: Final = {"decay_rate": 0.9, "create_scale": True, "create_offset": True}


def of_haiku(name: str, function: Callable[[Any], Any], inputs: Any) -> None:
    def make() -> Any:
        made = hk.transform_with_state(function)
        parameters, state = made.init(KEY, inputs)
        return lambda p, s, x: made.apply(p, s, None, x), parameters, state, inputs

    case(f"haiku {name}")(make)


of_haiku("mlp", lambda x: hk.nets.MLP([6, 3])(x), X)
of_haiku(
    "residual block",
    lambda x: hk.nets.ResNet.BlockGroup(4, 1, 1, BATCH_NORM, False, False, True, "g")(x, True, False),
    IMAGES,
)
of_haiku("rnn", lambda x: hk.dynamic_unroll(hk.LSTM(4), x, hk.LSTM(4).initial_state(2), time_major=False)[0], SEQUENCES)


def model(x: Any, y: Any = None) -> None:
    import numpyro

    w = numpyro.sample("w", dist.Normal(jnp.zeros(8), 1).to_event(1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    numpyro.sample("y", dist.StudentT(4.0, x @ w, scale), obs=y)


@case("numpyro log density and its gradient")
def _() -> Any:
    def density(w: Any, x: Any, y: Any) -> Any:
        return jax.value_and_grad(lambda w: log_density(model, (x, y), {}, {"w": w, "scale": jnp.float32(0.5)})[0])(w)

    return density, X[0], X, B[:4]


for _name, _distribution in {
    "gamma": dist.Gamma(2.0, 1.5),
    "dirichlet": dist.Dirichlet(jnp.ones(3)),
    "categorical": dist.Categorical(jnp.ones(4) / 4),
    "multivariate normal": dist.MultivariateNormal(jnp.zeros(5), SPD),
    "negative binomial": dist.NegativeBinomial2(3.0, 2.0),
}.items():

    @case(f"numpyro samples of {_name}")
    def _(distribution: Any = _distribution) -> Any:
        return lambda key: (lambda s: (s, distribution.log_prob(s)))(distribution.sample(key, (4,))), KEY


@case("blackjax hmc step")
def _() -> Any:
    kernel = blackjax.hmc(lambda x: -0.5 * x @ SPD @ x, 0.05, jnp.ones(5), 4)
    return lambda key, x: kernel.step(key, kernel.init(x))[0].position, KEY, B


@case("blackjax nuts step")
def _() -> Any:
    kernel = blackjax.nuts(lambda x: -0.5 * x @ SPD @ x, 0.05, jnp.ones(5))
    return lambda key, x: kernel.step(key, kernel.init(x))[0].position, KEY, B


@case("jaxopt lbfgs")
def _() -> Any:
    solver = jaxopt.LBFGS(lambda x, m: jnp.sum(residual(x, m) ** 2), maxiter=10)
    return lambda x, m: solver.run(x, m).params, B, SPD


@case("jaxopt projected gradient")
def _() -> Any:
    solver = jaxopt.ProjectedGradient(
        lambda x, m: jnp.sum((m @ x - 1) ** 2), jaxopt.projection.projection_simplex, maxiter=10
    )
    return lambda x, m: solver.run(x, hyperparams_proj=1.0, m=m).params, B, SPD


@case("distrax flow")
def _() -> Any:
    def density(x: Any, shift: Any) -> Any:
        flow = distrax.Chain([distrax.Lambda(jnp.tanh), distrax.ScalarAffine(shift, jnp.full(5, 2.0))])
        return distrax.Transformed(
            distrax.MultivariateNormalDiag(jnp.zeros(5), jnp.ones(5)), distrax.Block(flow, 1)
        ).log_prob(x)

    return density, B / 10, B / 100


OF_JAX: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "convolve2d": (jsp.signal.convolve2d, (X, X[:3, :3])),
    "stft": (lambda x: jsp.signal.stft(x, nperseg=4)[2], (X[0],)),
    "fft of two dimensions": (jnp.fft.rfft2, (X,)),
    "incomplete gamma and beta": (
        lambda x: (jsp.special.gammainc(x, 2.0), jsp.special.betainc(x, 1.5, 0.3)),
        (np.abs(X) + 0.1,),
    ),
    "zeta and polygamma": (lambda x: (jsp.special.zeta(x + 2, 1.5), jsp.special.polygamma(1, x)), (np.abs(X) + 0.5,)),
    "bessel": (lambda x: (jsp.special.i0e(x), jsp.special.i1(x)), (X,)),
    "expm": (jsp.linalg.expm, (SPD / 10,)),
    "sqrtm of eigenvalues": (lambda m: (lambda w, v: (v * jnp.sqrt(w)) @ v.T)(*jnp.linalg.eigh(m)), (SPD,)),
    "pseudoinverse and rank": (lambda m: (jnp.linalg.pinv(m), jnp.linalg.matrix_rank(m)), (X,)),
    "map_coordinates": (
        lambda x: jsp.ndimage.map_coordinates(x, [jnp.linspace(0, 2, 5), jnp.linspace(0, 6, 5)], 1),
        (X,),
    ),
    "resize": (lambda x: jax.image.resize(x, (2, 12, 5, 3), "cubic"), (IMAGES,)),
    "sparse product": (lambda m, x: sparse.BCOO.fromdense(m, nse=32) @ x, (X, np.eye(8, dtype=np.float32))),
    "minimize": (
        lambda x, m: (
            jsp.optimize.minimize(lambda x: jnp.sum(residual(x, m) ** 2), x, method="BFGS", options={"maxiter": 5}).x
        ),
        (B, SPD),
    ),
    "rotations": (lambda x: jsp.spatial.transform.Rotation.from_rotvec(x).as_matrix(), (X[:, :3],)),
    "kernel density": (lambda x: jsp.stats.gaussian_kde(x).evaluate(jnp.linspace(-1, 1, 5)), (B,)),
    "associative scan": (lambda x: lax.associative_scan(lambda a, b: a @ b, jnp.stack([x] * 5)), (SPD / 10,)),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.sin(x) * jnp.cumprod(x))), (B,)),
    "custom gradient": (jax.grad(lambda x: optax.losses.squared_error(jax.nn.logsumexp(x), 1.0)), (B,)),
    "unique": (lambda t: jnp.unique(t, size=8, fill_value=-1, return_counts=True), (TOKENS,)),
    "histogram and percentile": (lambda x: (jnp.histogram(x, 5)[0], jnp.percentile(x, 30.0)), (X,)),
}
for _name, _pair in OF_JAX.items():

    @case(f"jax {_name}")
    def _(pair: Any = _pair) -> Any:
        return pair[0], *pair[1]


# Of open sizes: the first size of these arguments is `n`

for _name, _module, _inputs in (
    ("mlp", Mlp(), X),
    ("transformer block", Block(), SEQUENCES),
    ("lstm", nn.RNN(nn.OptimizedLSTMCell(5)), SEQUENCES),
    ("cnn", Cnn(), IMAGES),
):

    @case(f"open batch: flax {_name}")
    def _(module: Any = _module, inputs: Any = _inputs) -> Any:
        return lambda v, x: module.apply(v, x), module.init(KEY, inputs), inputs, {"symbols": (1,)}


@case("open length: sorted, counted and summed")
def _() -> Any:
    return lambda x: (jnp.sort(x), jnp.cumsum(x), (x > 0).sum(), lax.top_k(x, 2)), X[0], {"symbols": (0,)}


@case("open length: normalized with its fft")
def _() -> Any:
    return lambda x: (x - x.mean()) / (x.std() + jnp.abs(jnp.roll(x, 1)).max()), X[0], {"symbols": (0,)}


# For several devices


def two_devices() -> Any:
    return jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])


def of_two(name: str, function: Callable[..., Any], inputs: Any, split: Any) -> None:
    def make() -> Any:
        mesh = two_devices()
        part = jax.sharding.PartitionSpec
        mapped = jax.shard_map(function, mesh=mesh, in_specs=part("x"), out_specs=split(part), check_vma=False)
        return jax.jit(mapped, in_shardings=jax.sharding.NamedSharding(mesh, part("x"))), inputs

    case(f"two devices: {name}")(make)


of_two(
    "mean of gradients",
    lambda x: lax.pmean(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x), "x"),
    X,
    lambda part: part(),
)
of_two(
    "normalization over both",
    lambda x: (x - lax.pmean(x.mean(), "x")) * lax.rsqrt(lax.pmean((x**2).mean(), "x")),
    X,
    lambda part: part("x"),
)
of_two(
    "ring",
    lambda x: lax.fori_loop(0, 2, lambda i, y: lax.ppermute(y, "x", [(0, 1), (1, 0)]) + x, x),
    X,
    lambda part: part("x"),
)
of_two("gathered product", lambda x: x @ lax.all_gather(x, "x", axis=0, tiled=True).T, X, lambda part: part("x"))
of_two("transposed", lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), X, lambda part: part(None, "x"))


@case("two devices: sharded training step")
def _() -> Any:
    mesh = two_devices()
    whole, rows = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in ((), ("x",)))
    variables = Mlp().init(KEY, X)

    def step(variables: Any, x: Any) -> Any:
        return jax.tree.map(
            lambda v, g: v - 0.1 * g, variables, jax.grad(lambda v: (Mlp().apply(v, x) ** 2).mean())(variables)
        )

    return jax.jit(step, in_shardings=(whole, rows)), variables, X


# What becomes of them


def outcome(make: Callable[[], Case]) -> Outcome:
    function, args, options = make()
    jitted = function if hasattr(function, "lower") else jax.jit(function, keep_unused=True)
    expected = [np.asarray(each) for each in jax.tree.leaves(jitted(*args))]
    described = list(jax.tree.map(lambda each: jax.ShapeDtypeStruct(np.shape(each), np.asarray(each).dtype), args))
    if options:
        (size,) = jax.export.symbolic_shape("n", constraints=["n >= 2", "n <= 64"])
        for number in options["symbols"]:
            shape = described[number].shape
            described[number] = jax.ShapeDtypeStruct((size, *shape[1:]), described[number].dtype)
    try:
        export = jax.export.export(jitted)(*described)
    except Exception as error:  # what JAX itself does not export
        return NO_EXPORT, str(error).partition("\n")[0][:100]
    inputs = [np.asarray(each) for each in jax.tree.leaves(args)]
    kept = [inputs[number] for number in export.module_kept_var_idx]
    return became(vt.serialize(export, allow_other_dialects=True), [(kept, expected)])


if __name__ == "__main__":
    sys.exit(main({name: partial(outcome, make) for name, make in CASES.items()}, REFUSED, __doc__))
