"""Inputs drawn from a seed: values that suit their type, and the ops that they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vhlo_tools.interpreter import ArgumentType, Executable, functions_of, main_of, nested_values, parse_value_type
from vhlo_tools.verification.domains import Domain, domain_of
from vhlo_tools.verification.floats import is_complex, is_float

__all__ = ["Drawing", "draw_inputs"]

#: How many of the elements are edges, if there shall be some.
_EDGES: Final = 0.25
#: Integers are small, as sizes, counts and classes are.
_LARGEST_INTEGER: Final = 8


@dataclass(frozen=True, slots=True)
class Drawing:
    """How inputs are drawn.

    Attributes:
        seed: The seed: the same draws the same.
        edges: Whether a quarter of the elements are zeros of both signs, ones, the smallest and largest of the type,
            and of floats subnormal numbers.
        non_finite: Whether infinities and what is no number are among them.
        size: What dimensions are whose size the program leaves open.
    """

    seed: int = 0
    edges: bool = False
    non_finite: bool = False
    size: int = 3


def draw_inputs(executable: Executable, drawing: Drawing) -> tuple[Any, ...]:
    """Return an array for each argument of ``main``, a tuple for a tuple, ``None`` for a token.

    Args:
        executable: The program.
        drawing: How to draw.
    """
    functions = functions_of(executable.module)
    main = main_of(executable.module, executable.name)
    chance = np.random.default_rng(drawing.seed)
    drawn: list[Any] = []
    for argument in main.regions[0].blocks[0].arguments:
        kind = parse_value_type(str(argument.type))
        if not isinstance(kind, ArgumentType):
            drawn.append(None)
            continue
        shape = tuple(
            size if size is not None else drawing.size if bound is None else min(bound, drawing.size)
            for size, bound in zip(kind.shape, kind.bounds, strict=True)
        )
        drawn.append(_draw(chance, kind, shape, domain_of(argument, functions), drawing))
    return nested_values(iter(drawn), executable.signature.parameters)


def _draw(
    chance: np.random.Generator, kind: ArgumentType, shape: tuple[int, ...], domain: Domain, drawing: Drawing
) -> np.ndarray[Any, Any]:
    dtype = kind.dtype
    if is_complex(dtype):
        array = np.empty(shape, dtype)
        array.real, array.imag = (_floats(chance, shape, domain) for _ in range(2))
        return array
    floating = is_float(dtype)
    if dtype.name == "float8_e8m0fnu":
        # It has powers of two, and nothing else.
        array = np.exp2(chance.integers(-3, 4, shape)).astype(dtype)
    elif floating:
        array = np.asarray(_floats(chance, shape, domain)).astype(dtype)
    elif dtype == np.bool_:
        return np.asarray(chance.integers(0, 2, shape).astype(dtype))
    else:
        array = np.asarray(_integers(chance, shape, domain, dtype)).astype(dtype)
    if drawing.edges or drawing.non_finite:
        edges = _edges(dtype, domain, drawing)
        if len(edges) and domain.kind not in ("definite", "index"):
            chosen = chance.random(shape) < _EDGES
            array = np.where(chosen, edges[chance.integers(0, len(edges), shape)], array).astype(dtype)
    return array


def _floats(chance: np.random.Generator, shape: tuple[int, ...], domain: Domain) -> np.ndarray[Any, Any]:
    drawn = np.asarray(chance.normal(size=shape))
    if domain.kind == "unit":
        return np.asarray(chance.uniform(-1, 1, shape))
    if domain.kind == "positive":
        return np.abs(drawn) + 0.125
    if domain.kind == "above-one":
        return np.abs(drawn) + 1.0
    if domain.kind == "nonzero":
        return np.asarray(np.where(drawn < 0, drawn - 0.125, drawn + 0.125))
    if domain.kind == "definite" and len(shape) >= 2 and shape[-1] == shape[-2]:
        return drawn @ np.swapaxes(drawn, -1, -2) + shape[-1] * np.eye(shape[-1])
    return drawn


def _integers(
    chance: np.random.Generator, shape: tuple[int, ...], domain: Domain, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    low, high = _range(dtype)
    if domain.kind == "index":
        return chance.integers(0, min(domain.end, high + 1), shape)
    if domain.kind == "shift":
        return chance.integers(0, min(8 * dtype.itemsize, high + 1), shape)
    drawn = chance.integers(max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER) + 1, shape)
    return np.asarray(np.where(drawn == 0, 1, drawn)) if domain.kind in ("nonzero", "positive") else drawn


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    import ml_dtypes

    about: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(about.min), int(about.max)


def _edges(dtype: np.dtype[Any], domain: Domain, drawing: Drawing) -> np.ndarray[Any, Any]:
    """Return the values at the edges of a type that suit a domain."""
    if not is_float(dtype):
        low, high = _range(dtype)
        numbers = dict.fromkeys(each for each in (low, low + 1, -1, 0, 1, high - 1, high) if low <= each <= high)
        kept = [each for each in numbers if drawing.edges and _suits(each, domain, dtype)]
        return np.array(kept, np.int64 if low else np.uint64).astype(dtype)
    import ml_dtypes

    about: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    floats: list[float] = []
    if drawing.edges:
        positive = [1.0, *(float(each) for each in (about.smallest_subnormal, about.smallest_normal, about.max))]
        floats = [0.0, -0.0, *positive, *(-each for each in positive)]
    if drawing.non_finite:
        floats += [np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(floats).astype(dtype)
    return np.asarray(found[np.array([_suits(float(each), domain, dtype) for each in found], bool)])


def _suits(value: float, domain: Domain, dtype: np.dtype[Any]) -> bool:
    if value != value:
        return True
    return {
        "shift": 0 <= value < 8 * dtype.itemsize,
        "nonzero": value != 0,
        "positive": value > 0,
        "above-one": value >= 1,
        "unit": -1 <= value <= 1,
    }.get(domain.kind, True)
