"""The comparison type WEAKORDER of compare, introduced in 1.22.0.

Numbers of floating-point types are in a weak order: zeros of either sign are equal, NaNs are equal to each other
whatever their signs and payloads, and a NaN is greater than every other number. With ``nan(x) = (x != x)``, and all
comparisons on the right of type FLOAT, which is false with a NaN but for NE::

    EQ: (a == b) or (nan(a) and nan(b))         NE: (a != b) and not (nan(a) and nan(b))
    LT: (a < b) or (nan(b) and not nan(a))      GT: (a > b) or (nan(a) and not nan(b))
    LE: (a <= b) or nan(b)                      GE: (a >= b) or nan(a)

The results are the same booleans.

Source: no public text of the specification has this type yet. Its meaning was found by comparing zeros, ones,
infinities and NaNs of both signs, each with each, in jaxlib 0.12.0.1: the reference interpreter (its functions
``weakOrderEq`` and ``weakOrderLt``) and XLA (``ExpandWeakOrderFloatComparison``) agree on all of them, in f32 and bf16.
The verifier accepts only floating-point elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.values import elementwise
from vhlo_tools.rewriting import Build, Rewriter


def _compare(rewriter: Rewriter) -> Sequence[Any] | None:
    attributes = rewriter.op.attributes
    if "compare_type" not in attributes or "WEAKORDER" not in str(attributes["compare_type"]):
        return None
    one, other = rewriter.operands()
    # "#stablehlo<comparison_direction EQ>"
    direction = str(attributes["comparison_direction"]).rstrip(">").split()[-1]

    def compared(how: str, left: Any, right: Any) -> Any:
        return rewriter.make(
            "stablehlo.compare",
            [left, right],
            rewriter.op.results[0].type,
            comparison_direction=rewriter.attribute(f"#stablehlo<comparison_direction {how}>"),
            compare_type=rewriter.attribute("#stablehlo<comparison_type FLOAT>"),
        )

    def is_nan(value: Any) -> Any:
        return compared("NE", value, value)

    def both(left: Any, right: Any) -> Any:
        return elementwise(rewriter, "and", left, right)

    def negated(value: Any) -> Any:
        return elementwise(rewriter, "not", value)

    plain = compared(direction, one, other)
    match direction:
        case "NE":
            return [both(plain, negated(both(is_nan(one), is_nan(other))))]
        case "EQ":
            besides = both(is_nan(one), is_nan(other))
        case "LT":
            besides = both(is_nan(other), negated(is_nan(one)))
        case "GT":
            besides = both(is_nan(one), negated(is_nan(other)))
        case _:
            besides = is_nan(other if direction == "LE" else one)
    return [elementwise(rewriter, "or", plain, besides)]


EXACT: Final[Mapping[str, Build]] = {"stablehlo.compare": _compare}
