"""Algorithms of dot_general whose precision types are f8E4M3FN, allowed since 1.21.0.

They become older ops like all others, in :mod:`vhlo_tools.expansion.dot_algorithm`. New in 1.21.0 are those of 3 and 4
primitive operations, which XLA calls ``ALG_DOT_BF16_BF16_FP8X3`` and ``FP8X4``. No public text says what these
multiply, and the engines do nothing with them: f8E4M3FN has too few exponents for components without a scale, and the
scales are not known. Their only expansion is the relaxed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.dot_algorithm import algorithm_of, expanded_algorithm, without_algorithm
from vhlo_tools.rewriting import Build, Rewriter


def _exact(rewriter: Rewriter) -> Sequence[Any] | None:
    algorithm = algorithm_of(rewriter)
    if algorithm is None or "f8E4M3FN" not in algorithm.precisions:
        return None
    return expanded_algorithm(rewriter, algorithm)


def _relaxed(rewriter: Rewriter) -> Sequence[Any] | None:
    algorithm = algorithm_of(rewriter)
    return without_algorithm(rewriter) if algorithm is not None and "f8E4M3FN" in algorithm.precisions else None


EXACT: Final[Mapping[str, Build]] = {"stablehlo.dot_general": _exact}
RELAXED: Final[Mapping[str, Build]] = {"stablehlo.dot_general": _relaxed}
