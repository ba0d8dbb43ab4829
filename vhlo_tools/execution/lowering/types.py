"""Narrow floats and quantized tensors for the interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.conversion import (
    Quantization,
    Rewriter,
    Tensor,
    dequantized,
    patterns_of,
    quantization_of,
    quantized,
    retype,
    select,
    stored_constant,
    tensors,
    values_of,
)
from vhlo_tools.execution.handlers import refusal
from vhlo_tools.execution.lowering.patterns import apply_required
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.probes import is_instrumentation
from vhlo_tools.records import dataclass

# Floats of up to eight bits: computed in f32, and rounded once
#
# Measured over all values: the interpreter rounds after each step of logistic, whose powers overflow, and changes bits
# in reduce_precision as if each type had infinities and no subnormal numbers (both for floats of 16 bits too); ceil,
# floor and round_nearest_* make NaN of f8E3M4; an infinity becomes a zero of f4E2M1FN, f6E2M3FN and f6E3M2FN, where XLA
# on a CPU and ml_dtypes return the greatest number, and a NaN becomes minus zero; and f8E8M0FNU has a number in place
# of zero, of negative numbers and, where it is converted, of NaN.

_GREATEST: Final = {"f4E2M1FN": 6.0, "f6E2M3FN": 7.5, "f6E3M2FN": 28.0}
#: Powers of two and NaN.
_SCALE: Final = "f8E8M0FNU"
_ALSO_OF_16_BITS: Final = ("stablehlo.logistic", "stablehlo.reduce_precision")
#: Computed from a zero, which one type does not have.
_SUMS: Final = ("stablehlo.convolution", "stablehlo.dot_general")
_REWRITTEN: Final = ops_where(lambda traits: "narrow floats" in traits.rewritings)
_NARROW: Final = re.compile(r"\bf[468]E|xf[468]E|stablehlo[.](logistic|reduce_precision)")


def has_narrow_floats(text: str) -> bool:
    return _NARROW.search(text) is not None


def _computed(rewriter: Rewriter) -> list[Any] | None:
    type_, name = rewriter.op.results[0].type, str(rewriter.op.name)
    is_kept = name in _SUMS and str(type_.element_type) != _SCALE
    if is_kept or not rewriter.is_float(type_, 16 if name in _ALSO_OF_16_BITS else 8):
        return None
    single = rewriter.type("f32")
    wide = [_widened(each, single).value for each in tensors(rewriter)]
    (value,) = rewriter.make_like(wide, [rewriter.tensor(rewriter.shape(type_), single, type_.encoding)])
    return [_narrowed(Tensor(rewriter, value), type_)]


def _converted(rewriter: Rewriter) -> list[Any] | None:
    (value,) = tensors(rewriter)
    type_ = rewriter.op.results[0].type
    has_infinities = rewriter.is_float(value.type) and str(value.element) not in _GREATEST
    if str(type_.element_type) == _SCALE or (str(type_.element_type) in _GREATEST and has_infinities):
        return [_narrowed(value, type_)]
    if str(value.element) == _SCALE and rewriter.is_float(type_):
        return [_widened(value, type_.element_type).value]
    return None


def _widened(value: Tensor, element: Any) -> Tensor:
    wide = value.convert(element)
    return select(value.compare("EQ", value), wide, nan) if str(value.element) == _SCALE else wide


def _narrowed(value: Tensor, type_: Any) -> Any:
    element = type_.element_type
    if str(element) == _SCALE:
        if value.rewriter.is_integer(value.type, 1):
            value = value.convert(value.rewriter.type("f32"))
        return select(value.compare("GT", 0), value.convert(element), nan).value
    greatest = _GREATEST.get(str(element))
    if greatest is None:
        return value.convert(element).value
    # f64 represents all numbers of the operand.
    wide = _widened(value, value.rewriter.type("f64"))
    number = select(wide.compare("EQ", wide), wide, -0.0)
    return number.apply("minimum", greatest).apply("maximum", -greatest).convert(element).value


NARROW_FLOAT_PATTERNS: Final = patterns_of(
    {**dict.fromkeys(_REWRITTEN, _computed), "stablehlo.convert": _converted}, required=True
)


# Quantized tensors as the integers in which they are stored, and arithmetic on them in floats
#
# The interpreter lowers them itself, but treats unsigned storage as signed, uses sums of 32 bits that overflow, and
# supports only some ops. Here an op is rewritten as the specification defines it: dequantize, compute, quantize
# (``dequantize``, ``quantize`` and ``dequantize_op_quantize`` in ``docs/spec.md`` of openxla/stablehlo).

_SIGN: Final = "!quant.uniform<"
#: Ops that pass elements on unchanged, each to a value of the same type, or to their own regions.
_PASS_ON: Final = ops_where(lambda traits: traits.quantized == "passed on")

#: Ops that move elements; the stored integers do not change if all values have the same quantization.
_MOVE: Final = ops_where(lambda traits: traits.quantized == "moved")


def is_quantized(text: str) -> bool:
    return _SIGN in text


def store_quantized(provider: Provider, module: ModuleOp, name: str) -> None:
    ops = provider.walk(module, innermost_first=True)
    # Complete before any rewriting, which creates values of other types.
    plan = [
        _Planned(op, *([_quantization(value, op, name) for value in each] for each in (op.operands, op.results)))
        for op in ops
    ]
    for op in ops:
        for value in values_of(op):
            _quantization(value, op, name)
    retype(provider, module, lambda type_: _stored(provider, module, type_))
    names = {str(planned.op.name) for planned in plan if not planned.keeps_storage}
    # Patterns are applied to the ops in the same order.
    remaining = iter([planned for planned in plan if str(planned.op.name) in names])

    def build(rewriter: Rewriter) -> list[Any] | None:
        planned = next(remaining)
        return None if planned.keeps_storage else [each.value for each in _quantized_results(rewriter, planned)]

    apply_required(provider, module, patterns_of(dict.fromkeys(names, build), required=True), name, retyping=True)
    provider.verify(module)


@dataclass(frozen=True, slots=True)
class _Planned:
    op: Operation
    operands: Sequence[Quantization | None]
    results: Sequence[Quantization | None]

    @property
    def keeps_storage(self) -> bool:
        """Whether the op has the same effect on the integers as on the numbers that these represent."""
        name = str(self.op.name)
        # Moving elements may renumber the dimensions.
        types = {replace(each, axis=None) for each in (*self.operands, *self.results) if each}
        if not types or name in _PASS_ON or is_instrumentation(self.op):
            return True
        return name in _MOVE and len(types) == 1 and all(self.results)


def _quantization(value: Any, op: Operation, name: str) -> Quantization | None:
    text = str(getattr(value.type, "element_type", value.type))
    if _SIGN not in text:
        return None
    parsed = quantization_of(text)
    if parsed is None:
        raise refusal(
            op,
            name,
            f"the quantized type {text} is not supported: expected scales for each tensor, or for each "
            f"slice along one axis",
        )
    return parsed


def _stored(provider: Provider, module: ModuleOp, type_: Any) -> Any:
    quantization = quantization_of(str(type_.element_type))
    if quantization is None:
        return type_
    storage = provider.ir.Type.parse(quantization.storage, module.context)
    return provider.ir.RankedTensorType.get(type_.shape, storage)


def _quantized_results(rewriter: Rewriter, planned: _Planned) -> list[Tensor]:
    name = str(rewriter.op.name)
    if name == "stablehlo.constant":
        return [Tensor(rewriter, stored_constant(rewriter, rewriter.op.results[0].type))]
    given = [Tensor(rewriter, value) for value in rewriter.op.operands]
    numbers = [dequantized(value, each) if each else value for value, each in zip(given, planned.operands, strict=True)]
    if name not in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
        types = [
            rewriter.tensor(rewriter.shape(result.type), rewriter.type(each.expressed)) if each else result.type
            for result, each in zip(rewriter.op.results, planned.results, strict=True)
        ]
        numbers = [Tensor(rewriter, value) for value in rewriter.make_like([each.value for each in numbers], types)]
    return [quantized(value, each) if each else value for value, each in zip(numbers, planned.results, strict=True)]
