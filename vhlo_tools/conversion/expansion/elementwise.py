"""Features of elementwise ops: accuracies of results, the op tan, and the comparison WEAKORDER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import Tensor, tensors

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
    text = str(attributes["result_accuracy"]) if "result_accuracy" in attributes else ""
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
