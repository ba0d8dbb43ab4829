"""Quantized element types, and arithmetic on the integers in which quantized tensors are stored.

Source: quantized types, and ``dequantize`` and ``quantize`` in ``docs/spec.md`` of openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from vhlo_tools.records import dataclass
from vhlo_tools.rewriting.rewriter import Rewriter
from vhlo_tools.rewriting.tensor import Tensor, spread

_TYPE: Final = re.compile(
    r"!quant\.uniform<(?P<sign>[iu])(?P<bits>\d+)(?:<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)"
    r"(?::(?P<axis>\d+))?, \{?(?P<steps>[^{}]*)\}?>"
)


@dataclass(frozen=True, slots=True)
class Quantization:
    storage: str  # type of the integers
    low: int  # least integer
    high: int  # greatest integer
    expressed: str  # type of the numbers that the integers represent
    axis: int | None  # each slice along it has its own scale; None for one scale
    scales: tuple[float, ...]  # difference of the numbers that two successive integers represent
    zeros: tuple[int, ...]  # integers that represent zero


@cache
def quantization_of(text: str) -> Quantization | None:
    """``None`` if the type is not quantized, or of another form."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    bits, signed = int(match["bits"]), match["sign"] == "i"
    steps = [step.partition(":") for step in match["steps"].split(",")]
    return Quantization(
        storage=f"{'' if signed else 'u'}i{bits}",
        low=int(match["low"] or (-(2 ** (bits - 1)) if signed else 0)),
        high=int(match["high"] or 2 ** (bits - signed) - 1),
        expressed=match["expressed"],
        axis=int(match["axis"]) if match["axis"] else None,
        scales=tuple(float(scale) for scale, _, _ in steps),
        zeros=tuple(int(zero or 0) for _, _, zero in steps),
    )


def dequantized(value: Tensor, quantization: Quantization) -> Tensor:
    rewriter, expressed = value.rewriter, value.rewriter.type(quantization.expressed)
    # The difference to the zero point may need one bit more than the storage.
    distance = value.convert(rewriter.integer(64)) - _spread(
        value, quantization, quantization.zeros, rewriter.integer(64)
    )
    return distance.convert(expressed) * _spread(value, quantization, quantization.scales, expressed)


def quantized(value: Tensor, quantization: Quantization) -> Tensor:
    rewriter, element = value.rewriter, value.element
    steps = value / _spread(value, quantization, quantization.scales, element)
    moved = steps + _spread(value, quantization, quantization.zeros, element)
    least, greatest = (
        rewriter.constant(rewriter.tensor((), element), each) for each in (quantization.low, quantization.high)
    )
    within = Tensor(rewriter, rewriter.make("stablehlo.clamp", [least, moved.value, greatest], moved.type))
    return within.apply("round_nearest_even").convert(rewriter.type(quantization.storage))


def _spread(value: Tensor, quantization: Quantization, numbers: Sequence[float], element: Any) -> Tensor:
    """One number for all elements, or one for each slice, in the shape of ``value``, which may be dynamic."""
    rewriter, axis, shape = value.rewriter, quantization.axis, value.rewriter.shape(value.type)
    if axis is None:
        steps, along = rewriter.constant(rewriter.tensor((), element), numbers[0]), []
    else:
        parts = [rewriter.constant(rewriter.tensor((1,), element), number) for number in numbers]
        type_ = rewriter.tensor((len(numbers),), element)
        steps, along = rewriter.make("stablehlo.concatenate", parts, type_, dimension=rewriter.number(0)), [axis]
    sizes = [rewriter.dimension(value.value, index) for index in range(len(shape))] if None in shape else []
    return Tensor(rewriter, spread(steps, rewriter.tensor(shape, element), along, sizes, rewriter))


def stored_constant(rewriter: Rewriter, type_: Any) -> Any:
    """The type of the constant's attribute has no sign, which ``type_`` may have."""
    value = rewriter.op.attributes["value"]
    constant = rewriter.make("stablehlo.constant", [], value.type, value=value)
    return constant if value.type == type_ else rewriter.make("stablehlo.bitcast_convert", [constant], type_)
