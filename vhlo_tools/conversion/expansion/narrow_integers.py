"""Integers of two bits, introduced in 1.2.0, held in integers of eight bits.

A value is held as the same number. The results of an op that may exceed the narrow type are reduced to their lowest two
bits, which the sign fills up again::

    add(a, b) : i2  =  shift_right_arithmetic(shift_left(add(a, b), 6), 6) : i8

This is the result of the op itself wherever the lowest two bits of a result depend on the lowest two bits of the
operands only, as those of sums and products do, and wherever the result is representable. Other ops have rules of their
own: conversions from floats yield the nearest number of the narrow type, as both engines do; logical shifts and counts
of bits see two bits only. A shift by two or more leaves nothing but signs, as the specification has it for amounts that
reach the number of bits.

The wider type has eight bits, and not four: 4-bit integers are as old, but XLA of jaxlib 0.4.26 refuses them as
operands of arithmetic, shifts and logic (all 13 ops that were tried).

Source: StableHLO specification, the sections of these ops. Where it leaves a result open, for divisions by zero and for
floats out of range, the results are those of both engines, of jaxlib 0.10.2 and 0.12.0.1, which agree in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes

from vhlo_tools.bindings import Operation
from vhlo_tools.conversion.expansion.element_types import (
    HeldType,
    Narrow,
    Rule,
    Rules,
    change_elements,
    computed,
    constant,
    rounded,
    single_op,
)
from vhlo_tools.conversion.expansion.expanding import WholeModule
from vhlo_tools.conversion.rewriter import Rewriter
from vhlo_tools.conversion.tensor import Tensor

_BITS: Final = 2
_HELD_BITS: Final = 8
_MISSING: Final = _HELD_BITS - _BITS
_MASK: Final = 2**_BITS - 1


def _wrapped_signed(value: Tensor) -> Tensor:
    return (value << _MISSING).apply("shift_right_arithmetic", _MISSING)


def _wrapped_unsigned(value: Tensor) -> Tensor:
    return value & _MASK


def _converted(held: str, low: int, high: int, wrapped: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def converted(value: Tensor) -> Tensor:
        rewriter = value.rewriter
        wide = value.convert(rewriter.type(held))
        if rewriter.is_integer(value.type, 1):
            return wide
        if rewriter.is_integer(value.type):
            return wrapped(wide)
        return wide.apply("maximum", low).apply("minimum", high)

    return converted


def _held_type(
    element: str, held: str, numpy: Any, low: int, high: int, wrapped: Callable[[Tensor], Tensor]
) -> HeldType:
    name = f"ml_dtypes.{'u' * (low == 0)}int{_BITS}"
    return HeldType(
        element=element,
        numpy=numpy,
        held=held,
        rounded=wrapped,
        converted=_converted(held, low, high, wrapped),
        stored=held,
        encoded=lambda value: value,
        # Whatever the caller gives.
        decoded=wrapped,
        feed=f"array.astype(np.{'u' * (low == 0)}int{_HELD_BITS})",
        read=f"it with result.astype({name})",
    )


_TYPES: Final = (
    _held_type("i2", "i8", ml_dtypes.int2, -2, 1, _wrapped_signed),
    _held_type("ui2", "ui8", ml_dtypes.uint2, 0, 3, _wrapped_unsigned),
)


def _operands(rewriter: Rewriter) -> list[Tensor]:
    return [Tensor(rewriter, value) for value in rewriter.op.operands]


def _convert(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    (value,), (kind,) = _operands(rewriter), narrow.results
    if kind is None:
        # A number of the narrow type is converted as what holds it.
        return [rewriter.convert(value.value, rewriter.op.results[0].type.element_type)]
    real = value.part("real")
    return [kind.converted(real).value]


def _of_bits(compute: Callable[..., Tensor]) -> Rule:
    """For an op that sees the bits of its first operand without those that the sign fills up."""

    def build(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
        first, *others = _operands(rewriter)
        return rounded(rewriter, [compute(first & _MASK, *others).value], narrow)

    return Rule(build)


def _shift_right_arithmetic(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    first, amount = _operands(rewriter)
    # The upper bit is a sign in an unsigned type too.
    signed = (first << _MISSING).apply("shift_right_arithmetic", _MISSING)
    return rounded(rewriter, [signed.apply("shift_right_arithmetic", amount).value], narrow)


def _bitcast(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    (value,), (kind,) = _operands(rewriter), narrow.results
    assert kind is not None
    return [kind.converted(value).value]


def _check_bitcast(op: Operation, narrow: Narrow) -> str | None:
    if all((*narrow.operands, *narrow.results)):
        return None
    return "elements of another number of bits share the bits of several"


def _check_reduction(op: Operation, narrow: Narrow) -> str | None:
    return None if single_op(op) else "devices can be made to combine values by a single op only"


#: Ops whose results are computed in the wider type, and reduced to the narrow one.
_COMPUTED: Final = (
    *("abs", "add", "divide", "multiply", "negate", "not", "power", "remainder", "shift_left", "subtract"),
    *("dynamic_iota", "iota"),
    *("convolution", "dot", "dot_general", "dynamic_conv"),
)
#: Ops whose results the wider type has as they are.
_CLOSED: Final = ("and", "or", "sign", "xor")

_RULES: Final[Rules] = {
    **{f"stablehlo.{name}": Rule(computed) for name in _COMPUTED},
    **{f"stablehlo.{name}": Rule() for name in _CLOSED},
    "stablehlo.bitcast_convert": Rule(_bitcast, _check_bitcast),
    "stablehlo.constant": Rule(constant),
    "stablehlo.convert": Rule(_convert),
    "stablehlo.count_leading_zeros": _of_bits(lambda bits: bits.apply("count_leading_zeros") - _MISSING),
    "stablehlo.popcnt": _of_bits(lambda bits: bits.apply("popcnt")),
    "stablehlo.shift_right_arithmetic": Rule(_shift_right_arithmetic),
    "stablehlo.shift_right_logical": _of_bits(lambda bits, amount: bits.apply("shift_right_logical", amount)),
    # Between devices, sums of eight bits have the same lowest bits, and XLA needs a reduction by one op.
    **{
        f"stablehlo.{name}": Rule(computed, _check_reduction, body_remains=True)
        for name in ("all_reduce", "reduce_scatter")
    },
}


def EXACT(whole: WholeModule) -> None:  # noqa: N802 - the name by which expansions are found
    change_elements(whole, _TYPES, _RULES)
