"""Patterns for the types of operands and results, whose sizes depend on each other.

A pattern is written as words: an element type, and the dimensions. ``T * m n`` is a tensor of the element type ``T``
with any batch dimensions, ``m`` rows and ``n`` columns.

- Element types: ``T``, the same wherever it occurs; ``real`` and ``complex``, the real and the complex type of the
  precision of ``T``; any other word is an element type itself.
- Dimensions: ``*`` stands for batch dimensions, the same wherever it occurs, and ``~`` for dimensions of which only the
  number is the same. A name is one size, the same wherever it occurs; ``min(m,n)`` and ``n-1`` are computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Final

from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass

_REAL: Final = {"complex<f32>": "f32", "complex<f64>": "f64"}
_COMPLEX: Final = {"f32": "complex<f32>", "f64": "complex<f64>"}
_EXPRESSION: Final = re.compile(r"min\((\w+),(\w+)\)|(\w+)-1")


@dataclass(slots=True)
class Bindings:
    """Values of the names in the patterns of one call, as far as its types are known."""

    element: str | None = None  # what T stands for
    batch: tuple[int, ...] | None = None  # what * stands for
    rank: int | None = None  # number of the dimensions that ~ stands for
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, dimension: str) -> int | None:
        found = _EXPRESSION.fullmatch(dimension)
        if found is None:
            return int(dimension) if dimension.isdecimal() else self.sizes.get(dimension)
        first, second, reduced = (name and self.sizes.get(name) for name in found.groups())
        if found[3]:
            return None if reduced is None else int(reduced) - 1
        return None if first is None or second is None else min(int(first), int(second))

    def holds(self, condition: str) -> bool:
        """Evaluate a condition such as ``k <= n``; :class:`ValueError` if a size in it is not known."""
        left, sign, right = condition.split()
        sizes = self.size(left), self.size(right)
        if sizes[0] is None or sizes[1] is None or sign not in ("<=", "=="):
            raise ValueError(f"{condition} has no value")
        return sizes[0] <= sizes[1] if sign == "<=" else sizes[0] == sizes[1]


@dataclass(frozen=True, slots=True)
class Pattern:
    element: str
    leading: str  # "*", "~" or empty
    dimensions: tuple[str, ...]

    @staticmethod
    @cache
    def parse(text: str) -> Pattern:
        element, *dimensions = text.split()
        leading = dimensions.pop(0) if dimensions[:1] in (["*"], ["~"]) else ""
        return Pattern(element, leading, tuple(dimensions))

    @property
    def is_matrix(self) -> bool:
        return len(self.dimensions) == 2

    def matches(self, type_: ArgumentType, elements: Sequence[str] | None, bindings: Bindings) -> bool:
        """Match a type, and complete ``bindings`` from it."""
        if self.element == "T" and bindings.element is None and (elements is None or type_.element in elements):
            bindings.element = type_.element
        if type_.element not in self._elements(bindings) or not type_.is_static:
            return False
        shape = type_.static_shape
        leading = len(shape) - len(self.dimensions)
        if leading < 0 or (leading and not self.leading):
            return False
        if self.leading == "*":
            bindings.batch = shape[:leading] if bindings.batch is None else bindings.batch
            if bindings.batch != shape[:leading]:
                return False
        elif self.leading == "~":
            bindings.rank = leading if bindings.rank is None else bindings.rank
            if bindings.rank != leading:
                return False
        for dimension, size in zip(self.dimensions, shape[leading:], strict=True):
            if bindings.size(dimension) is None and dimension.isidentifier():
                bindings.sizes[dimension] = size
            if bindings.size(dimension) != size:
                return False
        return True

    def described(self, elements: Sequence[str] | None, bindings: Bindings) -> str:
        """The types that match, for messages, such as ``f32[..., 4, n]``."""
        found = self._elements(bindings)
        if not found:
            found = tuple(elements or ("any element type",)) if self.element == "T" else (f"the {self.element} type",)
        words = [
            str(dimension if (size := bindings.size(dimension)) is None else size) for dimension in self.dimensions
        ]
        if self.leading == "*" and bindings.batch is not None:
            words = [*map(str, bindings.batch), *words]
        elif self.leading:
            words = ["...", *words]
        return f"{' or '.join(found)}[{', '.join(words)}]"

    def _elements(self, bindings: Bindings) -> tuple[str, ...]:
        if self.element not in ("T", "real", "complex"):
            return (self.element,)
        if bindings.element is None:
            return ()
        related: Mapping[str, str] = {"real": _REAL, "complex": _COMPLEX}.get(self.element, {})
        return (related.get(bindings.element, bindings.element),)
