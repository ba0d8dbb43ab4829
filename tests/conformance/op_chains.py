"""Compare XLA with StableHLO's interpreter on every chain of two ops of floats, at the ends of their types.

`python tests/conformance/op_chains.py [f32 | f64]` applies each op, to an argument and to another one or a constant,
and each op to what that gives, in 6 minutes; `--first divide` only those that begin with it. A compiler that takes
floats for real numbers differs here in more than digits: it overflows where the program does not, or loses a sign.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import vhlo_tools as vt

Array = np.ndarray[Any, Any]

UNARY: Final = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tanh"),
)
BINARY: Final = (*("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"),)
#: Their results are those of IEEE-754; others may be some units in the last place away.
EXACT: Final = {
    *("abs", "ceil", "floor", "negate", "round_nearest_afz", "round_nearest_even", "sign", "sqrt"),
    *("add", "divide", "maximum", "minimum", "multiply", "remainder", "subtract"),
}
CONSTANTS: Final = {
    "%zero": 0.0,
    "%one": 1.0,
    "%two": 2.0,
    "%half": 0.5,
    "%minus": -1.0,
    "%three": 3.0,
    "%large": 3 * 2.0**22,
}
TYPES: Final = {
    "f32": (np.float32, (1e30, 1e25, 1e-25, 3e-30, 2e19, 1e38)),
    "f64": (np.float64, (1e300, 1e250, 1e-250, 3e-300, 1e160, 1.7e308)),
}
USUAL: Final = (0.0, -0.0, 1.0, -1.0, 2.5, -7.3, 0.3, np.inf, -np.inf, np.nan, 12582912.0, 1e-3)
#: So far are results that are not exact in any engine, such as sines of great numbers.
NEAR: Final = 1e-3


class Applied(NamedTuple):
    op: str
    operands: Sequence[str]

    def __str__(self) -> str:
        return f"{self.op}({', '.join(self.operands)})"


def firsts() -> Iterator[Applied]:
    yield from (Applied(op, ["%x"]) for op in UNARY)
    for op in BINARY:
        yield Applied(op, ["%x", "%y"])
        for constant in CONSTANTS:
            yield Applied(op, ["%x", constant])
            yield Applied(op, [constant, "%x"])


def seconds() -> Iterator[Applied]:
    yield from (Applied(op, ["%v"]) for op in UNARY)
    for op in BINARY:
        yield Applied(op, ["%v", "%v"])
        for other in ("%x", "%y", *CONSTANTS):
            yield Applied(op, ["%v", other])
            yield Applied(op, [other, "%v"])


def inputs(element: str) -> tuple[Array, Array]:
    """Return every pair of the values that are tried."""
    dtype, ends = TYPES[element]
    values = [*USUAL, *ends, *(-each for each in ends)]
    one, other = np.meshgrid(values, values)
    return one.ravel().astype(dtype), other.ravel().astype(dtype)


def differing(first: Applied, element: str) -> Iterator[str]:
    """Yield the chains that begin with an op and on which the engines differ, with the first inputs."""
    x, y = inputs(element)
    kind, chains = f"tensor<{len(x)}x{element}>", list(seconds())
    lines = [f"{name} = stablehlo.constant dense<{number:.8e}> : {kind}" for name, number in CONSTANTS.items()]
    lines.append(f"%v = stablehlo.{first.op} {', '.join(first.operands)} : {kind}")
    lines += [f"%r{i} = stablehlo.{op} {', '.join(operands)} : {kind}" for i, (op, operands) in enumerate(chains)]
    names = ", ".join(("%v", *(f"%r{i}" for i in range(len(chains)))))
    types = ", ".join([kind] * (len(chains) + 1))
    body = "\n".join((*lines, f"return {names} : {types}"))
    text = f"func.func @main(%x: {kind}, %y: {kind}) -> ({types}) {{\n{body}\n}}"
    with np.errstate(all="ignore"):
        results = [vt.run(text, [x, y], engine=engine, timeout=600) for engine in ("reference", "xla")]
        middle, *_ = results[0]
        # XLA takes subnormal numbers as zeros.
        smallest = np.finfo(x.dtype).tiny
        is_open = (np.abs(middle) < smallest) & (middle != 0)
        for applied, reference, xla in zip([Applied("", ["%v"]), *chains], *results, strict=True):
            is_exact = {first.op, applied.op} <= EXACT
            a, b = (np.where(np.abs(each) < smallest, 0, each).astype(np.float64) for each in (reference, xla))
            wrong = ~(same(a, b) if is_exact else alike(a, b)) & ~is_open
            if wrong.any():
                at = int(np.argmax(wrong))
                chain = f"{applied}, %v = {first}"
                yield f"{chain}: {wrong.sum()} of {len(x)}, of {x[at]} and {y[at]}: {reference[at]}, xla {xla[at]}"


def same(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        near = np.isfinite(a) & (np.abs(a - b) <= NEAR * np.abs(a))
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) | near)


def alike(a: Array, b: Array) -> Array:
    """Whether both are NaN, infinite or zero, or neither."""
    is_zero = ((a == 0) == (b == 0)) | (np.maximum(np.abs(a), np.abs(b)) < 1e-5)
    return np.asarray(same(a, b) | ((np.isnan(a) == np.isnan(b)) & (np.isinf(a) == np.isinf(b)) & is_zero))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("element", nargs="?", choices=list(TYPES), default="f32")
    parser.add_argument("--first", help="only chains that begin with this op")
    options = parser.parse_args()
    begun = [each for each in firsts() if options.first in (None, each.op)]
    found = [line for each in begun for line in differing(each, options.element)]
    print("\n".join(found))
    print(f"{len(found)} of {len(begun) * (1 + len(list(seconds())))} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
