"""The attribute ``algorithm`` of dot_general, introduced in 1.6.0.

An algorithm rounds the operands to its precision types, or splits them into several components of these types, and
sums the products of the components in its accumulation type. Precision types are independent of the types of the
operands and the result. In the exact expansion the algorithm becomes older ops:

* One primitive operation: operands are converted to the precision type, multiplied by a plain dot_general whose result
  has the accumulation type, and converted to the type of the result. The plain op multiplies and adds in the type of
  its result or in a wider one, so that the product of two bf16 is exact where it accumulates in f32. Its precision is
  HIGHEST, for f32 would otherwise be computed from narrower operands by some consumers.
* 8-bit precision types: operands are rounded to their type, and then converted to bf16, which has every value of these
  types, because a plain dot_general has operands of one type. f8E4M3 and f8E3M4, which are newer than the algorithms,
  are rounded to in f32 or f64.
* tf32 is no type of values: ``reduce_precision`` rounds f32 to its 8 bits of exponent and 10 bits of mantissa, and the
  plain op multiplies f32.
* 3, 6 or 9 primitive operations, with ``a = a0 + a1 (+ a2)``, each component the rounded rest of those before::

      x3: a0 b1 + a1 b0, then + a0 b0
      x6: a0 b2 + a1 b1 + a2 b0, then the terms of x3
      x9: a2 b2, then a1 b2 + a2 b1, then the terms of x6

  in f32, the smallest terms first. Where the sum of ``a0 b0`` is not finite it is the result: the components of
  infinity are infinity and NaN.
* ``allow_imprecise_accumulation`` permits less than the accumulation type, and does not ask for it.

Bounds. With one primitive operation the products are the same numbers, and so is their sum up to the order of
additions, which the specification leaves open. Operands of f64 are rounded to tf32, or split, as f32: a relative error
of 2 ** -24 beside that of the algorithm itself.

With several primitive operations the specification leaves the split open too. Let ``u`` be the greatest relative error
of rounding to a component: 2 ** -8 for bf16, 2 ** -11 for tf32 when rounded to nearest as here, twice that when
truncated. The rest after k components is at most ``u ** k`` of the number, so that for each product ``a b``

* x3 omits ``a1 b1``, and the rests after two components of both: at most ``3 u ** 2 |a b|``, up to higher powers;
* x6 omits ``a1 b2``, ``a2 b1`` and the rests after three components of both: at most ``4 u ** 3 |a b|``;
* x9 omits only these rests: at most ``2 u ** 3 |a b|``; they are none for f32, whose 24 bits are three times 8.

All numbers as long as no component underflows. Any implementation of the algorithm and the expansion are within this
sum of each other, taken once with the ``u`` of each; besides, an f32 sum of n terms has an error of ``n 2 ** -24`` of
the sum of their magnitudes.

The relaxed expansion drops the algorithm, which leaves rounding and accumulation to the consumer.

Sources: the section ``dot_general`` in the specification of openxla/stablehlo; ``getKnownDotAlgorithm`` in its
``stablehlo/dialect/Base.cpp`` for the algorithms there are; G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the
bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (arXiv 1904.06376), sections on the split
and on the products that can be omitted, which the specification cites; dotGeneralOp of ``stablehlo/reference/Ops.cpp``
for the type in which a plain op multiplies: so does XLA on CPUs, which accumulates bf16 in f32. Neither of the two
engines does anything with the attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Final

from vhlo_tools.conversion.expansion.narrow_floats import FORMATS, as_wide, rounded_to
from vhlo_tools.conversion.patterns import Build, discardable
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import Tensor, select
from vhlo_tools.records import dataclass

#: How many components an operand has, by the number of primitive operations.
_COMPONENTS: Final = {3: 2, 6: 3, 9: 3}
#: The bits of the mantissa of the types with the exponents of f32.
_MANTISSA_BITS: Final = {"bf16": 7, "tf32": 10}
#: The types that are newer than the algorithms.
_YOUNG: Final = ("f8E4M3", "f8E3M4")
_FLOATS: Final = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True)
class _Algorithm:
    precisions: tuple[str, str]  # of both operands, as MLIR text
    accumulation: str
    products: int  # number of primitive operations


def algorithm_of(rewriter: Rewriter) -> _Algorithm | None:
    attributes = rewriter.op.attributes
    if "algorithm" not in attributes:
        return None
    fields = dict(re.findall(r"(\w+) = (\w+)", str(attributes["algorithm"])))
    precisions = (fields["lhs_precision_type"], fields["rhs_precision_type"])
    return _Algorithm(precisions, fields["accumulation_type"], int(fields["num_primitive_operations"]))


def without_algorithm(rewriter: Rewriter, algorithm: _Algorithm) -> Sequence[Any]:
    types = [result.type for result in rewriter.op.results]
    return rewriter.make_like(rewriter.operands(), types, algorithm=None)


def expanded_algorithm(rewriter: Rewriter, algorithm: _Algorithm) -> Sequence[Any]:
    type_ = rewriter.op.results[0].type
    for each in (*(value.type for value in rewriter.op.operands), type_):
        if not rewriter.is_number(each) or rewriter.is_integer(each):
            raise MatchFailure(f"an algorithm for {each}, whose elements are not floats")
    precision = algorithm.precisions[0]
    several = algorithm.products > 1
    if several and (precision not in _MANTISSA_BITS or algorithm.products not in _COMPONENTS):
        raise MatchFailure(
            f"{algorithm.products} primitive operations of {precision}: it is not specified what they multiply"
        )
    values = rewriter.operands()
    if several:
        found = _of_components(rewriter, values, precision, algorithm.products)
    else:
        found = _dot(
            rewriter,
            [_rounded(rewriter, *each) for each in zip(values, algorithm.precisions, strict=True)],
            algorithm.accumulation,
        )
    return [rewriter.convert(found, type_.element_type)]


def _rounded(rewriter: Rewriter, value: Any, precision: str) -> Any:
    """In a type that a plain dot_general multiplies."""
    if precision == "tf32":
        value = rewriter.convert(value, rewriter.type("f32"))
        return rewriter.reduced_precision(value, 8, _MANTISSA_BITS[precision])
    if precision == "bf16" and str(value.type.element_type) == "f32":
        # XLA may drop a conversion to bf16 that another one undoes, but no reduce_precision.
        value = rewriter.reduced_precision(value, 8, _MANTISSA_BITS[precision])
    if precision in _YOUNG:
        value = as_wide(Tensor(rewriter, value), "f32")
        return rewriter.convert(rounded_to(value, FORMATS[precision]).value, rewriter.type("bf16"))
    value = rewriter.convert(value, rewriter.type(precision))
    return value if precision in _FLOATS else rewriter.convert(value, rewriter.type("bf16"))


def _dot(rewriter: Rewriter, values: Sequence[Any], accumulation: str) -> Any:
    result = rewriter.op.results[0].type
    type_ = rewriter.tensor(rewriter.shape(result), rewriter.type(accumulation), result.encoding)
    highest = "#stablehlo<precision HIGHEST>"
    precision = rewriter.attribute(f"[{highest}, {highest}]")
    # The driver gives attributes of others to the last op that is built.
    gone = ["algorithm", *discardable(rewriter.op)]
    return rewriter.make_like(values, [type_], without=gone, precision_config=precision)[0]


def _of_components(rewriter: Rewriter, values: Sequence[Any], precision: str, products: int) -> Any:
    count = _COMPONENTS[products]
    left, right = (_components(rewriter, value, precision, count) for value in values)
    sums = []
    # The sum of the places of the components decides how small their product is.
    for place in reversed(range(2 * count - 1 if products == 9 else count)):
        pairs = [(at, place - at) for at in range(count) if 0 <= place - at < count]
        terms = [Tensor(rewriter, _dot(rewriter, [left[one], right[other]], "f32")) for one, other in pairs]
        sums.append(reduce(add, terms))
    *_, great = sums
    type_ = rewriter.tensor(great.rewriter.shape(great.type), rewriter.integer(1))
    is_finite = Tensor(rewriter, rewriter.make("stablehlo.is_finite", [great.value], type_))
    return select(is_finite, reduce(add, sums), great).value


def _components(rewriter: Rewriter, value: Any, precision: str, count: int) -> list[Any]:
    """The greatest component comes first."""
    rest, found = Tensor(rewriter, rewriter.convert(value, rewriter.type("f32"))), []
    for _ in range(count):
        found.append(Tensor(rewriter, rewriter.reduced_precision(rest.value, 8, _MANTISSA_BITS[precision])))
        rest = rest - found[-1]
    return [each.value if precision == "tf32" else each.convert(rewriter.type("bf16")).value for each in found]


def _expanding(build: Callable[[Rewriter, _Algorithm], Sequence[Any]], precision: str = "") -> Mapping[str, Build]:
    """For algorithms with a precision type, or any."""

    def expand(rewriter: Rewriter) -> Sequence[Any] | None:
        algorithm = algorithm_of(rewriter)
        if algorithm is None or (precision and precision not in algorithm.precisions):
            return None
        return build(rewriter, algorithm)

    return {"stablehlo.dot_general": expand}


EXACT: Final = _expanding(expanded_algorithm)
RELAXED: Final = _expanding(without_algorithm)


# Algorithms of dot_general whose precision types are f8E4M3FN, allowed since 1.21.0
#
# They become older ops like all others, in :mod:`vhlo_tools.conversion.expansion.dot_algorithm`. New in 1.21.0 are
# those of 3 and 4 primitive operations, which XLA calls ``ALG_DOT_BF16_BF16_FP8X3`` and ``FP8X4``. No public text says
# what these multiply, and the engines do nothing with them: f8E4M3FN has too few exponents for components without a
# scale, and the scales are not known. Their only expansion is the relaxed one.

DOT_ALGORITHM_F8_EXACT: Final = _expanding(expanded_algorithm, "f8E4M3FN")
DOT_ALGORITHM_F8_RELAXED: Final = _expanding(without_algorithm, "f8E4M3FN")
