"""Values that several expansions build, of static and of dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vhlo_tools.rewriting import Rewriter


def elementwise(rewriter: Rewriter, name: str, *operands: Any) -> Any:
    """The result has the type of the first operand."""
    return rewriter.make(f"stablehlo.{name}", operands, operands[0].type)


def in_wider_float(rewriter: Rewriter, value: Any, compute: Callable[[Any], Any]) -> Any:
    """Computes in f32 if the type of the value is a narrower float."""
    element = value.type.element_type
    if getattr(element, "width", 32) >= 32:
        return compute(value)
    return rewriter.convert(compute(rewriter.convert(value, rewriter.type("f32"))), element)
