"""What the reference interpreter would die of, found before it runs.

The interpreter ends the process where it meets what it does not know; an error with a name is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.interpreter.lowering.calls import passes_only_tensors
from vhlo_tools.interpreter.refusals import refusal

__all__ = ["TOO_LARGE", "check_runnable", "is_too_large"]

#: The ops of StableHLO that it evaluates on one device and without effects: those that `eval` in
#: ``stablehlo/reference/Ops.cpp`` dispatches on. Collectives and infeed need what only `interpreter` ops provide.
# fmt: off
_RUNNABLE: Final = frozenset({
    "abs", "add", "after_all", "and", "atan2", "bitcast_convert", "broadcast_in_dim", "case", "cbrt", "ceil", "clamp",
    "compare", "complex", "composite", "concatenate", "constant", "convert", "convolution", "cosine",
    "count_leading_zeros", "divide", "dot_general", "dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather",
    "dynamic_iota", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "exponential",
    "exponential_minus_one", "fft", "floor", "gather", "get_dimension_size", "get_tuple_element", "if", "imag", "iota",
    "is_finite", "log", "log_plus_one", "logistic", "map", "maximum", "minimum", "multiply", "negate", "not",
    "optimization_barrier", "or", "pad", "popcnt", "power", "real", "reduce", "reduce_precision", "reduce_window",
    "remainder", "reshape", "return", "reverse", "round_nearest_afz", "round_nearest_even", "rsqrt", "scatter",
    "select", "select_and_scatter", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sine",
    "slice", "sort", "sqrt", "subtract", "tan", "tanh", "transpose", "triangular_solve", "tuple", "while", "xor",
})
# fmt: on

#: What it has beside, or never comes to: attributes refer to meshes, and nothing runs them.
_HARMLESS: Final = frozenset({"builtin.module", "func.call", "func.return", "sdy.mesh"})

#: So many elements of the largest types have no number of bytes of 63 bits.
_LARGEST: Final = 2**59
_SIZES: Final = re.compile(r"tensor<((?:[0-9?]+x)*)")
#: Why a value that large is refused.
TOO_LARGE: Final = "its result has more bytes than there are numbers for"

#: Why ops that others run are not rewritten.
_REASONS: Final[Mapping[str, str]] = {
    "rng": "its numbers are whatever an engine makes up; the engine xla can run it, and rng_bit_generator runs here",
}


def check_runnable(provider: Provider, module: ModuleOp, name: str) -> None:
    """Raise unless the reference interpreter can run ``module``.

    Args:
        provider: The bindings.
        module: The program, with its shapes resolved.
        name: What to call it in messages.

    Raises:
        EngineError: Naming the first op that it would die of, and where that stands.
    """
    for op in provider.walk(module):
        if reason := _reason(provider, op):
            raise refusal(op, name, reason)


def _reason(provider: Provider, op: Operation) -> str | None:
    dialect, _, mnemonic = str(op.name).partition(".")
    for result in op.results:
        if "?" in str(result.type):
            return f"the inputs do not resolve the shape of its result {result.type}"
        if is_too_large(result):
            return TOO_LARGE
    if str(op.name) in ("func.call", "stablehlo.composite") and not passes_only_tensors(op):
        return "it passes tokens or tuples to a function that calls itself, and the interpreter passes only tensors"
    if str(op.name) in _HARMLESS:
        return None
    if str(op.name) == "func.func":
        return None if len(op.regions[0].blocks) else "the function is declared, but not defined here"
    if dialect != "stablehlo":
        return f"it knows no ops of the dialect {dialect}"
    if mnemonic not in _RUNNABLE:
        return _REASONS.get(mnemonic, "it does not implement this op")
    if mnemonic == "constant" and provider.is_in_resource(op):
        return "the program does not hold the bytes of its dense_resource"
    return None


def is_too_large(value: Any) -> bool:
    """Tell whether a value has more bytes than there are numbers for: sizes overflow in either engine."""
    shapes = ([int(size) for size in text.split("x") if size.isdecimal()] for text in _SIZES.findall(str(value.type)))
    # A dimension without elements does not keep the product of the others from overflowing.
    return any(math.prod(size or 1 for size in sizes) >= _LARGEST for sizes in shapes)
