"""Fourier transforms, computed in f64 for f32, and to real numbers of odd length from the whole spectrum.

Measured: the interpreter of StableHLO 1.17.0 crashes on f32, and that of 1.22.0 loses bits; both treat the
half of a spectrum of odd length as that of an even one.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.rewriting import Rewriter, Tensor, concatenate, tensors


def fft(rewriter: Rewriter) -> list[Any] | None:
    (operand,) = tensors(rewriter)
    result = rewriter.op.results[0].type
    lengths = [int(each) for each in rewriter.op.attributes["fft_length"]]
    is_odd = "IRFFT" in str(rewriter.op.attributes["fft_type"]) and lengths[-1] % 2 == 1
    if not is_odd and "f64" in str(operand.element):
        return None
    wide = operand.convert(_doubled(rewriter, operand.element))
    if is_odd:
        whole = _whole(wide, lengths)
        value = _transformed(whole, whole.type, lengths, "IFFT").part("real")
    else:
        type_ = rewriter.tensor(rewriter.static(result), _doubled(rewriter, result.element_type))
        value = _transformed(wide, type_, lengths)
    return [value.convert(result.element_type).value]


def _doubled(rewriter: Rewriter, element: Any) -> Any:
    return rewriter.type("complex<f64>" if rewriter.is_complex(element) else "f64")


def _transformed(value: Tensor, type_: Any, lengths: list[int], name: str | None = None) -> Tensor:
    rewriter = value.rewriter
    fft_type = rewriter.attribute(f"#stablehlo<fft_type {name}>") if name else rewriter.op.attributes["fft_type"]
    held = {"fft_type": fft_type, "fft_length": rewriter.integers(lengths)}
    return Tensor(rewriter, rewriter.make("stablehlo.fft", [value.value], type_, **held))


def _whole(half: Tensor, lengths: list[int]) -> Tensor:
    """``half`` has the frequencies from zero up; the rest is the conjugate at the opposite ones, in all dimensions."""
    rank = len(half.shape)
    *leading, last = range(rank - len(lengths), rank)
    rest = half.slice(last, 1, half.shape[last]).conjugate().reverse(last)
    for dimension in leading:
        # Frequency k moves to -k: zero stays, and the others are reversed.
        zero, others = rest.slice(dimension, 0, 1), rest.slice(dimension, 1, rest.shape[dimension])
        rest = concatenate([zero, others.reverse(dimension)], dimension)
    return concatenate([half, rest], last)
