"""JAX's own test programs: a harness for each use of a primitive, with its inputs, and what JAX computes of these.

They are ``jax._src.internal_test_util.test_harnesses``, which is part of every release of JAX.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

# JAX's tests take their settings from here.
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax._src.internal_test_util import test_harnesses

#: How many types of each primitive are in the quick selection.
_QUICK: Final = 3

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A program of JAX, lowered, with inputs and what JAX computes of them."""

    module: Any  # the program in StableHLO
    inputs: list[Array]  # an array for each argument of ``main``
    expected: list[Array]  # an array for each of its results


def selection(per_kind: int) -> list[str]:
    """Return the names of harnesses: so many of each primitive and each type, spread over those that there are."""
    return [name for kinds in _kinds().values() for names in kinds.values() for name in _spread(names, per_kind)]


def quick_selection() -> list[str]:
    """Return the names of a few harnesses of each primitive, each of another type."""
    chosen = []
    for number, kinds in enumerate(_kinds().values()):
        # Not of the same types each time.
        types = deque(kinds)
        types.rotate(number)
        chosen += [kinds[dtype][number % len(kinds[dtype])] for dtype in _spread(list(types), _QUICK)]
    return chosen


def _kinds() -> dict[str, dict[str, list[str]]]:
    """Return the names of all harnesses, by primitive and type."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for name in _harnesses():
        kinds.setdefault(primitive_of(name), {}).setdefault(dtype_of(name), []).append(name)
    return kinds


def _spread(words: list[str], count: int) -> list[str]:
    count = min(count, len(words))
    return [words[number * len(words) // count] for number in range(count)]


def primitive_of(name: str) -> str:
    return str(_harnesses()[name].group_name)


def dtype_of(name: str) -> str:
    dtype = _harnesses()[name].dtype
    return "none" if dtype is None else np.dtype(dtype).name


@cache
def _harnesses() -> dict[str, Any]:
    return {each.fullname: each for each in test_harnesses.all_harnesses if each.filter("cpu")}


def load_case(name: str) -> Case:
    harness = _harnesses()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = harness.dyn_args_maker(np.random.RandomState(0))
        lowered = jax.jit(harness.dyn_fun, keep_unused=True).lower(*arguments)
        expected = lowered.compile()(*arguments)
    types = jax.tree.leaves(lowered.in_avals)
    leaves = jax.tree.leaves(arguments)
    inputs = [np.asarray(leaf, kind.dtype) for leaf, kind in zip(leaves, types, strict=True)]
    return Case(lowered.compiler_ir("stablehlo"), inputs, [np.asarray(each) for each in jax.tree.leaves(expected)])
