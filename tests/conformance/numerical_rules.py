"""What the numerical suite lets pass: `numerical_suite.toml`, which gives a reason for everything in it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.verification import Tolerance
from vhlo_tools.verification.comparison import is_float, parts

#: Where they stand.
FILE: Final = Path(__file__).with_name("numerical_suite.toml")


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far results of primitives may be from what JAX computes."""

    reason: str  # why so far
    ulp: int  # so many units in the last place
    of_largest: float = 0.0  # or so many epsilons of the type, of the largest finite absolute value in the output
    primitives: Sequence[str] = ("*",)  # which primitives; patterns
    dtypes: Sequence[str] = ("*",)  # which types of elements; patterns

    def tolerance(self, expected: np.ndarray[Any, Any]) -> Tolerance:
        numbers = parts(expected)
        if not is_float(numbers.dtype):
            return Tolerance(self.ulp)
        sizes = np.abs(numbers.astype(np.float64))
        largest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
        epsilon = float(np.spacing(np.ones((), numbers.dtype)))
        return Tolerance(self.ulp, absolute=self.of_largest * epsilon * largest)


@dataclass(frozen=True, slots=True)
class Known:
    """Programs that are known to end otherwise than in agreement."""

    names: Sequence[str]  # which harnesses; patterns
    engine: str  # on which engine
    outcome: str  # ``refused``, ``differs``, ``died`` or ``too-long``
    reason: str  # why


@dataclass(frozen=True, slots=True)
class Rules:
    """All of the file."""

    allowances: tuple[Allowance, ...] = field(default=())  # the first that fits a program counts
    known: tuple[Known, ...] = field(default=())  # the first that fits a program on an engine counts

    def allowance(self, primitive: str, dtype: str) -> Allowance:
        return next(each for each in self.allowances if _fits(primitive, each.primitives) and _fits(dtype, each.dtypes))

    def known_of(self, name: str, engine: str) -> Known | None:
        return next((each for each in self.known if each.engine == engine and _fits(name, each.names)), None)


def read_rules(path: Path = FILE) -> Rules:
    read = tomllib.loads(path.read_text())
    return Rules(
        tuple(Allowance(**each) for each in read["allowance"]), tuple(Known(**each) for each in read.get("known", ()))
    )


def _fits(word: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(word, pattern) for pattern in patterns)
