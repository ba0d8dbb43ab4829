"""Whether the results of custom calls are right, by numpy."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np
from custom_call_inputs import Array, Arrays, routine_of

Attributes = dict[str, str]

_NUMBERS: Final = frozenset({"high", "k", "low", "reduction_dim", "top_k"})
_LETTER: Final = re.compile(r"(\w+) = (\w+)(?: : ui8)?")


def wrong_results(target: str, attributes: Attributes, operands: Arrays, results: Arrays) -> str | None:
    """Return what is wrong with the results of a call; ``None`` if they are right.

    Raises:
        KeyError: If nothing here computes the target.
    """
    configuration = _configuration(attributes)
    check = _CHECKS[routine_of(target)]
    inputs, outputs = [_wide(each) for each in operands], [_wide(each) for each in results]
    precision = max((_precision(each) for each in operands), default=0.0)
    matrices = target not in _ELEMENTWISE
    if any(0 in each.shape for each in inputs):
        bad = [each for each in outputs if each.size and np.any(each != 0)]
        return "something of nothing" if bad and matrices and routine_of(target) != "orgqr" else None
    if not matrices or not inputs:
        whole: str | None = check(configuration, precision, inputs, outputs)
        return whole
    return _batched(check, configuration, precision, inputs, outputs)


def _batched(check: Any, configuration: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    """Check each matrix of a batch, whose dimensions are those of the first matrix."""
    wide = max(inputs, key=lambda each: each.ndim)
    batch = wide.shape[:-2] if wide.ndim >= 2 else ()
    for index in np.ndindex(batch):
        reason = check(configuration, precision, [each[index] for each in inputs], [each[index] for each in outputs])
        if reason:
            return f"at {index}: {reason}"
    return None


def _wide(array: Array) -> Array:
    if array.dtype.kind in "iub":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _precision(array: Array) -> float:
    name = array.dtype.name
    known = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "complex64": 2**-23}
    return known.get(name, 2**-40 if array.dtype.kind in "fc" else 2**-52)


def _configuration(attributes: Attributes) -> Attributes:
    found: Attributes = {}
    found["comparison"] = attributes.get("called_computations", "")
    for name in ("backend_config", "mhlo.backend_config", "mhlo.attributes"):
        text = attributes.get(name, "")
        if text.startswith('"'):
            found["text"] = text.strip('"')
        for entry, value in _LETTER.findall(text):
            found[entry] = chr(int(value)) if value.isdecimal() and entry not in _NUMBERS else value
    return found


def _far(one: Array, other: Array, precision: float, what: str) -> str | None:
    """Return how two arrays differ, beyond what rounding explains."""
    if one.shape != other.shape:
        return f"{what}: {one.shape} and {other.shape}"
    scale = float(max(np.max(np.abs(other), initial=0), np.max(np.abs(one), initial=0), 1e-30))
    error = float(np.max(np.abs(one - other), initial=0)) / scale
    limit = 40 * precision * max(one.size, 1) ** 0.5
    return None if error <= limit else f"{what}: off by {error:.2g}, more than {limit:.2g}"


def _conj(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -1, -2))


def _householder(matrix: Array, tau: Array, size: int) -> Array:
    """Return the product of Householder reflectors, a square matrix."""
    product: Array = np.eye(size, dtype=np.complex128)
    for at in range(len(tau)):
        vector = np.zeros(size, np.complex128)
        vector[at] = 1
        vector[at + 1 :] = matrix[at + 1 :, at]
        product = product - tau[at] * np.outer(product @ vector, np.conj(vector))
    return product


def _lu(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (lu, pivots, _) = inputs, outputs
    m, n = matrix.shape
    rows = list(range(m))
    for at, pivot in enumerate(pivots - 1):
        rows[at], rows[pivot] = rows[pivot], rows[at]
    k = min(m, n)
    lower = np.tril(lu, -1)[:, :k] + np.eye(m, k)
    return _far(lower @ np.triu(lu)[:k], matrix[rows], precision, "L U")


def _qr(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix, *_), (packed, tau) = inputs, outputs
    q = _householder(packed, tau, len(packed))
    identity = _far(_conj(q) @ q, np.eye(len(q)), precision, "Q* Q")
    return identity or _far(q @ np.triu(packed), matrix, precision, "Q R")


def _pivoted_qr(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix, _), (packed, pivots, tau) = inputs, outputs
    if sorted(pivots.tolist()) != list(range(1, matrix.shape[1] + 1)):
        return "the pivots are no permutation"
    return _qr(c, precision, [matrix[:, pivots - 1]], [packed, tau])


def _product(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix, tau), (given,) = inputs, outputs
    m, n = matrix.shape
    return _far(given, _householder(matrix, tau, m)[:, :n], precision, "Q")


def _multiplied(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix, tau, right), (given,) = inputs, outputs
    q = _householder(matrix, tau, len(matrix))
    q = _conj(q) if c["transpose"] == "true" else q
    return _far(given, q @ right if c["left"] == "true" else right @ q, precision, "Q C")


def _cholesky(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (given, info) = inputs, outputs
    half = np.tril(matrix) if c["uplo"] == "L" else _conj(np.triu(matrix))
    whole = half + _conj(np.tril(half, -1))
    np.fill_diagonal(whole, np.real(np.diag(whole)))
    try:
        wanted = np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return None if info > 0 else "a factor of what is not positive definite"
    return (
        "not positive definite"
        if info
        else _far(np.tril(given) if c["uplo"] == "L" else _conj(np.triu(given)), wanted, precision, "L")
    )


def _svd(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (_, values, u, vt, info) = inputs, outputs
    wanted = np.linalg.svd(matrix, compute_uv=False)
    reason = "info" if info else _far(values, wanted, precision, "singular values")
    if reason or c["mode"] == "N":
        return reason
    k = len(values)
    return _far((u[:, :k] * values) @ vt[:k], matrix, precision, "U S V")


def _symmetric(matrix: Array, uplo: str) -> Array:
    half = np.tril(matrix, -1) if uplo == "L" else _conj(np.triu(matrix, 1))
    whole: Array = half + _conj(half) + np.diag(np.real(np.diag(matrix)))
    return whole


def _eigh(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (vectors, values, *info) = inputs, outputs
    whole = _symmetric(matrix, c["uplo"])
    if info and info[0]:
        return "info"
    reason = _far(np.sort(values), np.linalg.eigvalsh(whole), precision, "eigenvalues")
    if reason or c["mode"] == "N":
        return reason
    return _far(whole @ vectors, vectors * values, 4 * precision, "A V") or _far(
        _conj(vectors) @ vectors, np.eye(len(values)), precision, "V* V"
    )


def _eigh_of_xla(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    lower, ordered, _, tolerance = c["text"].split(",")
    values = outputs[1]
    if ordered == "1" and np.any(np.diff(values) < -1e-2 * np.max(np.abs(values))):
        return "the eigenvalues are not sorted"
    limited = max(precision, float(tolerance))
    return _eigh({"uplo": "L" if lower == "1" else "U", "mode": "V"}, limited, inputs, outputs)


def _tridiagonal(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (_, diagonal, beside, _, info) = inputs, outputs
    whole = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    wanted = np.linalg.eigvalsh(_symmetric(matrix, c["uplo"]))
    return "info" if info else _far(np.linalg.eigvalsh(whole), wanted, precision, "eigenvalues")


def _traces(values: Array, matrix: Array, precision: float) -> str | None:
    """Return whether eigenvalues have other sums of powers than those of a matrix."""
    scale = max(float(np.linalg.norm(matrix)), 1e-30)
    for power in (1, 2):
        wanted = np.trace(np.linalg.matrix_power(matrix / scale, power))
        if abs(np.sum((values / scale) ** power) - wanted) > 100 * precision * len(matrix):
            return f"the eigenvalues have another sum of powers of {power}"
    return None


def _eig(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (*values, left, right, info) = inputs, outputs
    found = values[0] + 1j * values[1] if len(values) == 2 else values[0]
    reason = "info" if info else _traces(found, matrix, precision)
    if not reason and c["compute_right"] == "V":
        reason = _far(matrix @ right, right * found, 10 * precision, "A V")
    if not reason and c["compute_left"] == "V":
        reason = _far(_conj(left) @ matrix, found[:, None] * _conj(left), 10 * precision, "V* A")
    return reason


def _schur(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (form, vectors, *values, _, info) = inputs, outputs
    found = values[0] + 1j * values[1] if len(values) == 2 else values[0]
    reason = "info" if info else _traces(found, matrix, precision)
    if reason or c["mode"] == "N":
        return reason
    return _far(vectors @ form @ _conj(vectors), matrix, precision, "Z T Z*")


def _hessenberg(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix,), (packed, tau, info) = inputs, outputs
    n, low, high = len(matrix), int(c["low"]), int(c["high"])
    if info or low > 1 or high < n:
        # The routine takes for granted that the matrix is triangular outside of the block.
        return "info" if info else None
    q = np.eye(n, dtype=np.complex128)
    q[1:, 1:] = _householder(packed[1:, : n - 1], tau, n - 1)
    return _far(q @ np.triu(packed, -1) @ _conj(q), matrix, precision, "Q H Q*")


def _solved(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    lower, middle, upper, right = inputs
    given = outputs[3] if len(outputs) > 1 else outputs[0]
    matrix = np.diag(middle) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    return _far(given, np.linalg.solve(matrix, right), 10 * precision, "X")


def _triangular(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (matrix, right), (given,) = inputs, outputs
    half = np.tril(matrix) if c["uplo"] == "L" else np.triu(matrix)
    if c["diag"] == "U":
        np.fill_diagonal(half, 1)
    half = {"N": half, "T": half.T, "C": _conj(half)}[c["trans_x"]]
    wanted = np.linalg.solve(half, right) if c["side"] == "L" else np.linalg.solve(half.T, right.T).T
    return _far(given, wanted, 10 * precision, "X")


def _largest(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    (taken,), (values, places) = inputs, outputs
    wanted = np.sort(taken, axis=-1)[..., ::-1][..., : values.shape[-1]]
    if not np.array_equal(values, wanted):
        return "other values"
    return None if np.array_equal(np.take_along_axis(taken, places, -1), values) else "other places"


def _approximate(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    taken = inputs[0]
    axis, least = int(c["reduction_dim"]), "LT" in c["comparison"]
    order = np.sort(taken, axis=axis)
    wanted = order if least else np.flip(order, axis)
    wanted = np.take(wanted, range(int(c["top_k"])), axis)
    if int(c["top_k"]) == 1:
        # XLA may reduce, and a reduction begins with the initial value.
        reduced = np.minimum(wanted, inputs[2]) if least else np.maximum(wanted, inputs[2])
        return None if any(np.array_equal(outputs[0], each) for each in (wanted, reduced)) else "other values"
    if not np.array_equal(outputs[0], wanted):
        return "other values"
    # An index is that of the second operand where the value stood.
    pairs = [
        sorted(zip(*(np.moveaxis(each, axis, -1).ravel() for each in two), strict=True))
        for two in (inputs[:2], outputs)
    ]
    return None if set(pairs[1]) <= set(pairs[0]) else "other indices"


def _same(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    return None if np.array_equal(inputs[0], outputs[0]) else "another value"


def _function(name: str) -> Any:
    functions: dict[str, Any] = {
        "erf": np.vectorize(math.erf, otypes=[np.float64]),
        "acos": np.emath.arccos,
        "asin": np.emath.arcsin,
    }

    def check(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
        (taken,), (given,) = inputs, outputs
        function = functions.get(name) or getattr(
            np, {"acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}.get(name, name)
        )
        if name in ("acos", "asin") and taken.dtype.kind == "f":
            function = getattr(np, f"arc{name[1:]}")
        with np.errstate(all="ignore"):
            wanted = function(taken)
        if not np.array_equal(np.isnan(given), np.isnan(wanted)):
            return "NaN in other places"
        error = np.abs(given - wanted) / np.maximum(np.abs(wanted), 1)
        good = (error <= 64 * precision) | (given == wanted) | np.isnan(wanted)
        return None if np.all(good) else f"off by {np.max(error[~good]):.2g}"

    return check


def _equal(c: Attributes, precision: float, inputs: Arrays, outputs: Arrays) -> str | None:
    one, other = inputs
    near = np.allclose(one, other, rtol=0.05, atol=0.05, equal_nan=True)
    return None if near and all(bool(each) for each in outputs) else "different values passed"


_FUNCTIONS: Final = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")
_ANNOTATIONS: Final = (
    *("LayoutConstraint", "MoveToDevice", "MoveToHost", "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding"),
    *("annotate_device_placement", "xla.sdy.FuncResultSharding"),
)
_ASSERTIONS: Final = ("check.eq", "check.expect_almost_eq", "check.expect_close", "check.expect_eq")
_CHECKS: Final[dict[str, Any]] = {
    **{f"mhlo.{name}": _function(name) for name in _FUNCTIONS},
    **dict.fromkeys(_ANNOTATIONS, _same),
    **dict.fromkeys(_ASSERTIONS, _equal),
    "dce_sink": lambda *_: None,
    "ApproxTopK": _approximate,
    "Eigh": _eigh_of_xla,
    "TopK": _largest,
    "gees": _schur,
    "geev": _eig,
    "gehrd": _hessenberg,
    "geqp3": _pivoted_qr,
    "geqrf": _qr,
    "gesdd": _svd,
    "getrf": _lu,
    "gtsv": _solved,
    "orgqr": _product,
    "ormqr": _multiplied,
    "potrf": _cholesky,
    "syevd": _eigh,
    "sytrd": _tridiagonal,
    "trsm": _triangular,
}
_ELEMENTWISE: Final = frozenset(
    {
        *(f"mhlo.{name}" for name in _FUNCTIONS),
        *_ANNOTATIONS,
        *_ASSERTIONS,
        "ApproxTopK",
        "TopK",
        "dce_sink",
        "mhlo.topk",
    }
)
