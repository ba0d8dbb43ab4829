"""Floats of four and six bits, which have no infinity and no NaN: computed in f32 if either may occur.

Measured: the interpreter converts an infinity to zero, where XLA on a CPU and ml_dtypes return the greatest number,
and rounding of f6E2M3FN yields zero. A NaN becomes minus zero, as in XLA and ml_dtypes.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.reference.lowering.lowering_patterns import apply_required
from vhlo_tools.rewriting import Rewriter, Tensor, patterns_of, select, tensors

_GREATEST: Final = {"f4E2M1FN": 6.0, "f6E2M3FN": 7.5, "f6E3M2FN": 28.0}
_REWRITTEN: Final = ops_where(lambda traits: "narrow floats" in traits.rewritings)


def has_narrow_floats(text: str) -> bool:
    return any(element in text for element in _GREATEST)


def widen_narrow_floats(provider: Provider, module: ModuleOp, name: str) -> None:
    apply_required(provider, module, NARROW_FLOAT_PATTERNS, name)


def _computed(rewriter: Rewriter) -> list[Any] | None:
    type_ = rewriter.op.results[0].type
    if str(type_.element_type) not in _GREATEST:
        return None
    wide = [each.convert(rewriter.type("f32")) for each in tensors(rewriter)]
    (value,) = rewriter.make_like([each.value for each in wide], [wide[0].type])
    return [_narrowed(Tensor(rewriter, value), type_)]


def _converted(rewriter: Rewriter) -> list[Any] | None:
    (value,) = tensors(rewriter)
    type_ = rewriter.op.results[0].type
    if str(type_.element_type) not in _GREATEST or not _has_infinities(rewriter, value.element):
        return None
    return [_narrowed(value, type_)]


def _has_infinities(rewriter: Rewriter, element: Any) -> bool:
    return not (rewriter.is_integer(element) or rewriter.is_complex(element) or str(element) in _GREATEST)


def _narrowed(value: Tensor, type_: Any) -> Any:
    """Via f64, which represents all numbers of the operand."""
    wide = value.convert(value.rewriter.type("f64"))
    greatest = _GREATEST[str(type_.element_type)]
    number = select(wide.compare("EQ", wide), wide, -0.0)
    return number.apply("minimum", greatest).apply("maximum", -greatest).convert(type_.element_type).value


NARROW_FLOAT_PATTERNS: Final = patterns_of(
    {**dict.fromkeys(_REWRITTEN, _computed), "stablehlo.convert": _converted},
    required=True,
)
