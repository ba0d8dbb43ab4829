"""Floats of at most eight bits, held in a wider float that has all their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np

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
from vhlo_tools.conversion.expansion.expanding import ModuleExpansion
from vhlo_tools.conversion.rewriter import Rewriter
from vhlo_tools.conversion.tensor import Tensor, select
from vhlo_tools.records import dataclass

# Formats of narrow floats: rounding to them, and their bits, with ops of wider floats
#
# A format has a sign, an exponent and a mantissa, and is described by data: :data:`FORMATS`. A number of a wider type
# is rounded once, to the nearest number of the format and of two equally near ones to the even one:
#
# - at or above the least normal number, by ``reduce_precision``, which rounds the mantissa;
# - below, to a multiple of the least number. An addition that rounds to it is no choice: XLA of jaxlib 0.10 folds the
#   constants of (x + c) - c;
# - beyond the greatest number, to what the format has there: an infinity, a NaN, or the greatest number.
#
# f8E8M0FNU is a format of its own: powers of two without a sign and without zero, of which two equally near ones yield
# the greater. Numbers that are not positive become NaN, and those below the least power become that.
#
# Source: the section "Types" of the StableHLO specification, and ``APFloat`` in ``llvm/lib/Support/APFloat.cpp`` of
# llvm/llvm-project for the encodings. What a conversion does beyond the range, and with a NaN where there is none, is
# what ml_dtypes and XLA do, with which all bf16 and f16 numbers are compared in the tests. They differ in the sign of
# zeros that NaNs become; the reference interpreter converts zero to the least number of f8E8M0FNU; and XLA rounds what
# is above that and subnormal in f32 to the second least, where the interpreter has the nearest, as it is here.


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
    normal = Tensor(value.rewriter, value.rewriter.reduced_precision(value.value, exponent_bits, format_.mantissa))
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
    held = {
        "dimension_numbers": rewriter.attribute(f"#stablehlo.gather<{where}>"),
        "slice_sizes": rewriter.integers([1]),
    }
    operands = [table, bits.convert(rewriter.integer(32)).value]
    return Tensor(rewriter, rewriter.make("stablehlo.gather", operands, rewriter.tensor(shape, element), **held))


# Floats of at most eight bits, held in a wider float that has all their values
#
# The wider type is f32, for f8E8M0FNU f64. Ops that compute do so in the wider type, and round their results to the
# narrow one, once:
#
# Exact are the ops whose result in the wider type, rounded, is the result rounded from infinite precision. Of a narrow
# type with p bits of precision, sums, products, quotients and square roots in a type of at least 2 p + 2 bits may be
# rounded once more without another outcome (Figueroa, "When is double rounding innocuous?", 1995), where neither type
# leaves the range of its normal numbers: f32 has 24 bits, and the narrow types at most 5; and exponents of f32 are far
# below the least numbers of the narrow types, so that a result below these is rounded once. The remainder of two
# numbers, integers near a number, signs, absolute values and comparisons are exact in the wider type. Conversions from
# f64 round in f64; from integers, f32 is exact up to 2 ** 24, where each of these types has ended.
#
# So the results are those of the specification, and of the reference interpreter and of XLA for each pair of values,
# except for what these get wrong: XLA computes the square root of f8E3M4 in f16, which rounds three of them another
# way, and the interpreter, of jaxlib 0.10.2 and 0.12.0.1, has NaN for integers near f8E3M4. A NaN remains one, maybe
# with other bits.
#
# Relaxed are the ops whose results are up to the implementation: elementary functions, sums of several products with
# results of another type than f32 and f64, sums between devices, where XLA needs a reduction by one op; total orders,
# in which NaNs stand according to their signs; and arithmetic on f8E8M0FNU, which lacks zero and negative numbers, and
# for which engines differ in what they put in their place. Conversions to it are exact where it has the number, or one
# near.
#
# A reduction computes each of its steps in the narrow type, as the specification says, and remains that way. XLA sums
# in f16 before and after conversions, so that its results may differ from those before.
#
# Source: StableHLO specification, the sections of these ops; runs of both engines.

_STORED: Final = "ui8"
_FEED: Final = "array.view(np.uint8)"


def as_wide(value: Tensor, least: str) -> Tensor:
    """In ``least``, or in f64 if they are of it, with the same values as far as the type has them."""
    real = value.part("real")
    return real if str(real.element) == "f64" else real.convert(value.rewriter.type(least))


def _of_format(element: str, format_: Format) -> HeldType:
    def converted(value: Tensor) -> Tensor:
        return rounded_to(as_wide(value, "f32"), format_).convert(value.rewriter.type("f32"))

    return _held_type(
        element,
        format_.numpy,
        "f32",
        rounded=partial(rounded_to, format_=format_),
        converted=converted,
        encoded=partial(encoded, format_=format_),
        decoded=partial(decoded, format_=format_),
    )


def _held_type(element: str, numpy: Any, held: str, **functions: Callable[[Tensor], Tensor]) -> HeldType:
    read = f"it with result.view(ml_dtypes.{numpy.__name__})"
    return HeldType(element=element, numpy=numpy, held=held, stored=_STORED, feed=_FEED, read=read, **functions)


_TYPES: Final[Mapping[str, HeldType]] = {
    **{element: _of_format(element, format_) for element, format_ in FORMATS.items()},
    SCALES: _held_type(
        SCALES,
        SCALES_NUMPY,
        "f64",
        rounded=scale_of,
        converted=lambda value: scale_of(as_wide(value, "f64")),
        encoded=scale_bits,
        decoded=scale_decoded,
    ),
}
#: Types in which both engines sum products of narrow types as they sum those of the same numbers of the type itself.
_WIDE: Final = ("f32", "f64")


# Rules


def _convert(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    (value,), (kind,) = rewriter.op.operands, narrow.results
    if kind is None:
        return [rewriter.convert(value, rewriter.op.results[0].type.element_type)]
    return [kind.converted(Tensor(rewriter, value)).value]


def _bitcast(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    (taken,), (given,) = narrow.operands, narrow.results
    value = Tensor(rewriter, rewriter.op.operands[0])
    stored = rewriter.type(_STORED)
    bits = taken.encoded(value) if taken else value.bits(stored)
    return [(given.decoded(bits) if given else bits.bits(rewriter.op.results[0].type.element_type)).value]


def _check_bitcast(op: Operation, narrow: Narrow) -> str | None:
    types = [str(value.type.element_type) for value in (op.operands[0], op.results[0])]
    kinds = zip((*narrow.operands, *narrow.results), types, strict=True)
    if all(kind.element.startswith("f8") if kind else type_ in _EIGHT_BITS for kind, type_ in kinds):
        return None
    return "elements of another number of bits than 8 share the bits of several"


_EIGHT_BITS: Final = frozenset({"i8", "ui8", "f8E4M3FN", "f8E5M2", *(name for name in _TYPES if name.startswith("f8"))})


def _product(rewriter: Rewriter, narrow: Narrow) -> Sequence[Any]:
    """The operands get the type of the result."""
    lhs, rhs, *others = rewriter.op.operands
    type_ = rewriter.op.results[0].type
    element = type_.element_type
    values = [rewriter.convert(each, element) for each in (lhs, rhs)]
    return rounded(rewriter, rewriter.make_like([*values, *others], [type_]), narrow)


def _check_product(op: Operation, narrow: Narrow) -> str | None:
    if found := _check_algorithm(op, narrow):
        return found
    if narrow.results[0]:
        return f"how sums of {narrow.results[0].element} are rounded is up to the implementation"
    element = str(op.results[0].type.element_type)
    return None if element in _WIDE else f"how sums of {element} are rounded is up to the implementation"


def _check_algorithm(op: Operation, narrow: Narrow) -> str | None:
    return "its algorithm is one for these types" if "algorithm" in op.attributes else None


def _check_arithmetic(op: Operation, narrow: Narrow) -> str | None:
    if any(kind and kind.element == SCALES for kind in (*narrow.operands, *narrow.results)):
        return f"{SCALES} has neither zero nor negative numbers, and engines differ in what becomes of such results"
    return None


def _check_order(op: Operation, narrow: Narrow) -> str | None:
    if "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"]):
        return "a total order tells NaNs apart by their bits, and only that they are NaN is held"
    return None


def _check_reduction(op: Operation, narrow: Narrow) -> str | None:
    return None if single_op(op) else "devices can be made to combine values by a single op only"


def _check_choice(op: Operation, narrow: Narrow) -> str | None:
    if single_op(op) in ("stablehlo.maximum", "stablehlo.minimum"):
        return None
    return "how a sum between devices is rounded is up to the implementation"


#: Ops whose results are those of the wider type, rounded.
_ROUNDED: Final = (
    *("add", "ceil", "divide", "floor", "multiply", "negate", "remainder", "round_nearest_afz"),
    *("round_nearest_even", "sign", "sqrt", "subtract"),
    *("dynamic_iota", "iota"),
)
#: Ops whose results the wider type has as they are.
_CLOSED: Final = ("abs", "is_finite")
#: Ops whose results are approximations.
_ELEMENTARY: Final = (
    *("atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "power"),
    *("rsqrt", "sine", "tan", "tanh"),
)
_PRODUCTS: Final = ("convolution", "dot", "dot_general", "dynamic_conv")
_REDUCTIONS: Final = ("all_reduce", "reduce_scatter")


def _named(names: Sequence[str], rule: Rule) -> Rules:
    return {f"stablehlo.{name}": rule for name in names}


_BOTH: Final[Rules] = {
    **_named(_CLOSED, Rule()),
    **_named(["bitcast_convert"], Rule(_bitcast, _check_bitcast)),
    **_named(["constant"], Rule(constant)),
    **_named(["convert"], Rule(_convert)),
}


_EXACT: Final[Rules] = {
    **_BOTH,
    **_named(_ROUNDED, Rule(computed, _check_arithmetic)),
    **_named(_PRODUCTS, Rule(_product, _check_product)),
    **_named(_REDUCTIONS, Rule(computed, _check_choice, body_remains=True)),
    **_named(["compare"], Rule(check=_check_order)),
    # Left to the relaxed expansion.
    **_named(_ELEMENTARY, Rule(check=lambda op, narrow: "how its results are rounded is up to the implementation")),
}
_RELAXED: Final[Rules] = {
    **_BOTH,
    **_named([*_ROUNDED, *_ELEMENTARY], Rule(computed)),
    **_named(_PRODUCTS, Rule(_product, _check_algorithm)),
    **_named(_REDUCTIONS, Rule(computed, _check_reduction, body_remains=True)),
}


def _expansions(*elements: str) -> tuple[ModuleExpansion, ModuleExpansion]:
    """Return the exact and the relaxed expansion."""
    kinds = [_TYPES[element] for element in elements]
    return partial(change_elements, kinds=kinds, rules=_EXACT), partial(change_elements, kinds=kinds, rules=_RELAXED)


# Introduced in 0.10.0, 0.11.0 and 1.7.0, and those of microscaling formats in 1.8.0.
FLOATS_WITHOUT_INFINITY_EXACT, FLOATS_WITHOUT_INFINITY_RELAXED = _expansions("f8E4M3FNUZ", "f8E5M2FNUZ")
FLOATS_OF_BIAS_11_EXACT, FLOATS_OF_BIAS_11_RELAXED = _expansions("f8E4M3B11FNUZ")
FLOATS_WITH_INFINITY_EXACT, FLOATS_WITH_INFINITY_RELAXED = _expansions("f8E4M3", "f8E3M4")
MX_FLOATS_EXACT, MX_FLOATS_RELAXED = _expansions("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU")
