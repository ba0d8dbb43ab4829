"""Functions of JAX for the ops of torch that torchax 0.0.13 lacks or computes otherwise, by their names.

Each is what torch computes, also of NaNs, infinities and integers that overflow. The caller gives results the element
types that torch recorded.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final


def _torchax(packet: str) -> Callable[..., Any]:
    import torch

    from vhlo_tools.integrations.torch.torchax import load_torchax

    function: Callable[..., Any] = load_torchax().all_aten_ops[getattr(torch.ops.aten, packet)].func
    return function


def _is_integer(value: Any) -> bool:
    import jax.numpy as jnp

    return isinstance(value, int) or (hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.integer))


def _pow(base: Any, exponent: Any) -> Any:
    """Integers wrap around. Of their negative powers, only those of 1 and -1 are not 0."""
    import jax
    import jax.numpy as jnp

    if not (_is_integer(base) and _is_integer(exponent)):
        return _torchax("pow")(base, exponent)
    base, exponent = jnp.broadcast_arrays(*(jnp.asarray(each, jnp.int64) for each in (base, exponent)))
    bits = exponent.dtype.itemsize * 8 - 1

    def step(bit: Any, state: Any) -> Any:
        power, square = state
        return jnp.where(exponent >> bit & 1, power * square, power), square * square

    # JAX heeds six bits of an exponent.
    power, _ = jax.lax.fori_loop(0, bits, step, (jnp.ones_like(base), base))
    inverse = jnp.where(jnp.abs(base) == 1, jnp.where(exponent % 2 == 0, 1, base), 0)
    return jnp.where(exponent < 0, inverse, power)


def _convolution(
    value: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *others: Any
) -> Any:
    """Torchax takes the channels of a transposed convolution in another order if there are several groups."""
    groups = others[-1]
    if transposed and groups > 1:
        of_groups = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        weight = of_groups.swapaxes(0, 1).reshape(weight.shape)
    return _torchax("convolution")(value, weight, bias, stride, padding, dilation, transposed, *others)


def _bounds(dtype: Any) -> tuple[Any, Any]:
    """Return the least and the greatest value of a type."""
    import jax.numpy as jnp

    if dtype == jnp.bool_:
        return False, True
    if jnp.issubdtype(dtype, jnp.integer):
        return jnp.iinfo(dtype).min, jnp.iinfo(dtype).max
    return -jnp.inf, jnp.inf


def _scatter_reduce(value: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    import jax.numpy as jnp

    if not value.ndim:
        whole = (jnp.reshape(each, 1) for each in (value, index, source))
        result = _scatter_reduce(next(whole), 0, next(whole), next(whole), reduce, include_self=include_self)
        return result.reshape(())
    index = index.reshape(-1) if not index.ndim else index
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim] = index
    at = tuple(places)
    source = source[tuple(slice(size) for size in index.shape)]
    kind = value.dtype
    if not include_self:
        starts = {"prod": 1, "amax": _bounds(kind)[0], "amin": _bounds(kind)[1]}
        value = value.at[at].set(jnp.asarray(starts.get(reduce, 0), kind))
    match reduce:
        case "prod":
            return value.at[at].multiply(source)
        case "amax":
            return value.at[at].max(source)
        case "amin":
            return value.at[at].min(source)
    total = value.at[at].add(source)
    if reduce == "sum":
        return total
    count = jnp.full(value.shape, int(include_self), jnp.int64).at[at].add(1)
    count = jnp.maximum(count, 1).astype(kind)
    return total // count if _is_integer(total) else total / count


def _to_copy(value: Any, **options: Any) -> Any:
    """Torchax takes no numbers."""
    import jax.numpy as jnp

    return _torchax("_to_copy")(jnp.asarray(value), **options)


def _complex(real: Any, imaginary: Any) -> Any:
    """Not a sum: infinity times i has a real part that is NaN."""
    import jax

    return jax.lax.complex(*jax.numpy.broadcast_arrays(real, imaginary))


def _cumulative(comparison: str, value: Any, dim: int) -> Any:
    """Return extrema and their last places. A NaN is the extremum from there on, and later ones replace it."""
    import jax
    import jax.numpy as jnp

    if not value.ndim:
        return value, jnp.zeros((), jnp.int64)
    compare = getattr(jnp, comparison)

    def later(one: Any, other: Any) -> Any:
        wins = jnp.isnan(other[0]) | (~jnp.isnan(one[0]) & compare(other[0], one[0]))
        return tuple(jnp.where(wins, b, a) for a, b in zip(one, other, strict=True))

    places = jax.lax.broadcasted_iota(jnp.int64, value.shape, dim % value.ndim)
    return jax.lax.associative_scan(later, (value, places), axis=dim % value.ndim)


def _topk(value: Any, k: int, dim: int = -1, largest: bool = True, _: bool = True) -> Any:
    """A NaN is larger than any number."""
    import jax.numpy as jnp

    if not value.ndim:
        return value, jnp.zeros((), jnp.int64)
    order = jnp.argsort(value, axis=dim, descending=largest, stable=True)
    indices = jnp.take(order, jnp.arange(k), axis=dim)
    return jnp.take_along_axis(value, indices, axis=dim), indices


def _cdist(one: Any, other: Any, p: float = 2.0, *_: Any) -> Any:
    """Torchax computes in float32, whatever the type."""
    import jax.numpy as jnp

    apart = jnp.abs(jnp.expand_dims(one, -2) - jnp.expand_dims(other, -3))
    if p == 0:
        return jnp.minimum(jnp.ceil(apart), 1).sum(-1)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return jnp.sqrt(jnp.square(apart).sum(-1))
    if p == jnp.inf:
        return apart.max(-1, initial=0)
    return jnp.power(jnp.power(apart, p).sum(-1), 1 / p)


def _cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    """The other triangle is not read."""
    import jax.numpy as jnp

    lower = jnp.tril(jnp.conj(jnp.swapaxes(factor, -1, -2)) if upper else factor)
    return jnp.linalg.inv(lower @ jnp.conj(jnp.swapaxes(lower, -1, -2)))


def _promoted(one: Any, other: Any) -> tuple[Any, Any]:
    import jax.numpy as jnp

    kind = jnp.result_type(one, other)
    first, second = jnp.broadcast_arrays(*(jnp.asarray(each).astype(kind) for each in (one, other)))
    return first, second


def _divide(dividend: Any, divisor: Any, *, rounding_mode: str | None = None) -> Any:
    """Torchax rounds quotients of integers from those of floats."""
    import jax

    if rounding_mode == "trunc" and _is_integer(dividend) and _is_integer(divisor):
        return jax.lax.div(*_promoted(dividend, divisor))
    return _torchax("div")(dividend, divisor, rounding_mode or "")


def _fmod(dividend: Any, divisor: Any) -> Any:
    import jax

    return jax.lax.rem(*_promoted(dividend, divisor))


def _kthvalue(value: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    import jax.numpy as jnp

    if not value.ndim:
        return value, jnp.zeros((), jnp.int64)
    index = jnp.take(jnp.argsort(value, axis=dim, stable=True), jnp.arange(k - 1, k), axis=dim)
    found = jnp.take_along_axis(value, index, axis=dim), index
    return found if keepdim else tuple(each.squeeze(dim) for each in found)


def _accumulated(name: str, value: Any, dim: int, *, dtype: Any = None) -> Any:
    """Sums and products of integers are of int64."""
    import jax.numpy as jnp
    from torchax.ops.mappings import t2j_dtype

    if dtype is not None:
        value = value.astype(t2j_dtype(dtype))
    elif not jnp.issubdtype(value.dtype, jnp.inexact):
        value = value.astype(jnp.int64)
    return getattr(jnp, name)(value, axis=dim) if value.ndim else value


def _added(packet: str, value: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Torchax converts results in place of operands, and its pools and norms add numbers of 16 bits as such."""
    import jax.numpy as jnp
    from torchax.ops.mappings import t2j_dtype

    is_narrow = value.dtype.itemsize == 2 and jnp.issubdtype(value.dtype, jnp.floating)
    kind = value.dtype if dtype is None else t2j_dtype(dtype)
    return _torchax(packet)(value.astype(jnp.float32 if dtype is None and is_narrow else kind), *args, **kwargs)


