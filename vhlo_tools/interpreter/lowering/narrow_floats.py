"""Floats of four and six bits, which have no infinity and no NaN: computed in f32 where either may come up.

Measured: the interpreter makes zero of an infinity, where XLA on a CPU and ml_dtypes make the greatest number, and it
rounds f6E2M3FN to zero. A NaN becomes minus zero, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.interpreter.lowering.rules import Rule, apply_rules
from vhlo_tools.interpreter.lowering.tensor import Tensor, select, tensors
from vhlo_tools.portable.site import Site

__all__ = ["has_narrow_floats", "widen_narrow_floats"]

_GREATEST: Final = {"f4E2M1FN": 6.0, "f6E2M3FN": 7.5, "f6E3M2FN": 28.0}
_COMPUTED: Final = (
    "ceil",
    "divide",
    "floor",
    "log",
    "log_plus_one",
    "power",
    "remainder",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "tan",
)


def has_narrow_floats(text: str) -> bool:
    """Tell whether a program, which is printed as ``text``, has floats of four or six bits."""
    return any(element in text for element in _GREATEST)


def widen_narrow_floats(provider: Provider, module: ModuleOp, name: str) -> None:
    """Compute in f32 what could go beyond the narrow floats of ``module``, in place.

    Args:
        provider: The bindings.
        module: The program, with its shapes resolved.
        name: What to call it in messages.

    Raises:
        EngineError: Naming an op whose shape is not known.
        MLIRFailure: If what was built is not valid.
    """
    apply_rules(provider, module, _RULES, name)


def _computed(site: Site) -> list[Any] | None:
    kind = site.op.results[0].type
    if str(kind.element_type) not in _GREATEST:
        return None
    wide = [each.convert(site.kind("f32")) for each in tensors(site)]
    (value,) = site.make_again([each.value for each in wide], [wide[0].kind])
    return [_narrowed(Tensor(site, value), kind)]


def _converted(site: Site) -> list[Any] | None:
    (value,) = tensors(site)
    kind = site.op.results[0].type
    if str(kind.element_type) not in _GREATEST or not _has_infinities(site, value.element):
        return None
    return [_narrowed(value, kind)]


def _has_infinities(site: Site, element: Any) -> bool:
    return not (site.is_integer(element) or site.is_complex(element) or str(element) in _GREATEST)


def _narrowed(value: Tensor, kind: Any) -> Any:
    """Return ``value`` in a type of narrow floats, the nearest of them; through f64, which has any of the numbers."""
    wide = value.convert(value.site.kind("f64"))
    greatest = _GREATEST[str(kind.element_type)]
    number = select(wide.compare("EQ", wide), wide, -0.0)
    return number.apply("minimum", greatest).apply("maximum", -greatest).convert(kind.element_type).value


_RULES: Final[Mapping[str, Rule]] = {
    **{f"stablehlo.{name}": _computed for name in _COMPUTED},
    "stablehlo.convert": _converted,
}
