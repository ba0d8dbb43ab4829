"""Rules for the dialects ``arith`` and ``math`` on numbers and tensors.

Source: what their ops mean is in ``mlir/include/mlir/Dialect/Arith/IR/ArithOps.td`` and
``mlir/include/mlir/Dialect/Math/IR/MathOps.td`` of llvm/llvm-project, what StableHLO's mean in ``docs/spec.md`` of
openxla/stablehlo. Where results are poison to ``arith``, such as those of a shift by too much, any will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import class_of
from vhlo_tools.portable.rewriting import Rule
from vhlo_tools.portable.site import Site, Unfit

__all__ = ["ARITHMETIC"]

#: Ops with a twin that does the same to operands of the same type.
_TWINS: Final = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.andi": "and",
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
# On booleans these are no arithmetic in StableHLO: a sum is an "or" there, and false is less than true.
_NOT_ON_BOOLEANS: Final = frozenset({"addi", "divsi", "maxsi", "minsi", "muli", "remsi", "subi"})

#: Ops with a twin in CHLO, which is legalized afterwards.
_CHLO_TWINS: Final = {
    f"math.{name}": name for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "sinh")
}

#: Ops with a twin on unsigned integers; those of `arith` have no sign, and are signed to StableHLO.
_UNSIGNED_TWINS: Final = {
    "arith.divui": "divide",
    "arith.maxui": "maximum",
    "arith.minui": "minimum",
    "arith.remui": "remainder",
}

#: Conversions of elements.
_CONVERSIONS: Final = ("extf", "extsi", "fptosi", "index_cast", "sitofp", "truncf", "trunci")
#: Those from unsigned integers. Booleans are 0 and 1 to StableHLO.
_UNSIGNED_CONVERSIONS: Final = ("extui", "index_castui", "uitofp")

# How MLIR spells the only way in which StableHLO rounds: to the nearest, and of two such to the even one.
_NEAREST_EVEN: Final = 0

_INTEGER_PREDICATES: Final = ("EQ", "NE", "LT", "LE", "GT", "GE")
# By number: the direction, and whether the opposite is meant, which is how NaN comes to be unordered.
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


def _check_rounding(site: Site) -> None:
    held = site.op.attributes
    if "roundingmode" in held and held["roundingmode"].value != _NEAREST_EVEN:
        raise Unfit("another rounding than StableHLO's")


def _twin(site: Site) -> Sequence[Any]:
    _check_rounding(site)
    name = str(site.op.name)
    if name.partition(".")[2] in _NOT_ON_BOOLEANS and site.is_integer(site.op.results[0].type, 1):
        raise Unfit("arithmetic of one bit")
    return [site.make(f"stablehlo.{_TWINS[name]}", site.operands(), site.result_type())]


def _chlo_twin(site: Site) -> Sequence[Any]:
    return [site.make(f"chlo.{_CHLO_TWINS[str(site.op.name)]}", site.operands(), site.result_type())]


def _unsigned(site: Site, value: Any) -> Any:
    """Return the bits of ``value`` as unsigned integers."""
    element = value.type.element_type
    kind = site.tensor(site.shape(value.type), site.integer(element.width, unsigned=True))
    return site.make("stablehlo.bitcast_convert", [value], kind)


def _unsigned_twin(site: Site) -> Sequence[Any]:
    result = site.result_type()
    if site.is_integer(result, 1):
        raise Unfit("arithmetic of one bit")
    operands = [_unsigned(site, value) for value in site.operands()]
    value = site.make(f"stablehlo.{_UNSIGNED_TWINS[str(site.op.name)]}", operands, operands[0].type)
    return [site.make("stablehlo.bitcast_convert", [value], result)]


def _constant(site: Site) -> Sequence[Any]:
    result = site.result_type()
    if site.is_complex(result):
        # The bindings have no class for the attribute.
        return [site.renamed("stablehlo.constant")]
    attribute = site.op.attributes["value"]
    if not site.is_tensor(site.op.results[0].type):
        if str(attribute.type) == "index":
            return [site.size(attribute.value)]
        return [site.filled(result, attribute)]
    if result == site.op.results[0].type:
        return [site.make("stablehlo.constant", [], result, value=attribute)]
    if class_of(attribute) != "DenseIntElementsAttr":
        raise Unfit("indices that are not dense")
    if attribute.is_splat:
        # As many as the type says, which may be more than there is memory for.
        return [site.make("stablehlo.constant", [], result, value=site.attribute(f"dense<{attribute[0]}> : {result}"))]
    return [site.reshape(site.sizes([int(each) for each in attribute]), site.static(result))]


def _conversion(site: Site) -> Sequence[Any]:
    _check_rounding(site)
    value, result = site.operand(0), site.result_type()
    # A boolean is -1 where it has a sign, and of a number that becomes one, the lowest bit counts.
    if site.is_integer(value.type, 1) or site.is_integer(result, 1):
        raise Unfit("a conversion of one bit")
    return [site.convert(value, result.element_type)]


def _unsigned_conversion(site: Site) -> Sequence[Any]:
    value, result = site.operand(0), site.result_type()
    if site.is_integer(result, 1):
        raise Unfit("a conversion to one bit")
    bits = value if site.is_integer(value.type, 1) else _unsigned(site, value)
    return [site.convert(bits, result.element_type)]


def _to_unsigned(site: Site) -> Sequence[Any]:
    result = site.result_type()
    if site.is_integer(result, 1):
        raise Unfit("a conversion to one bit")
    element = site.integer(result.element_type.width, unsigned=True)
    return [site.make("stablehlo.bitcast_convert", [site.convert(site.operand(0), element)], result)]


def _bitcast(site: Site) -> Sequence[Any]:
    return [site.make("stablehlo.bitcast_convert", site.operands(), site.result_type())]


def _select(site: Site) -> Sequence[Any]:
    return [site.make("stablehlo.select", site.operands(), site.result_type())]


def _compared(site: Site, operands: Sequence[Any], direction: str) -> Any:
    return site.make(
        "stablehlo.compare",
        operands,
        site.result_type(),
        comparison_direction=site.attribute(f"#stablehlo<comparison_direction {direction}>"),
    )


def _compare_integers(site: Site) -> Sequence[Any]:
    predicate, operands = site.op.attributes["predicate"].value, site.operands()
    # 0 and 1 are the same with a sign and without; then come four with a sign, then four without.
    if site.is_integer(operands[0].type, 1) and predicate > 1:
        raise Unfit("an order of one bit")
    if predicate > 5:
        operands, predicate = [_unsigned(site, value) for value in operands], predicate - 4
    return [_compared(site, operands, _INTEGER_PREDICATES[predicate])]


def _compare_floats(site: Site) -> Sequence[Any]:
    predicate = site.op.attributes["predicate"].value
    if predicate not in _FLOAT_PREDICATES:
        raise Unfit("a comparison that StableHLO does not have")
    direction, opposite = _FLOAT_PREDICATES[predicate]
    value = _compared(site, site.operands(), direction)
    return [site.make("stablehlo.not", [value], value.type) if opposite else value]


#: How ops of `arith` and `math` are replaced.
ARITHMETIC: Final[dict[str, Rule]] = {
    **dict.fromkeys(_TWINS, _twin),
    **dict.fromkeys(_CHLO_TWINS, _chlo_twin),
    **dict.fromkeys(_UNSIGNED_TWINS, _unsigned_twin),
    **{f"arith.{name}": _conversion for name in _CONVERSIONS},
    **{f"arith.{name}": _unsigned_conversion for name in _UNSIGNED_CONVERSIONS},
    "arith.bitcast": _bitcast,
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.constant": _constant,
    "arith.fptoui": _to_unsigned,
    "arith.select": _select,
}
