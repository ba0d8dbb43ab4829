"""Features of elementwise ops: accuracies of results, the ops exp2, fma, log2, tan, and the comparison WEAKORDER."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.artifact import STAND_IN
from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import Tensor, select, tensors

# The attribute ``result_accuracy`` of elementary functions other than exponential, introduced in 1.10.0
#
# The attribute asks for the most accurate implementation of the op (``HIGHEST``), or for one whose error is within a
# tolerance (``TOLERANCE``)::
#
#     |expected - found| <= max(|expected| * max(rtol, ulps * epsilon), atol)
#
# A consumer that cannot satisfy it reports an error. The mode ``DEFAULT`` asks for nothing: a downgrade drops it by
# itself.
#
# No other value has an exact expansion. An op without the attribute promises no accuracy at all, so that there is no
# tolerance, however large, of which it is known that the plain op satisfies it. The relaxed expansion drops the
# attribute.
#
# Source: ``rfcs/20241015-result-accuracy.md`` of openxla/stablehlo for the inequality, and for what the plain op
# promises, the section "Accuracy" of its specification: "does not provide guarantees about numerical accuracy".

_OPS: Final = (
    *("cbrt", "cosine", "exponential_minus_one", "log", "log_plus_one", "logistic"),
    *("rsqrt", "sine", "sqrt", "tan", "tanh"),
)


def asked_accuracy(rewriter: Rewriter) -> str | None:
    """``None`` if the op asks for none, as by ``DEFAULT``."""
    attributes = rewriter.op.attributes
    held = (name for name in ("result_accuracy", f"{STAND_IN}result_accuracy") if name in attributes)
    text = next((str(attributes[name]) for name in held), "")
    return text if "<HIGHEST>" in text or "<TOLERANCE>" in text else None


def without_accuracy(rewriter: Rewriter) -> Sequence[Any] | None:
    if asked_accuracy(rewriter) is None:
        return None
    types = [result.type for result in rewriter.op.results]
    return rewriter.make_like(rewriter.operands(), types, result_accuracy=None)


RESULT_ACCURACY_RELAXED: Final[Mapping[str, Build]] = {f"stablehlo.{name}": without_accuracy for name in _OPS}


# The attribute ``result_accuracy`` of exponential, introduced in 1.9.0
#
# It means the same as that of the other elementary functions: :mod:`vhlo_tools.conversion.expansion.elementwise` says
# why the only expansion is the relaxed one.

EXPONENTIAL_ACCURACY_RELAXED: Final[Mapping[str, Build]] = {"stablehlo.exponential": without_accuracy}


# The op tan, introduced in 1.4.0, as sine over cosine
#
# Real numbers: ``tan x = sin x / cos x``. Types narrower than f32 are computed in f32 and rounded once, so that the
# result is that of exact arithmetic up to half a unit in the last place (ulp) and the error of f32, which is below
# 2 ** -8 ulp of them. In f32 and f64 the errors of sine, cosine (1 ulp each, as libm has) and of the division (1/2 ulp)
# add up to at most 2.5 units of the relative error 2 ** -p, which are at most 5 ulp; cosine is never zero, because no
# number of these types is a multiple of pi / 2.
#
# Complex numbers, with ``e = exp(-2 |b|)`` and ``t = tanh b``, without a subtraction of nearly equal numbers and
# without overflow for large ``b``::
#
#     tan(a + ib) = (sin a cos a (4 e / (1 + e)²) + i t) / (cos² a + sin² a t²)
#
# Every factor has a relative error of a few ulp, and the sum in the denominator has two terms that are not negative, so
# that each part has a relative error of at most 16 ulp.
#
# Source: the formula for tan in ``stablehlo/transforms/StablehloCompatibilityExpanderPatterns.td`` of
# openxla/stablehlo, ``(tan a + i tanh b) / (1 - i tan a tanh b)``, to which the one above is equal.


def _tan(rewriter: Rewriter) -> Sequence[Any]:
    if asked := asked_accuracy(rewriter):
        raise MatchFailure(f"it asks for {asked}, which is not known of a quotient")
    (value,) = tensors(rewriter)
    if rewriter.is_complex(value.type):
        return [_tan_of_complex(value)]
    wide = value.convert(rewriter.type("f32")) if getattr(value.element, "width", 32) < 32 else value
    return [(wide.apply("sine") / wide.apply("cosine")).convert(value.element).value]


def _tan_of_complex(value: Tensor) -> Any:
    a, b = value.part("real"), value.part("imag")
    sine, cosine, tanh, size = a.apply("sine"), a.apply("cosine"), b.apply("tanh"), b.apply("abs")
    falling = (size + size).apply("negate").apply("exponential")
    more, leaning = falling + 1, sine * tanh
    below = cosine * cosine + leaning * leaning
    parts = [(sine * cosine * (falling * 4 / (more * more)) / below).value, (tanh / below).value]
    return value.rewriter.make("stablehlo.complex", parts, value.type)


TANGENT_EXACT: Final[Mapping[str, Build]] = {"stablehlo.tan": _tan}


# The comparison type WEAKORDER of compare, introduced in 1.22.0
#
# Numbers of floating-point types are in a weak order: zeros of either sign are equal, NaNs are equal to each other
# whatever their signs and payloads, and a NaN is greater than every other number. With ``nan(x) = (x != x)``, and all
# comparisons on the right of type FLOAT, which is false with a NaN but for NE::
#
#     EQ: (a == b) or (nan(a) and nan(b))         NE: (a != b) and not (nan(a) and nan(b))
#     LT: (a < b) or (nan(b) and not nan(a))      GT: (a > b) or (nan(a) and not nan(b))
#     LE: (a <= b) or nan(b)                      GE: (a >= b) or nan(a)
#
# The results are the same booleans.
#
# Source: no public text of the specification has this type yet. Its meaning was found by comparing zeros, ones,
# infinities and NaNs of both signs, each with each, in jaxlib 0.12.0.1: the reference interpreter (its functions
# ``weakOrderEq`` and ``weakOrderLt``) and XLA (``ExpandWeakOrderFloatComparison``) agree on all of them, in f32 and
# bf16. The verifier accepts only floating-point elements.


def _compare(rewriter: Rewriter) -> Sequence[Any] | None:
    attributes = rewriter.op.attributes
    if "compare_type" not in attributes or "WEAKORDER" not in str(attributes["compare_type"]):
        return None
    # "#stablehlo<comparison_direction EQ>"
    direction = str(attributes["comparison_direction"]).rstrip(">").split()[-1]
    of_floats = rewriter.attribute("#stablehlo<comparison_type FLOAT>")

    def compared(how: str, left: Any, right: Any) -> Tensor:
        return Tensor(rewriter, rewriter.compare(how, left, right, compare_type=of_floats))

    plain = compared(direction, *rewriter.operands())
    one, other = (compared("NE", value, value) for value in rewriter.operands())
    match direction:
        case "NE":
            found = plain & (one & other).apply("not")
        case "EQ":
            found = plain | one & other
        case "LT":
            found = plain | other & one.apply("not")
        case "GT":
            found = plain | one & other.apply("not")
        case _:
            found = plain | (other if direction == "LE" else one)
    return [found.value]


WEAK_ORDER_EXACT: Final[Mapping[str, Build]] = {"stablehlo.compare": _compare}


# The ops exp2 and log2, introduced in 1.23.0
#
# With ``n`` the integer nearest to x, ``exp2 x = exp((x - n) ln 2) 2 ** n``: the difference is exact and at most 1/2,
# so that the rounding of the product and of the constant are at most 1/2 ulp of the result each, beside the error of
# exp. The power is exact, as two factors whose exponents are halves of ``n``, so that neither overflows before the
# result does; a result below the normal numbers is rounded once more.
#
# With ``x = m 2 ** k`` and m between the roots of 1/2 and 2, ``log2 x = k + log(m) / ln 2``. Near 1, where the
# logarithm is near zero, k is zero; otherwise the sum is at least 1/2, and powers of two are exact. Numbers below the
# normal ones are scaled first. What is not positive, infinite or no number has the logarithm of any base.
#
# Types narrower than f32 are computed in f32 and rounded once. The relaxed expansion drops an accuracy that was asked
# for, and computes exp2 of complex numbers as ``exp(z ln 2)``, whose argument is rounded: the error is the part of z
# times an ulp. Both parts of a complex logarithm are divided by ln 2.
#
# Source: no public text of the specification has the ops yet. Their operands and types are what libtpu 0.0.52 accepts;
# openxla/stablehlo#3007 proposes them with the meaning of IEEE 754.

_LN2: Final = 0.6931471805599453
#: Of f32 and f64: the bits of the mantissa, and the bias of exponents.
_FORMATS: Final = {32: (23, 127), 64: (52, 1023)}


def _unary(real: Callable[[Tensor], Tensor], of_complex: Callable[[Tensor], Tensor] | None, *, relaxed: bool) -> Build:
    def build(rewriter: Rewriter) -> Sequence[Any]:
        if not relaxed and (asked := asked_accuracy(rewriter)):
            raise MatchFailure(f"it asks for {asked}, which is not known of what would replace it")
        (value,) = tensors(rewriter)
        if rewriter.is_complex(value.type):
            if of_complex is None:
                raise MatchFailure("of complex numbers it is less accurate")
            return [of_complex(value).value]
        if not rewriter.is_float(value.type):
            raise MatchFailure(f"a value of type {value.type}")
        wide = value.convert(rewriter.type("f32")) if value.element.width < 32 else value
        return [real(wide).convert(value.element).value]

    return build


def _format(value: Tensor) -> tuple[int, int, Any]:
    """The bits of the mantissa, the bias of exponents, and the integers of the same width."""
    width = value.element.width
    return *_FORMATS[width], value.rewriter.integer(width)


def _exp2(value: Tensor) -> Tensor:
    mantissa, bias, integers = _format(value)
    # Beyond these numbers, the result is zero or infinite.
    within = value.apply("maximum", -(bias + mantissa + 3)).apply("minimum", bias + 2)
    nearest = within.apply("round_nearest_even")
    whole = nearest.convert(integers)
    half = whole.apply("shift_right_arithmetic", 1)
    found = ((within - nearest) * _LN2).apply("exponential")
    for exponent in (half, whole - half):
        found = found * ((exponent + bias) << mantissa).bits(value.element)
    return found


def _exp2_of_complex(value: Tensor) -> Tensor:
    return _parts(value, lambda part: part * _LN2).apply("exponential")


def _log2(value: Tensor) -> Tensor:
    mantissa, bias, integers = _format(value)
    is_small = value.compare("LT", 2.0 ** (1 - bias))
    scaled = select(is_small, value * 2.0 ** (mantissa + 1), value)
    # The root of 1/2, as bits: what is subtracted from them borrows from the exponent where the mantissa is below.
    bits, root = scaled.bits(integers), round(2**mantissa * (2**0.5 - 1)) + ((bias - 1) << mantissa)
    exponent = (bits - root).apply("shift_right_arithmetic", mantissa)
    fraction = (bits - (exponent << mantissa)).bits(value.element)
    power = exponent.convert(value.element) - is_small.convert(value.element) * (mantissa + 1)
    whole = power + fraction.apply("log") * (1 / _LN2)
    is_usual = value.compare("GT", 0) & value.compare("LT", float("inf"))
    return select(is_usual, whole, value.apply("log"))


def _log2_of_complex(value: Tensor) -> Tensor:
    return _parts(value.apply("log"), lambda part: part * (1 / _LN2))


def _parts(value: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    rewriter, parts = value.rewriter, [change(value.part(name)).value for name in ("real", "imag")]
    return Tensor(rewriter, rewriter.make("stablehlo.complex", parts, value.type))


EXP2_EXACT: Final[Mapping[str, Build]] = {"stablehlo.exp2": _unary(_exp2, None, relaxed=False)}
EXP2_RELAXED: Final[Mapping[str, Build]] = {"stablehlo.exp2": _unary(_exp2, _exp2_of_complex, relaxed=True)}
LOG2_EXACT: Final[Mapping[str, Build]] = {"stablehlo.log2": _unary(_log2, _log2_of_complex, relaxed=False)}
LOG2_RELAXED: Final[Mapping[str, Build]] = {"stablehlo.log2": _unary(_log2, _log2_of_complex, relaxed=True)}


# The op fma, introduced in 1.24.0: a * b + c, rounded once, in integers
#
# Computed in f64 and rounded, a sum of f32 is rounded twice, and some become another number; and compilers of TPUs do
# not take the bits of f64. In integers of 64 bits, the product of two mantissas is exact. Product and addend are
# shifted so that their first bits are in the same place, twelve bits of zeros behind the product; the smaller is
# shifted to its exponent, where a last bit stands for all that is lost. Where more than one first bit cancels, nothing
# was lost. The sum is shifted to the place of a mantissa, farther where it is below the normal numbers, and rounded to
# nearest.
#
# Types narrower than f32 are exact in f32. Their sum is rounded to f32 so that the last bit of what is inexact is set
# (round to odd), which then becomes the same number as if rounded once, because f32 has two more bits than they have.
#
# A product of zero, and what is no finite number, need no rounding. In f64, there are no integers that are wide enough:
# the relaxed expansion rounds the product.
#
# Source: for the narrow types, Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
# using rounding to odd", 2008. The operands and types of the op are what libtpu 0.0.52 accepts: all of one float type.

#: The place of the first bit of the product and the addend, and that of their sum.
_FIRST: Final = 59
_SUM: Final = 60
_OF_ZERO: Final = -10_000


def _fma(rewriter: Rewriter) -> Sequence[Any]:
    if not all(rewriter.is_tensor(each.type) and rewriter.is_float(each.type) for each in tensors(rewriter)):
        raise MatchFailure("a value that is no tensor of floats")
    element = rewriter.result_type().element_type
    if element.width > 32:
        raise MatchFailure("no integers are wide enough for the product of two numbers of f64")
    a, b, c = (each.convert(rewriter.type("f32")) for each in tensors(rewriter))
    return [_fused(a, b, c, to_odd=element.width < 32).convert(element).value]


def _fused(a: Tensor, b: Tensor, c: Tensor, *, to_odd: bool) -> Tensor:
    mantissa, bias = _FORMATS[32]
    long, short, infinite = (a.rewriter.integer(64), a.rewriter.integer(32), 255 << mantissa)
    parts = [each.bits(short).convert(long) for each in (a, b, c)]
    exponents = [bits >> mantissa & 255 for bits in parts]
    units = [each.apply("maximum", 1) for each in exponents]
    wholes = [
        (bits & (1 << mantissa) - 1) + (each.apply("minimum", 1) << mantissa)
        for bits, each in zip(parts, exponents, strict=True)
    ]
    signs = [bits.compare("LT", 0) for bits in (parts[0] ^ parts[1], parts[2])]
    product = wholes[0] * wholes[1]
    # Numbers are ``whole * 2 ** (exponent - bias - mantissa)``.
    terms = [
        _shifted(product, units[0] + units[1] - (bias + mantissa), _FIRST),
        _shifted(wholes[2], units[2], _FIRST),
    ]
    greater = terms[0][1].apply("maximum", terms[1][1])
    total: Tensor | None = None
    for (whole, exponent), sign in zip(terms, signs, strict=True):
        kept = _kept(whole, greater - exponent)
        signed = select(sign, kept.apply("negate"), kept)
        total = signed if total is None else total + signed
    assert total is not None
    whole, exponent = _shifted(total.apply("abs"), greater, _SUM)
    exponent = exponent + (_SUM - mantissa)
    dropped = (exponent.apply("negate") + 1).apply("maximum", 0) + (_SUM - mantissa)
    bits = (exponent.apply("maximum", 1) - 1) << mantissa
    if to_odd:
        bits = (bits + _kept(whole, dropped)).apply("minimum", infinite - 1)
    else:
        dropped = dropped.apply("minimum", _SUM + 2)
        kept = whole >> dropped
        lost = (whole - (kept << dropped)) << 1
        unit = (kept - (kept - 1)) << dropped
        up = lost.compare("GT", unit) | (lost.compare("EQ", unit) & (kept & 1).compare("EQ", 1))
        bits = (bits + kept + up.convert(long)).apply("minimum", infinite)
    bits = select(total.compare("EQ", 0), 0, select(total.compare("LT", 0), bits - (1 << 31), bits))
    is_finite = [each.compare("LT", 255) for each in exponents]
    are_factors_finite = is_finite[0] & is_finite[1]
    plain = select(are_factors_finite & is_finite[2].apply("not"), c, a * b + c)
    is_usual = are_factors_finite & is_finite[2] & product.compare("GT", 0)
    return select(is_usual, bits.convert(short).bits(a.element), plain)


def _shifted(whole: Tensor, exponent: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """Shift the first bit to a place; zero has an exponent below all others."""
    by = whole.apply("count_leading_zeros") - (63 - first)
    return whole << by, select(whole.compare("EQ", 0), _OF_ZERO, exponent - by)


def _kept(whole: Tensor, by: Tensor) -> Tensor:
    """Shift to the right; the last bit is set if one is lost."""
    within = by.apply("minimum", 63)
    kept = whole >> within
    return kept | (kept << within).compare("NE", whole).convert(whole.element)


def _rounded_twice(rewriter: Rewriter) -> Sequence[Any]:
    a, b, c = tensors(rewriter)
    return [(a * b + c).value]


FMA_EXACT: Final[Mapping[str, Build]] = {"stablehlo.fma": _fma}
FMA_RELAXED: Final[Mapping[str, Build]] = {"stablehlo.fma": _rounded_twice}
