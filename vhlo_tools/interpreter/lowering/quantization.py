"""Quantized tensors as the integers that they are stored in, and arithmetic on them in floats.

The interpreter lowers them itself, but with signs where there are none, with sums of 32 bits that overflow, and by far
not all ops. Here an op becomes what the specification says of it: dequantize, compute, quantize (``dequantize``,
``quantize`` and ``dequantize_op_quantize`` in ``docs/spec.md`` of openxla/stablehlo).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.interpreter.lowering.retyping import retype, values_of
from vhlo_tools.interpreter.lowering.tensor import Tensor, spread
from vhlo_tools.interpreter.markers import is_marker
from vhlo_tools.interpreter.refusals import refusal
from vhlo_tools.portable.site import Site, Unfit

__all__ = ["is_quantized", "store_quantized"]

_SIGN: Final = "!quant.uniform<"
_TYPE: Final = re.compile(
    r"!quant\.uniform<(?P<sign>[iu])(?P<bits>\d+)(?:<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)"
    r"(?::(?P<axis>\d+))?, \{?(?P<steps>[^{}]*)\}?>"
)

#: Ops that hand elements on, each to where it has the same type, or to their own regions.
_CARRY: Final = frozenset({
    "func.call", "func.func", "func.return", *(
        f"stablehlo.{name}" for name in (
            "bitcast_convert", "case", "composite", "get_dimension_size", "get_tuple_element", "if", "map",
            "optimization_barrier", "reduce", "reduce_window", "return", "scatter", "select_and_scatter", "sort",
            "tuple", "while",
        )
    )
})  # fmt: skip

#: Ops that move elements, which have the same numbers afterwards if they have the same quantization.
_MOVE: Final = frozenset(
    f"stablehlo.{name}" for name in (
        "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad",
        "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "pad", "real_dynamic_slice", "reshape",
        "reverse", "select", "slice", "transpose",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Quantization:
    """A quantized element type.

    Attributes:
        storage: The type of the integers.
        low: The least of them.
        high: The greatest of them.
        expressed: The type of the numbers that they stand for.
        axis: The dimension along which each slice has its own scale; ``None`` if all have the same.
        scales: What one step of the integers is worth.
        zeros: The integers that stand for zero.
    """

    storage: str
    low: int
    high: int
    expressed: str
    axis: int | None
    scales: tuple[float, ...]
    zeros: tuple[int, ...]


def is_quantized(text: str) -> bool:
    """Tell whether a program, which is printed as ``text``, has quantized tensors."""
    return _SIGN in text


def store_quantized(provider: Provider, module: ModuleOp, name: str) -> None:
    """Rewrite quantized tensors as tensors of their storage, in place.

    Args:
        provider: The bindings.
        module: The program.
        name: What to call it in messages.

    Raises:
        EngineError: Naming an op that has no such form.
        MLIRFailure: If what was built is not valid.
    """
    ops = provider.walk(module)
    # All of it first: what is built later holds values of other types.
    plan = [
        _Planned(op, *([_quantization(value, op, name) for value in each] for each in (op.operands, op.results)))
        for op in ops
    ]
    for op in ops:
        for value in values_of(op):
            _quantization(value, op, name)
    retype(provider, module, lambda kind: _stored(provider, module, kind))
    with module.context:
        for planned in plan:
            op = planned.op
            if planned.is_carried:
                continue
            try:
                values = _computed(Site(provider, op, {}), planned)
            except Unfit as unfit:
                raise refusal(op, name, str(unfit)) from unfit
            for result, value in zip(op.results, values, strict=True):
                result.replace_all_uses_with(value.value)
            op.operation.erase()
    provider.verify(module)


@dataclass(frozen=True, slots=True)
class _Planned:
    """An op, and which of its operands and results are quantized."""

    op: Operation
    operands: Sequence[_Quantization | None]
    results: Sequence[_Quantization | None]

    @property
    def is_carried(self) -> bool:
        """Whether the op does the same to the integers as to the numbers that they stand for."""
        name = str(self.op.name)
        # To move elements may be to number the dimensions anew.
        kinds = {replace(each, axis=None) for each in (*self.operands, *self.results) if each}
        if not kinds or name in _CARRY or is_marker(self.op):
            return True
        return name in _MOVE and len(kinds) == 1 and all(self.results)


def _quantization(value: Any, op: Operation, name: str) -> _Quantization | None:
    text = str(getattr(value.type, "element_type", value.type))
    if _SIGN not in text:
        return None
    parsed = _parse(text)
    if parsed is None:
        raise refusal(
            op, name, f"its meaning of {text} is not known here: scales are one for each tensor, or each slice"
        )
    return parsed


@cache
def _parse(text: str) -> _Quantization | None:
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    bits, signed = int(match["bits"]), match["sign"] == "i"
    steps = [step.partition(":") for step in match["steps"].split(",")]
    return _Quantization(
        storage=f"{'' if signed else 'u'}i{bits}",
        low=int(match["low"] or (-(2 ** (bits - 1)) if signed else 0)),
        high=int(match["high"] or 2 ** (bits - signed) - 1),
        expressed=match["expressed"],
        axis=int(match["axis"]) if match["axis"] else None,
        scales=tuple(float(scale) for scale, _, _ in steps),
        zeros=tuple(int(zero or 0) for _, _, zero in steps),
    )


def _stored(provider: Provider, module: ModuleOp, kind: Any) -> Any:
    quantization = _parse(str(kind.element_type))
    if quantization is None:
        return kind
    storage = provider.ir.Type.parse(quantization.storage, module.context)
    return provider.ir.RankedTensorType.get(kind.shape, storage)


def _computed(site: Site, planned: _Planned) -> list[Tensor]:
    """Return what stands for the results of an op that computes."""
    name = str(site.op.name)
    if name == "stablehlo.constant":
        return [Tensor(site, _constant(site))]
    given = [Tensor(site, value) for value in site.op.operands]
    numbers = [
        _dequantized(value, each) if each else value for value, each in zip(given, planned.operands, strict=True)
    ]
    if name not in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
        kinds = [
            site.tensor(site.shape(result.type), site.kind(each.expressed)) if each else result.type
            for result, each in zip(site.op.results, planned.results, strict=True)
        ]
        numbers = [Tensor(site, value) for value in site.make_again([each.value for each in numbers], kinds)]
    return [_quantized(value, each) if each else value for value, each in zip(numbers, planned.results, strict=True)]


def _constant(site: Site) -> Any:
    """Return the constant in its storage, of whose sign its attribute says nothing."""
    kind, value = site.op.results[0].type, site.op.attributes["value"]
    constant = site.make("stablehlo.constant", [], value.type, value=value)
    return constant if value.type == kind else site.make("stablehlo.bitcast_convert", [constant], kind)


def _dequantized(value: Tensor, quantization: _Quantization) -> Tensor:
    site, expressed = value.site, value.site.kind(quantization.expressed)
    # The distance from zero may need a bit more than the storage has.
    distance = value.convert(site.integer(64)) - _spread(value, quantization, quantization.zeros, site.integer(64))
    return distance.convert(expressed) * _spread(value, quantization, quantization.scales, expressed)


def _quantized(value: Tensor, quantization: _Quantization) -> Tensor:
    site, element = value.site, value.element
    steps = value / _spread(value, quantization, quantization.scales, element)
    moved = steps + _spread(value, quantization, quantization.zeros, element)
    least, greatest = (site.constant(site.tensor((), element), each) for each in (quantization.low, quantization.high))
    within = Tensor(site, site.make("stablehlo.clamp", [least, moved.value, greatest], moved.kind))
    return within.apply("round_nearest_even").convert(site.kind(quantization.storage))


def _spread(value: Tensor, quantization: _Quantization, numbers: Sequence[float], element: Any) -> Tensor:
    """Return one number for all elements, or one for each slice, in the shape of ``value``, which may be dynamic."""
    site, axis, shape = value.site, quantization.axis, value.site.shape(value.kind)
    if axis is None:
        steps, along = site.constant(site.tensor((), element), numbers[0]), []
    else:
        parts = [site.constant(site.tensor((1,), element), number) for number in numbers]
        kind = site.tensor((len(numbers),), element)
        steps, along = site.make("stablehlo.concatenate", parts, kind, dimension=site.number(0)), [axis]
    sizes = [site.dimension(value.value, index) for index in range(len(shape))] if None in shape else []
    return Tensor(site, spread(steps, site.tensor(shape, element), along, sizes, site))
