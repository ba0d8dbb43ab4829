"""Floats of at most eight bits, held in a wider float that has all their values.

The wider type is f32, for f8E8M0FNU f64. Ops that compute do so in the wider type, and round their results to the
narrow one, once:

Exact are the ops whose result in the wider type, rounded, is the result rounded from infinite precision. Of a narrow
type with p bits of precision, sums, products, quotients and square roots in a type of at least 2 p + 2 bits may be
rounded once more without another outcome (Figueroa, "When is double rounding innocuous?", 1995), where neither type
leaves the range of its normal numbers: f32 has 24 bits, and the narrow types at most 5; and exponents of f32 are far
below the least numbers of the narrow types, so that a result below these is rounded once. The remainder of two
numbers, integers near a number, signs, absolute values and comparisons are exact in the wider type. Conversions from
f64 round in f64; from integers, f32 is exact up to 2 ** 24, where each of these types has ended.

So the results are those of the specification, and of the reference interpreter and of XLA for each pair of values,
except for what these get wrong: XLA computes the square root of f8E3M4 in f16, which rounds three of them another way,
and the interpreter, of jaxlib 0.10.2 and 0.12.0.1, has NaN for integers near f8E3M4. A NaN remains one, maybe with
other bits.

Relaxed are the ops whose results are up to the implementation: elementary functions, sums of several products with
results of another type than f32 and f64, sums between devices, where XLA needs a reduction by one op; total orders, in
which NaNs stand according to their signs; and arithmetic on f8E8M0FNU, which lacks zero and negative numbers, and for
which engines differ in what they put in their place. Conversions to it are exact where it has the number, or one near.

A reduction computes each of its steps in the narrow type, as the specification says, and remains that way. XLA sums in
f16 before and after conversions, so that its results may differ from those before.

Source: StableHLO specification, the sections of these ops; runs of both engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from vhlo_tools.bindings import Operation
from vhlo_tools.expansion.element_types import (
    HeldType,
    Narrow,
    Rule,
    Rules,
    change_elements,
    computed,
    constant,
    rounded,
)
from vhlo_tools.expansion.float_formats import (
    FORMATS,
    SCALES,
    SCALES_NUMPY,
    Format,
    decoded,
    encoded,
    rounded_to,
    scale_bits,
    scale_decoded,
    scale_of,
)
from vhlo_tools.expansion.reducing_bodies import single_op
from vhlo_tools.expansion.whole_module import ModuleExpansion, WholeModule
from vhlo_tools.rewriting import Rewriter, Tensor

_STORED: Final = "ui8"
_FEED: Final = "array.view(np.uint8)"


def _as_wide(value: Tensor, least: str) -> Tensor:
    """In ``least``, or in f64 if they are of it, with the same values as far as the type has them."""
    rewriter = value.rewriter
    real = value.part("real")
    return real if str(real.element) == "f64" else real.convert(rewriter.type(least))


def _of_format(element: str, format_: Format) -> HeldType:
    def converted(value: Tensor) -> Tensor:
        return rounded_to(_as_wide(value, "f32"), format_).convert(value.rewriter.type("f32"))

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
    return HeldType(
        element=element,
        numpy=numpy,
        held=held,
        stored=_STORED,
        feed=_FEED,
        read=f"it with result.view(ml_dtypes.{numpy.__name__})",
        **functions,
    )


_TYPES: Final[Mapping[str, HeldType]] = {
    **{element: _of_format(element, format_) for element, format_ in FORMATS.items()},
    SCALES: _held_type(
        SCALES,
        SCALES_NUMPY,
        "f64",
        rounded=scale_of,
        converted=lambda value: scale_of(_as_wide(value, "f64")),
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
    kinds = (*narrow.operands, *narrow.results)
    if all(kind is not None or type_ in _EIGHT_BITS for kind, type_ in zip(kinds, types, strict=True)) and all(
        kind is None or kind.element.startswith("f8") for kind in kinds
    ):
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


def _left(names: Sequence[str], reason: str) -> Rules:
    """Leaves the ops to the relaxed expansion."""
    return _named(names, Rule(check=lambda op, narrow: reason))


_EXACT: Final[Rules] = {
    **_BOTH,
    **_named(_ROUNDED, Rule(computed, _check_arithmetic)),
    **_named(_PRODUCTS, Rule(_product, _check_product)),
    **_named(_REDUCTIONS, Rule(computed, _check_choice, body_remains=True)),
    **_named(["compare"], Rule(check=_check_order)),
    **_left(_ELEMENTARY, "how its results are rounded is up to the implementation"),
}
_RELAXED: Final[Rules] = {
    **_BOTH,
    **_named([*_ROUNDED, *_ELEMENTARY], Rule(computed)),
    **_named(_PRODUCTS, Rule(_product, _check_algorithm)),
    **_named(_REDUCTIONS, Rule(computed, _check_reduction, body_remains=True)),
}


def exactly(*elements: str) -> ModuleExpansion:
    return partial(_change, elements=elements, rules=_EXACT)


def relaxed(*elements: str) -> ModuleExpansion:
    return partial(_change, elements=elements, rules=_RELAXED)


def _change(whole: WholeModule, elements: Sequence[str], rules: Rules) -> None:
    change_elements(whole, [_TYPES[element] for element in elements], rules)
