"""Formats of narrow floats: rounding to them, and their bits, with ops of wider floats.

A format has a sign, an exponent and a mantissa, and is described by data: :data:`FORMATS`. A number of a wider type is
rounded once, to the nearest number of the format and of two equally near ones to the even one:

- at or above the least normal number, by ``reduce_precision``, which rounds the mantissa;
- below, to a multiple of the least number. An addition that rounds to it is no choice: XLA of jaxlib 0.10 folds the
  constants of (x + c) - c;
- beyond the greatest number, to what the format has there: an infinity, a NaN, or the greatest number.

f8E8M0FNU is a format of its own: powers of two without a sign and without zero, of which two equally near ones yield
the greater. Numbers that are not positive become NaN, and those below the least power become that.

Source: the section "Types" of the StableHLO specification, and ``APFloat`` in ``llvm/lib/Support/APFloat.cpp`` of
llvm/llvm-project for the encodings. What a conversion does beyond the range, and with a NaN where there is none, is
what ml_dtypes and XLA do, with which all bf16 and f16 numbers are compared in the tests. They differ in the sign of
zeros that NaNs become; the reference interpreter converts zero to the least number of f8E8M0FNU; and XLA rounds what is
above that and subnormal in f32 to the second least, where the interpreter has the nearest, as it is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np

from vhlo_tools.records import dataclass
from vhlo_tools.rewriting import Rewriter, Tensor, select


@dataclass(frozen=True, slots=True)
class Format:
    numpy: Any
    bits: int
    mantissa: int  # number of its bits
    bias: int  # added to exponents
    greatest: float
    beyond: Literal["infinity", "nan", "greatest"]  # what numbers beyond the greatest become
    not_a_number: int | None  # bits of a NaN; None if there is none, and zeros with a sign are in its place
    signed_zero: bool = True

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The least number above zero."""
        return self.least_normal * 2.0**-self.mantissa


FORMATS: Final[Mapping[str, Format]] = {
    "f4E2M1FN": Format(ml_dtypes.float4_e2m1fn, 4, 1, 1, 6.0, "greatest", None),
    "f6E2M3FN": Format(ml_dtypes.float6_e2m3fn, 6, 3, 1, 7.5, "greatest", None),
    "f6E3M2FN": Format(ml_dtypes.float6_e3m2fn, 6, 2, 3, 28.0, "greatest", None),
    "f8E3M4": Format(ml_dtypes.float8_e3m4, 8, 4, 3, 15.5, "infinity", 0x78),
    "f8E4M3": Format(ml_dtypes.float8_e4m3, 8, 3, 7, 240.0, "infinity", 0x7C),
    "f8E4M3B11FNUZ": Format(ml_dtypes.float8_e4m3b11fnuz, 8, 3, 11, 30.0, "nan", 0x80, signed_zero=False),
    "f8E4M3FNUZ": Format(ml_dtypes.float8_e4m3fnuz, 8, 3, 8, 240.0, "nan", 0x80, signed_zero=False),
    "f8E5M2FNUZ": Format(ml_dtypes.float8_e5m2fnuz, 8, 2, 16, 57344.0, "nan", 0x80, signed_zero=False),
}
#: The format of powers of two, held in f64: f32 has the least one as a subnormal number, which XLA takes for zero.
SCALES: Final = "f8E8M0FNU"
SCALES_NUMPY: Final = ml_dtypes.float8_e8m0fnu
_F32_MANTISSA: Final = 23
_F32_BIAS: Final = 127
_F64_MANTISSA: Final = 52
_F64_BIAS: Final = 1023
_SCALES_BIAS: Final = 127


def rounded_to(value: Tensor, format_: Format) -> Tensor:
    """The numbers are of f32 or f64, and remain of that type."""
    exponent_bits = 11 if value.element == value.rewriter.type("f64") else 8
    normal = _reduced(value, exponent_bits, format_.mantissa)
    subnormal = (value * (1 / format_.least)).apply("round_nearest_even") * format_.least
    result = select(value.apply("abs").compare("LT", format_.least_normal), subnormal, normal)
    if format_.beyond == "greatest":
        result = result.apply("minimum", format_.greatest).apply("maximum", -format_.greatest)
    else:
        is_beyond = result.apply("abs").compare("GT", format_.greatest)
        result = select(is_beyond, value * inf if format_.beyond == "infinity" else nan, result)
    if format_.not_a_number is None:
        result = select(value.compare("EQ", value), result, -0.0)
    return result if format_.signed_zero else select(result.compare("EQ", 0.0), 0.0, result)


