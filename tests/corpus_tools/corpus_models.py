"""Functions that JAX exports for the corpus; run inside releases of JAX, under the name ``model.py``."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
V = np.arange(8, dtype=np.int32)
SQUARE = np.eye(3, dtype=np.float32) * 2


def elementwise(x):
    """Use simple functions."""
    return jnp.sin(x) * jnp.exp(-x) + jnp.tanh(x) ** 2, jnp.where(x > 1, jnp.log1p(x), jnp.expm1(x))


def special(x):
    """Use functions that become calls or long sequences of ops."""
    return jax.scipy.special.erf(x), jnp.arctan2(x, x + 1), jnp.sign(x), jnp.round(x), jnp.cbrt(x)


def normalize(x):
    """Use reductions."""
    return (x - x.mean(0)) / (x.std(0) + 1e-5), x.max(), x.argmax(1), jnp.any(x > 1), x.prod(axis=1)


def softmax(x):
    """Use a function of functions."""
    return jax.nn.softmax(x), jax.nn.gelu(x), jax.nn.relu(x)


def cumulative(x):
    """Use windows and scans."""
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x)


def sorting(v):
    """Use comparators."""
    return jnp.sort(v), jnp.argsort(-v), lax.top_k(v, 3), jnp.unique(v, size=4)


def fourier(x):
    """Use all kinds of transforms."""
    return jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft2(x), jnp.fft.ifft(x)


def indexing(x, v):
    """Use gather, scatter and slices."""
    return x[v % 3], x.at[v % 3, 1].add(2.0), x[1:, ::2], lax.dynamic_slice(x, (v[0], v[1]), (2, 2)), jnp.flip(x, 0)


def loops(x, v):
    """Use control flow."""
    y = lax.fori_loop(0, v[1], lambda i, c: c * 0.5 + i, x)
    z = lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x)
    w = lax.cond(v[0] > 0, lambda c: c + 1, lambda c: c - 1, x)
    s = lax.switch(v[1], [lambda c: c, lambda c: -c, lambda c: c * c], x)
    return y, z, w, s, lax.scan(lambda c, a: (c + a, c * a), x[0], x)


def convolve(x):
    """Use convolution, pooling and padding."""
    image = x.reshape(1, 1, 3, 4)
    kernel = jnp.ones((2, 1, 2, 2), jnp.float32)
    pooled = lax.reduce_window(image, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 1, 1), "SAME")
    return lax.conv(image, kernel, (1, 1), "SAME"), pooled, jnp.pad(x, ((1, 0), (2, 3)))


def attention(x):
    """Use products of several dimensions, and their derivative."""

    def loss(w):
        scores = jax.nn.softmax(jnp.einsum("ij,kj->ik", x, w))
        return jnp.sum((scores @ w) ** 2)

    return jax.value_and_grad(loss)(x)


def triangular(a, x):
    """Use linear algebra of the compiler."""
    return lax.linalg.triangular_solve(a, x, left_side=True, lower=True), a @ a, jnp.trace(a), jnp.linalg.norm(a)


def cholesky(a):
    """Use linear algebra of LAPACK."""
    return jnp.linalg.cholesky(a)


def eigen(a):
    """Use more of LAPACK."""
    return jnp.linalg.eigh(a), jnp.linalg.qr(a)


def randomness(v):
    """Use keys."""
    key = jax.random.PRNGKey(v[0])
    return jax.random.normal(key, (4,)), jax.random.permutation(key, v), jax.random.randint(key, (3,), 0, 9)


def narrow(x):
    """Use narrow types."""
    half = x.astype(jnp.bfloat16)
    return (
        half @ half.T,
        x.astype(jnp.float16),
        x.astype(jnp.int8),
        x.astype(jnp.float8_e4m3fn),
        (x > 1).astype(jnp.uint4),
    )


def complexes(x):
    """Use complex numbers."""
    z = x + 1j * x
    return z * z.conj(), jnp.abs(z), jnp.exp(z), z.real


def bits(v):
    """Use integers."""
    return v << 2, v >> 1, v & 3, v ^ 5, lax.population_count(v), lax.clz(v), v // 3, v % 3, ~v


def donated(x, v):
    """Update an argument in place."""
    return x + 1, v * 2


# Name to function, arguments, and the arguments that are donated.
MODELS = {
    "elementwise": (elementwise, (X,), ()),
    "special": (special, (X,), ()),
    "normalize": (normalize, (X,), ()),
    "softmax": (softmax, (X,), ()),
    "cumulative": (cumulative, (X,), ()),
    "sorting": (sorting, (V,), ()),
    "fourier": (fourier, (X,), ()),
    "indexing": (indexing, (X, V), ()),
    "loops": (loops, (X, V), ()),
    "convolve": (convolve, (X,), ()),
    "attention": (attention, (X,), ()),
    "triangular": (triangular, (SQUARE, X), ()),
    "cholesky": (cholesky, (SQUARE,), ()),
    "eigen": (eigen, (SQUARE,), ()),
    "randomness": (randomness, (V,), ()),
    "narrow": (narrow, (X,), ()),
    "complexes": (complexes, (X,), ()),
    "bits": (bits, (V,), ()),
    "donated": (donated, (X, V), (0, 1)),
}
# Name to the dimensions of the only argument.
SYMBOLIC = {"elementwise": "b, 4", "normalize": "a, b", "softmax": "2*b, b + 1", "cumulative": "b, 4"}
