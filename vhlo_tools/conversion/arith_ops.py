"""Patterns for the dialects ``arith`` and ``math`` on numbers and tensors.

Source: their ops are specified in ``mlir/include/mlir/Dialect/Arith/IR/ArithOps.td`` and
``mlir/include/mlir/Dialect/Math/IR/MathOps.td`` of llvm/llvm-project, those of StableHLO in ``docs/spec.md`` of
openxla/stablehlo. Where results are poison in ``arith``, such as those of an oversized shift, any result is correct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import class_of
from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter

#: Ops with an equivalent in StableHLO on operands of the same type.
_ONE_TO_ONE: Final = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.andi": "and",
    "arith.bitcast": "bitcast_convert",
    "arith.divf": "divide",
    "arith.divsi": "divide",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.mulf": "multiply",
    "arith.muli": "multiply",
    "arith.negf": "negate",
    "arith.ori": "or",
    "arith.remf": "remainder",
    "arith.remsi": "remainder",
    "arith.select": "select",
    "arith.shli": "shift_left",
    "arith.shrsi": "shift_right_arithmetic",
    "arith.shrui": "shift_right_logical",
    "arith.subf": "subtract",
    "arith.subi": "subtract",
    "arith.xori": "xor",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.atan2": "atan2",
    "math.cbrt": "cbrt",
    "math.ceil": "ceil",
    "math.cos": "cosine",
    "math.ctlz": "count_leading_zeros",
    "math.ctpop": "popcnt",
    "math.exp": "exponential",
    "math.expm1": "exponential_minus_one",
    "math.floor": "floor",
    "math.log": "log",
    "math.log1p": "log_plus_one",
    "math.powf": "power",
    "math.round": "round_nearest_afz",
    "math.roundeven": "round_nearest_even",
    "math.rsqrt": "rsqrt",
    "math.sin": "sine",
    "math.sqrt": "sqrt",
    "math.tan": "tan",
    "math.tanh": "tanh",
}
# On booleans StableHLO defines these logically: a sum is an "or", and false is less than true.
_NOT_ON_BOOLEANS: Final = frozenset({"addi", "divsi", "maxsi", "minsi", "muli", "remsi", "subi"})

#: Ops with an equivalent of the same name in CHLO, which is legalized afterwards.
_IN_CHLO: Final = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "sinh")

#: Ops with an equivalent on unsigned integers; integers of `arith` are signless, and StableHLO treats them as signed.
_UNSIGNED_TWINS: Final = {
    "arith.divui": "divide",
    "arith.maxui": "maximum",
    "arith.minui": "minimum",
    "arith.remui": "remainder",
}

#: Conversions of elements.
_CONVERSIONS: Final = ("extf", "extsi", "fptosi", "index_cast", "sitofp", "truncf", "trunci")
#: Conversions from unsigned integers. Booleans are 0 and 1 in StableHLO.
_UNSIGNED_CONVERSIONS: Final = ("extui", "index_castui", "uitofp")

# MLIR's number of the only rounding mode of StableHLO: to nearest, ties to even.
_NEAREST_EVEN: Final = 0

_INTEGER_PREDICATES: Final = ("EQ", "NE", "LT", "LE", "GT", "GE")
# By number: the direction, and whether the result is negated, which makes comparisons with NaN unordered.
_FLOAT_PREDICATES: Final = {
    1: ("EQ", False),
    2: ("GT", False),
    3: ("GE", False),
    4: ("LT", False),
    5: ("LE", False),
    9: ("LE", True),
    10: ("LT", True),
    11: ("GE", True),
    12: ("GT", True),
    13: ("NE", False),
}


def _check_rounding(rewriter: Rewriter) -> None:
    held = rewriter.op.attributes
    if "roundingmode" in held and held["roundingmode"].value != _NEAREST_EVEN:
        raise MatchFailure("a rounding mode that StableHLO does not have")


def _twin(rewriter: Rewriter) -> Sequence[Any]:
    _check_rounding(rewriter)
    name = str(rewriter.op.name)
    if name.partition(".")[2] in _NOT_ON_BOOLEANS and rewriter.is_integer(rewriter.op.results[0].type, 1):
        raise MatchFailure("arithmetic on i1")
    return [rewriter.make(f"stablehlo.{_ONE_TO_ONE[name]}", rewriter.operands(), rewriter.result_type())]


def chlo_twin(rewriter: Rewriter) -> Sequence[Any]:
    name = str(rewriter.op.name).partition(".")[2]
    return [rewriter.make(f"chlo.{name}", rewriter.operands(), rewriter.result_type())]


def _unsigned(rewriter: Rewriter, value: Any) -> Any:
    element = value.type.element_type
    type_ = rewriter.tensor(rewriter.shape(value.type), rewriter.integer(element.width, unsigned=True))
    return rewriter.make("stablehlo.bitcast_convert", [value], type_)


def _unsigned_twin(rewriter: Rewriter) -> Sequence[Any]:
    result = rewriter.result_type()
    if rewriter.is_integer(result, 1):
        raise MatchFailure("arithmetic on i1")
    operands = [_unsigned(rewriter, value) for value in rewriter.operands()]
    value = rewriter.make(f"stablehlo.{_UNSIGNED_TWINS[str(rewriter.op.name)]}", operands, operands[0].type)
    return [rewriter.make("stablehlo.bitcast_convert", [value], result)]


def _constant(rewriter: Rewriter) -> Sequence[Any]:
    result = rewriter.result_type()
    if rewriter.is_complex(result):
        # The bindings have no class for the attribute.
        return [rewriter.renamed("stablehlo.constant")]
    attribute = rewriter.op.attributes["value"]
    if not rewriter.is_tensor(rewriter.op.results[0].type):
        if str(attribute.type) == "index":
            return [rewriter.size(attribute.value)]
        return [rewriter.filled(result, attribute)]
    if result == rewriter.op.results[0].type:
        return [rewriter.make("stablehlo.constant", [], result, value=attribute)]
    if class_of(attribute) != "DenseIntElementsAttr":
        raise MatchFailure("indices that are not dense")
    if attribute.is_splat:
        # A splat may have more elements than memory can hold.
        splat = rewriter.attribute(f"dense<{attribute[0]}> : {result}")
        return [rewriter.make("stablehlo.constant", [], result, value=splat)]
    return [rewriter.reshape(rewriter.sizes([int(each) for each in attribute]), rewriter.static(result))]


def _conversion(rewriter: Rewriter) -> Sequence[Any]:
    _check_rounding(rewriter)
    value, result = rewriter.operand(0), rewriter.result_type()
    # `arith` converts a boolean as signed, to -1, and a number to a boolean by its lowest bit.
    if rewriter.is_integer(value.type, 1) or rewriter.is_integer(result, 1):
        raise MatchFailure("a conversion from i1")
    return [rewriter.convert(value, result.element_type)]


def _unsigned_conversion(rewriter: Rewriter) -> Sequence[Any]:
    value, result = rewriter.operand(0), rewriter.result_type()
    if rewriter.is_integer(result, 1):
        raise MatchFailure("a conversion to i1")
    bits = value if rewriter.is_integer(value.type, 1) else _unsigned(rewriter, value)
    return [rewriter.convert(bits, result.element_type)]


def _to_unsigned(rewriter: Rewriter) -> Sequence[Any]:
    result = rewriter.result_type()
    if rewriter.is_integer(result, 1):
        raise MatchFailure("a conversion to i1")
    element = rewriter.integer(result.element_type.width, unsigned=True)
    return [rewriter.make("stablehlo.bitcast_convert", [rewriter.convert(rewriter.operand(0), element)], result)]


def _compare_integers(rewriter: Rewriter) -> Sequence[Any]:
    predicate, operands = rewriter.op.attributes["predicate"].value, rewriter.operands()
    # 0 and 1 are independent of the sign; the next four are signed, the last four unsigned.
    if rewriter.is_integer(operands[0].type, 1) and predicate > 1:
        raise MatchFailure("an order comparison of i1")
    if predicate > 5:
        operands, predicate = [_unsigned(rewriter, value) for value in operands], predicate - 4
    return [rewriter.compare(_INTEGER_PREDICATES[predicate], *operands)]


def _compare_floats(rewriter: Rewriter) -> Sequence[Any]:
    predicate = rewriter.op.attributes["predicate"].value
    if predicate not in _FLOAT_PREDICATES:
        raise MatchFailure("a comparison that StableHLO does not have")
    direction, opposite = _FLOAT_PREDICATES[predicate]
    value = rewriter.compare(direction, *rewriter.operands())
    return [rewriter.make("stablehlo.not", [value], value.type) if opposite else value]


#: The patterns for ops of `arith` and `math`.
ARITHMETIC: Final[dict[str, Build]] = {
    **dict.fromkeys(_ONE_TO_ONE, _twin),
    **dict.fromkeys(_UNSIGNED_TWINS, _unsigned_twin),
    **{f"math.{name}": chlo_twin for name in _IN_CHLO},
    **{f"arith.{name}": _conversion for name in _CONVERSIONS},
    **{f"arith.{name}": _unsigned_conversion for name in _UNSIGNED_CONVERSIONS},
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.constant": _constant,
    "arith.fptoui": _to_unsigned,
}