def _reduced(value: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    rewriter = value.rewriter
    held = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    attributes = {name: rewriter.attribute(f"{number} : i32") for name, number in held.items()}
    return Tensor(rewriter, rewriter.make("stablehlo.reduce_precision", [value.value], value.type, **attributes))


def encoded(value: Tensor, format_: Format) -> Tensor:
    """The numbers are held in f32; the bits are ui8."""
    rewriter = value.rewriter
    size = value.apply("abs")
    bits = value.bits(rewriter.integer(32, unsigned=True))
    sign = (bits >> 31) << (format_.bits - 1)
    shifted = (bits & 0x7FFFFFFF) >> (_F32_MANTISSA - format_.mantissa)
    normal = shifted - ((_F32_BIAS - format_.bias) << format_.mantissa)
    subnormal = (size * (1 / format_.least)).convert(bits.element)
    code = select(size.compare("LT", format_.least_normal), subnormal, normal)
    if format_.beyond == "infinity":
        # The exponent of all ones.
        infinity = ((1 << (format_.bits - 1 - format_.mantissa)) - 1) << format_.mantissa
        code = select(size.compare("EQ", inf), infinity, code)
    code = code | sign
    if format_.not_a_number is not None:
        code = select(value.compare("NE", value), format_.not_a_number, code)
    return code.convert(rewriter.integer(8, unsigned=True))


def decoded(bits: Tensor, format_: Format) -> Tensor:
    """Upper bits that the format lacks are ignored; the numbers are held in f32."""
    numbers = np.arange(1 << format_.bits, dtype=np.uint8).view(format_.numpy).astype(np.float32)
    return _looked_up(bits & ((1 << format_.bits) - 1) if format_.bits < 8 else bits, numbers)


def scale_of(value: Tensor) -> Tensor:
    """Numbers of f64 become powers of two of :data:`SCALES`."""
    rewriter = value.rewriter
    bits = value.bits(rewriter.integer(64, unsigned=True))
    half = 1 << (_F64_MANTISSA - 1)
    power = (((bits + half) >> _F64_MANTISSA) << _F64_MANTISSA).bits(value.element)
    power = power.apply("maximum", 2.0**-_SCALES_BIAS)
    power = select(power.compare("GT", 2.0**_SCALES_BIAS), nan, power)
    return select(value.compare("GT", 0.0), power, nan)


def scale_bits(value: Tensor) -> Tensor:
    rewriter = value.rewriter
    bits = value.bits(rewriter.integer(64, unsigned=True)) >> _F64_MANTISSA
    code = select(value.compare("NE", value), 255, bits - (_F64_BIAS - _SCALES_BIAS))
    return code.convert(rewriter.integer(8, unsigned=True))


def scale_decoded(bits: Tensor) -> Tensor:
    return _looked_up(bits, np.arange(256, dtype=np.uint8).view(SCALES_NUMPY).astype(np.float64))


def _looked_up(bits: Tensor, numbers: np.ndarray[Any, Any]) -> Tensor:
    rewriter: Rewriter = bits.rewriter
    element = rewriter.type(f"f{numbers.dtype.itemsize * 8}")
    table = rewriter.dense(rewriter.tensor(numbers.shape, element), numbers)
    shape = rewriter.shape(bits.type)
    where = f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {len(shape)}"
    return Tensor(
        rewriter,
        rewriter.make(
            "stablehlo.gather",
            [table, bits.convert(rewriter.integer(32)).value],
            rewriter.tensor(shape, element),
            dimension_numbers=rewriter.attribute(f"#stablehlo.gather<{where}>"),
            slice_sizes=rewriter.integers([1]),
        ),
    )
