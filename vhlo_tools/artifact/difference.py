"""One way in which two programs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["DIFFERENCE_KINDS", "Difference", "DifferenceKind"]

DifferenceKind = Literal[
    "version",
    "module attribute",
    "function",
    "signature",
    "function attribute",
    "argument attribute",
    "result attribute",
    "alias",
    "donor",
    "constant",
    "op",
    "location",
]

#: The kinds, in the order in which they are shown.
DIFFERENCE_KINDS: tuple[DifferenceKind, ...] = get_args(DifferenceKind)


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which two programs differ.

    Attributes:
        kind: What differs.
        path: Where: ``module``, ``@main argument 0 tf.aliasing_output``, or an op from its function inwards, as in
            ``@main/3:stablehlo.while/1/0:stablehlo.add``, and what of it. Positions are those of the first program,
            for what only the second has those of the second.
        before: What the first program has; ``None`` if nothing.
        after: What the second has; ``None`` if nothing.
    """

    kind: DifferenceKind
    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        where = f"{self.kind}: {self.path}: " if self.path else f"{self.kind}: "
        if self.before is None:
            return f"{where}added {self.after}"
        if self.after is None:
            return f"{where}removed {self.before}"
        return f"{where}{self.before} -> {self.after}"
