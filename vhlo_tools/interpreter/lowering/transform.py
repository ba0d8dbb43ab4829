"""Fourier transforms, of f32 in f64, and back to real numbers of any length.

Measured: the interpreter of StableHLO 1.17.0 ends the process over f32, and that of 1.22.0 loses bits; both take the
half of a spectrum of odd length for that of an even one.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, concatenate, tensors
from vhlo_tools.portable.site import Site

__all__ = ["fft"]


def fft(site: Site) -> list[Any] | None:
    """Transform in f64, and to an odd length of real numbers from the whole spectrum."""
    (operand,) = tensors(site)
    result = site.op.results[0].type
    lengths = [int(each) for each in site.op.attributes["fft_length"]]
    is_odd = "IRFFT" in str(site.op.attributes["fft_type"]) and lengths[-1] % 2 == 1
    if not is_odd and "f64" in str(operand.element):
        return None
    wide = operand.convert(_doubled(site, operand.element))
    if is_odd:
        whole = _whole(wide, lengths)
        value = _transformed(whole, whole.kind, lengths, "IFFT").part("real")
    else:
        kind = site.tensor(site.static(result), _doubled(site, result.element_type))
        value = _transformed(wide, kind, lengths)
    return [value.convert(result.element_type).value]


def _doubled(site: Site, element: Any) -> Any:
    return site.kind("complex<f64>" if site.is_complex(element) else "f64")


def _transformed(value: Tensor, kind: Any, lengths: list[int], name: str | None = None) -> Tensor:
    site = value.site
    fft_type = site.attribute(f"#stablehlo<fft_type {name}>") if name else site.op.attributes["fft_type"]
    held = {"fft_type": fft_type, "fft_length": site.integers(lengths)}
    return Tensor(site, site.make("stablehlo.fft", [value.value], kind, **held))


def _whole(half: Tensor, lengths: list[int]) -> Tensor:
    """Return the spectrum of real numbers of which ``half`` holds the frequencies from zero up.

    The rest is the conjugate of what stands at the opposite frequencies, in all dimensions that are transformed.
    """
    rank = len(half.shape)
    *leading, last = range(rank - len(lengths), rank)
    rest = half.slice(last, 1, half.shape[last]).conjugate().reverse(last)
    for dimension in leading:
        # Frequency k comes to where -k is: zero stays, and the others turn round.
        zero, others = rest.slice(dimension, 0, 1), rest.slice(dimension, 1, rest.shape[dimension])
        rest = concatenate([zero, others.reverse(dimension)], dimension)
    return concatenate([half, rest], last)
