"""Rules for the LAPACK routines of jaxlib, which check neither shapes nor the values of their attributes.

Sources: ``jaxlib/cpu/lapack_kernels.cc`` and ``jax/_src/lax/linalg.py`` in jax-ml/jax. The names of sizes are those of
LAPACK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.execution.custom_calls.call_rules import Rule, Signature
from vhlo_tools.execution.custom_calls.configurations import TypedConfiguration

_REAL: Final = {"s": "f32", "d": "f64"}
_COMPLEX: Final = {"c": "complex<f32>", "z": "complex<f64>"}
_ALL: Final = {**_REAL, **_COMPLEX}

_SQUARE, _MATRIX, _INFO = "T * n n", "T * m n", "i32 *"
_LEAST = "min(m,n)"


def _rules(
    routine: str,
    letters: Mapping[str, str],
    requires: str,
    *signatures: Signature,
    aliases: Iterable[tuple[int, int]] = ((0, 0),),
    **entries: str,
) -> dict[str, Rule]:
    """One rule for each element type; ``routine`` lacks the letter of that type."""
    return {
        f"lapack_{letter}{routine}_ffi": Rule(
            requires,
            signatures,
            (element,),
            TypedConfiguration(entries),
            column_major=True,
            aliases=frozenset(aliases),
            may_be_tuple=True,
        )
        for letter, element in letters.items()
    }


def _svd(routine: str) -> dict[str, Rule]:
    def signature(u: str, vt: str, modes: str) -> Signature:
        results = (_MATRIX, f"real * {_LEAST}", u, vt, _INFO)
        return Signature((_MATRIX,), results, when={"mode": modes})

    return _rules(
        routine,
        _ALL,
        "one matrix, and returns its singular value decomposition",
        signature("T * m m", _SQUARE, "AN"),
        signature(f"T * m {_LEAST}", f"T * {_LEAST} n", "SN"),
        mode="ANS",
    )


def _both(routine: str, requires: str, results: Sequence[str], **options: Any) -> dict[str, Rule]:
    """For routines that return real eigenvalues in two parts; ``values`` stands for the eigenvalues in ``results``."""

    def rules(letters: Mapping[str, str], values: tuple[str, ...]) -> dict[str, Rule]:
        parts = [part for each in results for part in (values if each == "values" else (each,))]
        return _rules(routine, letters, requires, Signature((_SQUARE,), tuple(parts)), **options)

    return rules(_REAL, ("T * n", "T * n")) | rules(_COMPLEX, ("T * n",))


def _symmetric(routine: str, requires: str, results: tuple[str, ...], **entries: str) -> dict[str, Rule]:
    """For routines that are named ``sy`` for symmetric and ``he`` for Hermitian matrices."""
    return _rules(
        f"sy{routine}", _REAL, requires, Signature((_SQUARE,), results), aliases=((0, 0),), **entries
    ) | _rules(f"he{routine}", _COMPLEX, requires, Signature((_SQUARE,), results), aliases=((0, 0),), **entries)


def _reflecting(
    routine: str, requires: str, *signatures: Signature, aliases: Iterable[tuple[int, int]], **entries: str
) -> dict[str, Rule]:
    """For routines that are named ``or`` for orthogonal and ``un`` for unitary matrices."""
    return _rules(f"or{routine}", _REAL, requires, *signatures, aliases=aliases, **entries) | _rules(
        f"un{routine}", _COMPLEX, requires, *signatures, aliases=aliases, **entries
    )


_DIAGONALS: Final = ("T * n", "T * n", "T * n", "T * n k")

#: The rules of all routines that jaxlib 0.10 to 0.12 register, by target.
LAPACK: Final[Mapping[str, Rule]] = {
    **_rules(
        "getrf",
        _ALL,
        "one matrix, and returns its LU decomposition",
        Signature((_MATRIX,), (_MATRIX, f"i32 * {_LEAST}", _INFO)),
    ),
    **_rules(
        "geqrf",
        _ALL,
        "one matrix, and returns its QR decomposition",
        Signature((_MATRIX,), (_MATRIX, f"T * {_LEAST}")),
    ),
    **_rules(
        "geqp3",
        _ALL,
        "a matrix and pivots, and returns its QR decomposition",
        Signature((_MATRIX, "i32 * n"), (_MATRIX, "i32 * n", f"T * {_LEAST}")),
        aliases=((0, 0), (1, 1)),
    ),
    **_reflecting(
        "gqr",
        "k Householder reflectors in a matrix with at least as many rows as columns, and returns their product",
        Signature((_MATRIX, "T * k"), (_MATRIX,), ("n <= m", "k <= n")),
        aliases=((0, 0),),
    ),
    **_reflecting(
        "mqr",
        "Householder reflectors and a matrix, and returns the product of both",
        Signature(("T * m p", "T * k", _MATRIX), (_MATRIX,), ("k <= p", "k <= m"), {"left": (True,)}),
        Signature(("T * n p", "T * k", _MATRIX), (_MATRIX,), ("k <= p", "k <= n"), {"left": (False,)}),
        aliases=((2, 0),),
        left="bool",
        transpose="bool",
    ),
    **_rules(
        "potrf",
        _ALL,
        "one square matrix, and returns its Cholesky factor",
        Signature((_SQUARE,), (_SQUARE, _INFO)),
        uplo="LU",
    ),
    **_svd("gesdd"),
    **_svd("gesvd"),
    **_symmetric(
        "evd",
        "one symmetric or Hermitian matrix, and returns its eigenvectors and eigenvalues",
        (_SQUARE, "real * n", _INFO),
        mode="NV",
        uplo="LU",
    ),
    **_symmetric(
        "trd",
        "one symmetric or Hermitian matrix, and returns it in tridiagonal form",
        (_SQUARE, "real * n", "real * n-1", "T * n-1", _INFO),
        uplo="LU",
    ),
    **_both(
        "geev",
        "one square matrix, and returns its eigenvalues and eigenvectors",
        ("values", "complex * n n", "complex * n n", _INFO),
        aliases=(),
        compute_left="NV",
        compute_right="NV",
    ),
    # With eigenvalues to be sorted the routine calls a function that does not exist.
    **_both(
        "gees",
        "one square matrix, and returns its Schur form, with unsorted eigenvalues",
        (_SQUARE, _SQUARE, "values", _INFO, _INFO),
        mode="NV",
        sort="N",
    ),
    # For a block of one row of a larger matrix the routine asks for less memory than it then requires, and fails.
    **_rules(
        "gehrd",
        _ALL,
        "one square matrix, and returns it in Hessenberg form",
        Signature((_SQUARE,), (_SQUARE, "T * n-1", _INFO), ("1 <= low", "low <= high-1", "high <= n")),
        Signature((_SQUARE,), (_SQUARE, "T * n-1", _INFO), ("n == 1", "low == 1", "high == 1")),
        low="i32",
        high="i32",
    ),
    **_rules(
        "gtsv",
        _ALL,
        "three diagonals and right-hand sides, and returns the solutions",
        Signature(_DIAGONALS, (*_DIAGONALS, _INFO), ("1 <= n",)),
        aliases=((0, 0), (1, 1), (2, 2), (3, 3)),
    ),
    **_rules(
        "trsm",
        _ALL,
        "a triangular matrix and right-hand sides, and returns the solutions",
        Signature(("T * m m", _MATRIX), (_MATRIX,), when={"side": "L"}),
        Signature((_SQUARE, _MATRIX), (_MATRIX,), when={"side": "R"}),
        aliases=((1, 0),),
        side="LR",
        uplo="LU",
        trans_x="NTC",
        diag="NU",
    ),
    "tridiagonal_solve_perturbed_ffi": Rule(
        "three diagonals and right-hand sides, and returns the solutions",
        (Signature(_DIAGONALS, ("T * n k",), ("1 <= n",)),),
        tuple(_ALL.values()),
        TypedConfiguration(),
        column_major=True,
        may_be_tuple=True,
    ),
}
