"""Per-axis quantized types, introduced in 0.18.0, as the integers in which their elements are stored.

Within a block, a tensor of such a type becomes a tensor of integers. Ops that compute on it dequantize it, compute in
floats, and quantize what they give, as the specification defines them; ops that only move elements move the integers.
Tensors with one scale for all elements remain quantized: they are older, and have ops to quantize and dequantize them.

The rewritten program has the results of the specification's formulas, bit for bit: the arithmetic is that of
``dequantize`` and ``quantize``, in the expressed type; differences to zero points are exact, as they have 64 bits.
Where the expressed type lacks the greatest integer of the storage, as f32 does that of i32, these formulas leave it to
implementations what a greater number becomes.

Functions, control flow and other ops with regions pass quantized tensors between blocks, and their types are part of
the signature that a caller relies on: what reaches them remains, and is refused.

Source: quantized types, ``uniform_quantize``, ``uniform_dequantize``, and ``dequantize_op_quantize`` in the StableHLO
specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import Quantization, Tensor, dequantized, quantization_of, quantized, stored_constant

_SIGN: Final = "!quant.uniform<"

#: Ops that have the same effect on the integers whatever they represent.
_OF_STORAGE: Final = ("bitcast_convert", "get_dimension_size")

#: Ops that move elements, and have the same effect on the integers if the scales remain.
_MOVE: Final = "broadcast", "broadcast_in_dim", "dynamic_broadcast_in_dim", "dynamic_reshape", "reshape", "transpose"

#: Ops that compute.
_COMPUTE: Final = "add", "convolution", "dot", "dot_general", "dynamic_conv", "uniform_dequantize", "uniform_quantize"

#: Ops that pass values on to or from other blocks.
_PASS_ON: Final = (
    *("func.call", "func.return", "stablehlo.case", "stablehlo.composite", "stablehlo.custom_call"),
    *("stablehlo.get_tuple_element", "stablehlo.if", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv"),
    *("stablehlo.return", "stablehlo.send", "stablehlo.tuple", "stablehlo.while"),
)

_Kinds = list[Quantization | None]
_Compute = Callable[[Rewriter, list[Any], _Kinds, _Kinds], Sequence[Any]]


def _expanding(compute: _Compute) -> Build:
    """``compute`` gets operands, as integers if per-axis quantized, and the quantization of operands and results."""

    def expand(rewriter: Rewriter) -> Sequence[Any] | None:
        op = rewriter.op
        takes, gives = ([_quantization(value) for value in values] for values in (op.operands, op.results))
        if not any(map(_is_per_axis, (*takes, *gives))):
            return None
        for value in (*op.operands, *op.results):
            if _is_per_axis(_quantization(value)) and value.type.encoding is not None:
                raise MatchFailure(f"bounded sizes: {value.type}")
        given = [
            _integers(rewriter, value) if _is_per_axis(each) else value
            for value, each in zip(op.operands, takes, strict=True)
        ]
        return compute(rewriter, given, takes, gives)

    return expand


def _quantization(value: Any) -> Quantization | None:
    text = str(getattr(value.type, "element_type", value.type))
    found = quantization_of(text)
    if found is None and _SIGN in text:
        raise MatchFailure(f"the quantized type {text}")
    return found


def _is_per_axis(quantization: Quantization | None) -> bool:
    return quantization is not None and quantization.axis is not None


def _integers(rewriter: Rewriter, value: Any) -> Any:
    found = rewriter.converted(value)
    if found.type != value.type:
        return found
    giver = getattr(value.owner, "name", None)
    passed = f"{giver} gives" if giver else "a function or a region takes"
    raise MatchFailure(f"{passed} {value.type}: what is passed on between blocks remains quantized")


def _stored(rewriter: Rewriter, type_: Any, quantization: Quantization | None) -> Any:
    """A type that is not per-axis quantized is returned as it is."""
    if quantization is None or quantization.axis is None:
        return type_
    return rewriter.tensor(rewriter.shape(type_), rewriter.type(quantization.storage))


def _of_storage(rewriter: Rewriter, given: list[Any], takes: _Kinds, gives: _Kinds) -> Sequence[Any]:
    types = [_stored(rewriter, value.type, each) for value, each in zip(rewriter.op.results, gives, strict=True)]
    return rewriter.make_like(given, types)


def _move(rewriter: Rewriter, given: list[Any], takes: _Kinds, gives: _Kinds) -> Sequence[Any]:
    # The number of the dimension may change.
    are_same = len({replace(each, axis=None) for each in (*takes, *gives) if each}) == 1
    return (_of_storage if are_same else _compute)(rewriter, given, takes, gives)


def _compute(rewriter: Rewriter, given: list[Any], takes: _Kinds, gives: _Kinds) -> Sequence[Any]:
    numbers = [_numbers(rewriter, value, each) for value, each in zip(given, takes, strict=True)]
    results = rewriter.op.results
    if str(rewriter.op.name) not in ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"):
        types = [
            rewriter.tensor(rewriter.shape(value.type), rewriter.type(each.expressed)) if each else value.type
            for value, each in zip(results, gives, strict=True)
        ]
        numbers = rewriter.make_like(numbers, types)
    return [
        _of_numbers(rewriter, number, value.type, each)
        for number, value, each in zip(numbers, results, gives, strict=True)
    ]


def _numbers(rewriter: Rewriter, value: Any, quantization: Quantization | None) -> Any:
    """The numbers of a quantized tensor, or of the integers of one; any other value as it is."""
    if quantization is None:
        return value
    if quantization.axis is not None:
        return dequantized(Tensor(rewriter, value), quantization).value
    type_ = rewriter.tensor(rewriter.shape(value.type), rewriter.type(quantization.expressed))
    return rewriter.make("stablehlo.uniform_dequantize", [value], type_)


def _of_numbers(rewriter: Rewriter, numbers: Any, type_: Any, quantization: Quantization | None) -> Any:
    """Integers for a per-axis quantized type, a quantized tensor for another quantized one."""
    if quantization is None:
        return numbers
    if quantization.axis is not None:
        return quantized(Tensor(rewriter, numbers), quantization).value
    return rewriter.make("stablehlo.uniform_quantize", [numbers], type_)


def _constant(rewriter: Rewriter, given: list[Any], takes: _Kinds, gives: _Kinds) -> Sequence[Any]:
    return [stored_constant(rewriter, _stored(rewriter, rewriter.op.results[0].type, gives[0]))]


def _refused(rewriter: Rewriter) -> Sequence[Any] | None:
    if any(_is_per_axis(_quantization(value)) for value in (*rewriter.op.operands, *rewriter.op.results)):
        raise MatchFailure(f"{rewriter.op.name} passes it on between blocks, where it remains quantized")
    return None


EXACT: Final[Mapping[str, Build]] = {
    "stablehlo.constant": _expanding(_constant),
    **{f"stablehlo.{name}": _expanding(_of_storage) for name in _OF_STORAGE},
    **{f"stablehlo.{name}": _expanding(_move) for name in _MOVE},
    **{f"stablehlo.{name}": _expanding(_compute) for name in _COMPUTE},
    **dict.fromkeys(_PASS_ON, _refused),
}
