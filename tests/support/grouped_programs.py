"""Programs of collectives for tests: grids of devices, groups, and values whose every bit counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = f"{CHANNEL}, use_global_device_ids"
#: Numbers of replicas and of partitions: two, four and eight devices.
GRIDS = ((2, 1), (1, 2), (2, 2), (1, 4), (8, 1), (4, 2), (2, 4))
ELEMENTS: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "ui16": np.uint16,
    "i32": np.int32,
    "ui64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


def tensor(shape: Sequence[int | str], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def dense(rows: Sequence[Sequence[int]]) -> str:
    """Return rows of integers as an attribute, padded with -1."""
    width = max(map(len, rows), default=0)
    padded = [[*row, *([-1] * (width - len(row)))] for row in rows]
    return f"dense<{padded if rows else ''}> : tensor<{len(rows)}x{width}xi64>"


def reduction(op: str, element: str) -> str:
    scalar = tensor((), element)
    return (
        f"({{ ^bb0(%x: {scalar}, %y: {scalar}): %z = stablehlo.{op} %x, %y : {scalar} "
        f"stablehlo.return %z : {scalar} }})"
    )


ADD = reduction("add", "f32")


def function(op: str, takes: Sequence[str], gives: Sequence[str]) -> str:
    """Return a program of one op, whose text has ``OPERANDS`` for its operands."""
    names = [f"%a{number}" for number in range(len(takes))]
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, takes, strict=True))
    results = ", ".join(f"%r#{number}" for number in range(len(gives)))
    types = ", ".join(gives)
    called = op.replace("OPERANDS", ", ".join(names))
    return (
        f"func.func @main({arguments}) -> ({types}) {{ %r:{len(gives)} = {called} : ({', '.join(takes)}) -> ({types}) "
        f"return {results} : {types} }}"
    )


def drawn(rng: np.random.Generator, shape: Sequence[int], element: str) -> Any:
    """Return values of an element type; floats have negative zeros and values that are no numbers among them."""
    dtype = ELEMENTS[element]
    if "f" not in element:
        return rng.integers(0, 2 if element == "i1" else 100, shape).astype(dtype)
    special = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, 1e-40, -1.5])
    values = np.where(rng.random(shape) < 0.5, rng.choice(special, shape), rng.normal(size=shape))
    with np.errstate(over="ignore"):
        if not element.startswith("complex"):
            return values.astype(dtype)
        made = np.empty(shape, dtype)
        made.real, made.imag = values, rng.choice(special, shape)
        return made
