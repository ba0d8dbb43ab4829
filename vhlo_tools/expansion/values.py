"""Values that several expansions build, of static and of dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.rewriting import Rewriter


def elementwise(rewriter: Rewriter, name: str, *operands: Any) -> Any:
    """Return the result of an elementwise op of StableHLO, whose type is that of its first operand."""
    return rewriter.make(f"stablehlo.{name}", operands, operands[0].type)


def in_wider_float(rewriter: Rewriter, value: Any, compute: Callable[[Any], Any]) -> Any:
    """Return ``compute`` of ``value``, computed in f32 if its type is a narrower float."""
    element = value.type.element_type
    if getattr(element, "width", 32) >= 32:
        return compute(value)
    return rewriter.convert(compute(rewriter.convert(value, rewriter.type("f32"))), element)