def _max_pool(
    value: Any, kernel: Sequence[int], stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return maxima and their first places in a plane. A NaN is a maximum, and the last one is found."""
    import jax
    import jax.numpy as jnp
    from torchax.ops.jaten import _ceil_mode_padding

    rank = len(kernel)

    def each(given: Any) -> list[int]:
        whole = [given] if isinstance(given, int) else list(given)
        return whole * rank if len(whole) == 1 else whole

    kernel, dilation, stride = each(kernel), each(dilation), each(stride or kernel)
    lead = value.ndim - rank
    shape = (1, 1, *value.shape[lead:])
    pads = _ceil_mode_padding(each(padding), shape, kernel, stride, dilation, ceil_mode)
    size = 1
    for length in value.shape[lead:]:
        size *= length
    places = jnp.broadcast_to(jnp.arange(size, dtype=jnp.int64).reshape(value.shape[lead:]), value.shape)

    def larger(one: Any, other: Any) -> Any:
        (a, i), (b, j) = one, other
        nan_a, nan_b = a != a, b != b
        keeps = jnp.where(nan_a | nan_b, nan_a & (~nan_b | (i > j)), (a > b) | ((a == b) & (i <= j)))
        return jnp.where(keeps, a, b), jnp.where(keeps, i, j)

    starts = (jnp.asarray(_bounds(value.dtype)[0], value.dtype), jnp.asarray(jnp.iinfo(jnp.int64).max))
    ones = (1,) * lead
    windows = {
        "window_dimensions": (*ones, *kernel),
        "window_strides": (*ones, *stride),
        "padding": ((0, 0),) * lead + tuple(map(tuple, pads)),
        "window_dilation": (*ones, *dilation),
    }
    maxima = jax.lax.reduce_window(value, starts[0], jax.lax.max, **windows)
    return maxima, jax.lax.reduce_window((value, places), starts, larger, **windows)[1]


def _digamma(value: Any) -> Any:
    import jax
    import jax.numpy as jnp

    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.float32)
    return jnp.where(value == 0, jnp.copysign(jnp.inf, -value), jax.scipy.special.digamma(value))


#: Beyond as many poles, :func:`_polygamma` is NaN.
_MOST_POLES: Final = 1 << 16


def _polygamma(order: int, value: Any) -> Any:
    """JAX's series holds for positive numbers, so that others are moved there, pole by pole."""
    import jax
    import jax.numpy as jnp

    if order == 0:
        return _digamma(value)
    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.float32)
    whole = jnp.full(value.shape, order, value.dtype)
    factor = (-1) ** (order + 1) * jnp.exp(jax.lax.lgamma(whole + 1))

    def move(state: Any) -> Any:
        number, moved, total = state
        is_left = moved <= 0
        return (
            number + 1,
            jnp.where(is_left, moved + 1, moved),
            total + jnp.where(is_left, factor / moved ** (order + 1), 0),
        )

    start = (0, jnp.where(value < -_MOST_POLES, jnp.nan, value), jnp.zeros_like(value))
    _, moved, total = jax.lax.while_loop(lambda state: (state[1] <= 0).any(), move, start)
    return jnp.where(moved == jnp.inf, 0, total + jax.lax.polygamma(whole, moved))


def _sort(value: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """Torch's order is stable, whether it must be or not."""
    import jax.numpy as jnp

    if not value.ndim:
        return value, jnp.zeros((), jnp.int64)
    indices = jnp.argsort(value, axis=dim, descending=descending, stable=True)
    return jnp.take_along_axis(value, indices, axis=dim), indices


def _sort_stable(value: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(value, dim, descending)


def _lgamma(value: Any) -> Any:
    import jax
    import jax.numpy as jnp

    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.float32)
    # XLA's is rounded at its zeros.
    return jnp.where((value == 1) | (value == 2), 0, jax.lax.lgamma(value))


def _incomplete_gamma(upper: bool, shape: Any, value: Any) -> Any:
    """Return the regularized function, with torch's limits."""
    import jax
    import jax.numpy as jnp

    shape, value = _promoted(shape, value)
    computed = (jax.scipy.special.gammaincc if upper else jax.scipy.special.gammainc)(shape, value)
    none, all_ = (1.0, 0.0) if upper else (0.0, 1.0)
    rules = (
        ((value < 0) | (shape < 0), jnp.nan),
        (shape == 0, jnp.where(value > 0, all_, jnp.nan)),
        (value == 0, none),
        (jnp.isinf(shape), jnp.where(jnp.isinf(value), jnp.nan, none)),
        (jnp.isinf(value), all_),
    )
    return jnp.select([condition for condition, _ in rules], [found for _, found in rules], computed)


def _sign(value: Any) -> Any:
    """Of a NaN it is 0."""
    import jax.numpy as jnp

    if value.dtype == jnp.bool_ or jnp.iscomplexobj(value):
        return value if value.dtype == jnp.bool_ else _torchax("sgn")(value)
    return jnp.where(value != value, 0, jnp.sign(value))


def _put(value: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    at = value.reshape(-1).at[index.reshape(-1)]
    return (at.add if accumulate else at.set)(source.reshape(-1)).reshape(value.shape)


def _eigh(matrix: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    """One triangle is read."""
    import jax.numpy as jnp

    lower = jnp.tril(matrix) if uplo == "L" else jnp.conj(jnp.swapaxes(jnp.triu(matrix), -1, -2))
    whole = lower + jnp.conj(jnp.swapaxes(jnp.tril(lower, -1), -1, -2))
    # LAPACK takes the diagonal for real.
    eye = jnp.eye(whole.shape[-1], dtype=bool)
    values, vectors = jnp.linalg.eigh(jnp.where(eye, whole.real, whole), symmetrize_input=False)
    return values, vectors if compute_v else jnp.zeros((0,), matrix.dtype)


def _pinv(matrix: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Singular values up to the larger of both tolerances are dropped."""
    import jax.numpy as jnp

    if hermitian:
        values, left = _eigh(matrix)
        kept, right = jnp.abs(values), jnp.conj(jnp.swapaxes(left, -1, -2))
    else:
        left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
        kept = values
    absolute = jnp.asarray(0.0 if atol is None else atol)
    if rtol is None:
        least = jnp.finfo(values.dtype).eps * max(matrix.shape[-2:])
        rtol = jnp.where(absolute > 0, 0, least)
    largest = kept.max(-1, keepdims=True, initial=0)
    bound = jnp.maximum(absolute[..., None], jnp.asarray(rtol)[..., None] * largest)
    inverse = jnp.where(kept > bound, 1 / values, 0)
    return jnp.conj(jnp.swapaxes(right, -1, -2)) * inverse[..., None, :] @ jnp.conj(jnp.swapaxes(left, -1, -2))


#: Beyond it, erfc underflows.
_FAR: Final = {4: 9.0, 8: 26.0}


def _erfcx(value: Any) -> Any:
    import jax
    import jax.numpy as jnp

    value = value if value.dtype == jnp.float64 else value.astype(jnp.float32)
    limit = _FAR[value.dtype.itemsize]
    far = jnp.maximum(value, limit)
    part = 0.5 / (far * far)
    series = 1 - part * (1 - 3 * part * (1 - 5 * part * (1 - 7 * part * (1 - 9 * part))))
    near = jnp.minimum(value, limit)
    return jnp.where(value > limit, series / (far * jnp.pi**0.5), jnp.exp(near * near) * jax.lax.erfc(near))


def _log_ndtr(value: Any) -> Any:
    """JAX takes the logarithm of what is rounded at 1."""
    import jax
    import jax.numpy as jnp

    value = value if value.dtype == jnp.float64 else value.astype(jnp.float32)
    moved = value * 0.5**0.5
    near = jnp.log1p(-jax.lax.erfc(moved) / 2)
    return jnp.where(value < 1, jnp.log(_erfcx(-moved) / 2) - moved * moved, near)


#: Of larger exponents, a zeta function is its first summand.
_LARGE: Final = 1000


def _zeta(exponent: Any, start: Any) -> Any:
    """JAX's series overflows."""
    import jax
    import jax.numpy as jnp

    exponent, start = _promoted(exponent, start)
    is_first = (exponent > _LARGE) & (start > 0) & jnp.isfinite(exponent + start)
    series = jax.scipy.special.zeta(exponent, start)
    found = jnp.where(is_first, jnp.power(start, -exponent), series)
    found = jnp.where((start <= 0) & (start == jnp.floor(start)), jnp.inf, found)
    return jnp.where(exponent < 1, jnp.nan, found)


def _exp2(value: Any) -> Any:
    """JAX multiplies first, which loses bits of narrow types."""
    import jax.numpy as jnp

    return jnp.exp2(value.astype(jnp.float32) if value.dtype.itemsize == 2 else value)


def _special(name: str, value: Any) -> Any:
    import jax

    return getattr(jax.scipy.special, name)(value)


def _solve(matrix: Any, given: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    import jax
    import jax.numpy as jnp

    def turned(value: Any) -> Any:
        return value if left else jnp.swapaxes(value, -1, -2)

    is_vector = given.ndim == 1 or (given.ndim == matrix.ndim - 1 and given.shape == matrix.shape[:-1])
    columns = given[..., None] if is_vector else turned(given)
    batch = jnp.broadcast_shapes(matrix.shape[:-2], columns.shape[:-2])
    whole = (jnp.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (turned(matrix), columns))
    found = jnp.linalg.solve(*whole)
    factors, pivots, _ = jax.lax.linalg.lu(matrix)
    info = jnp.zeros(matrix.shape[:-2], jnp.int32)
    return found[..., 0] if is_vector else turned(found), factors, pivots + 1, info


def _det(matrix: Any) -> Any:
    import jax
    import jax.numpy as jnp

    factors, pivots, _ = jax.lax.linalg.lu(matrix)
    return jnp.linalg.det(matrix), factors, pivots + 1


def _angle(value: Any) -> Any:
    """Of a negative number it is pi; of a NaN, a NaN."""
    import jax.numpy as jnp

    if jnp.iscomplexobj(value):
        return jnp.arctan2(value.imag, value.real)
    return jnp.where(value != value, value, jnp.where(value < 0, jnp.pi, 0))


def _arange(start: Any, end: Any, step: Any = 1, **_: Any) -> Any:
    """Torchax makes numbers of the bounds of a range of floats; an open size is none."""
    import jax.numpy as jnp

    return jnp.arange(start, end, step)


def _named(function: Callable[..., Any], *names: str) -> dict[str, Callable[..., Any]]:
    return dict.fromkeys((f"aten.{each}" for each in names), function)


def _with(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*first, *args, **kwargs)


JAX_REPAIRS: Final[dict[str, Callable[..., Any]]] = {
    **_named(_arange, "arange.start_step"),
    **_named(_pow, "pow.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor"),
    **_named(_convolution, "convolution.default"),
    **_named(_scatter_reduce, "scatter_reduce.two"),
    **_named(_to_copy, "_to_copy.default"),
    **_named(_complex, "complex.default"),
    **_named(_with(_cumulative, "greater_equal"), "cummax.default"),
    **_named(_with(_cumulative, "less_equal"), "cummin.default"),
    **_named(_topk, "topk.default"),
    **_named(_cdist, "cdist.default", "_cdist_forward.default"),
    **_named(_divide, "div.Tensor_mode", "div.Scalar_mode"),
    **_named(_fmod, "fmod.Scalar", "fmod.Tensor"),
    **_named(_kthvalue, "kthvalue.default"),
    **_named(_with(_accumulated, "cumsum"), "cumsum.default"),
    **_named(_with(_accumulated, "cumprod"), "cumprod.default"),
    **_named(_max_pool, "max_pool2d_with_indices.default", "max_pool3d_with_indices.default"),
    **_named(_with(_added, "sum"), "sum.default", "sum.dim_IntList"),
    **_named(_with(_added, "mean"), "mean.default", "mean.dim"),
    **_named(_with(_added, "avg_pool2d"), "avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default"),
    **_named(_with(_added, "linalg_vector_norm"), "linalg_vector_norm.default"),
    **_named(_digamma, "digamma.default"),
    **_named(_polygamma, "polygamma.default"),
    **_named(_sort, "sort.default"),
    **_named(_sort_stable, "sort.stable"),
    **_named(_put, "put.default"),
    **_named(_eigh, "_linalg_eigh.default"),
    **_named(_pinv, "linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float"),
    **_named(_erfcx, "special_erfcx.default"),
    **_named(_log_ndtr, "special_log_ndtr.default"),
    **_named(_zeta, "special_zeta.default", "special_zeta.other_scalar", "special_zeta.self_scalar"),
    **_named(_exp2, "exp2.default"),
    **_named(_with(_special, "i1"), "special_modified_bessel_i1.default"),
    **_named(_solve, "_linalg_solve_ex.default"),
    **_named(_det, "_linalg_det.default"),
    **_named(_angle, "angle.default"),
    **_named(_lgamma, "lgamma.default"),
    **_named(_with(_incomplete_gamma, False), "igamma.default"),
    **_named(_with(_incomplete_gamma, True), "igammac.default"),
    **_named(_sign, "sign.default", "sgn.default"),
    **_named(_cholesky_inverse, "cholesky_inverse.default"),
}
